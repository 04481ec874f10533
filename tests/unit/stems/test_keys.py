"""Keys of probing rows in the form of the stored column, against equality and comparison of values."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddy.base.compile import ensure
from filters.values.comparisons import compare, float_keys
from filters.values.intervals import float_key
from filters.values.vector import Vector
from lineage.dictionary import Dictionary
from lineage.schema import KEY_MAX, KEY_MIN, Type
from stems.keys import CodeTranslation, KeyFolding
from tests.reference.dictionaries import encode_list
from tests.reference.join_keys import join_keys

ensure()

INTS = st.one_of(st.integers(KEY_MIN, KEY_MAX), st.sampled_from([0, 1, 2**53, 2**53 + 1, KEY_MAX, KEY_MAX - 511, KEY_MIN]))
FLOATS = st.one_of(
    st.floats(), st.integers(-5, 5).map(float), st.sampled_from([2.0**53, 2.0**63, -(2.0**63), math.nan, 0.5, -0.0])
)


def key_of(stored: Type, probing: Type, value: float) -> int | None:
    cells = np.array([value], np.float64).view(np.int64) if probing is Type.FLOAT else np.array([value], np.int64)
    keys = KeyFolding.of_probing([(probing, None)], [(stored, None)]).fold([cells], [None])
    return int(keys.words[0]) if not len(keys.usable) or keys.usable[0] else None


@given(stored=st.one_of(INTS, FLOATS), probing=st.one_of(INTS, FLOATS))
def test_keys_are_equal_exactly_when_the_values_are(stored: float, probing: float) -> None:
    types = [Type.FLOAT if isinstance(value, float) else Type.INT for value in (stored, probing)]
    key = float_key(stored) if isinstance(stored, float) else stored
    equal = stored == probing or (stored != stored and probing != probing)
    assert (key_of(types[0], types[1], probing) == key) is equal


def test_null_and_rows_left_out() -> None:
    folding = KeyFolding.of_probing([(Type.INT, None), (Type.FLOAT, None)], [(Type.INT, None), (Type.FLOAT, None)])
    cells = [np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0]).view(np.int64)]
    nulls = [None, np.array([0, 0, 1], np.uint8)]
    keys = folding.fold(cells, nulls, np.array([0, 2], np.int32))
    assert keys.columns[0].tolist() == [1, 3] and keys.usable.tolist() == [1, 0]
    assert len(keys) == 2 and keys.words[0] == folding.fold(cells, nulls).words[0]


def test_types_that_never_are_equal_are_refused() -> None:
    with pytest.raises(AssertionError, match="never equals"):
        KeyFolding.of_probing([(Type.INT, None)], [(Type.STRING, Dictionary())])


def test_a_self_join_needs_no_translation() -> None:
    texts = Dictionary()
    codes = encode_list(texts, ["a", "b"])
    keys = KeyFolding.of_probing([(Type.STRING, texts)], [(Type.STRING, texts)]).fold([codes], [None])
    assert keys.words is codes


def test_translation_follows_both_dictionaries() -> None:
    """Growing on either side, also after either is compacted."""
    for seed in range(20):
        rng = random.Random(seed)
        probing, stored = Dictionary(), Dictionary()
        translation = CodeTranslation(probing, stored)
        for _ in range(40):
            side = rng.choice([probing, stored])
            if rng.random() < 0.1 and len(side):
                side.compact(rng.sample(range(len(side)), rng.randint(0, len(side))))
            else:
                encode_list(side, [f"t{rng.randrange(30)}" for _ in range(rng.randrange(5))])
            if rng.random() < 0.7:
                table = translation.refresh()
                assert table.tolist() == [stored.find(text) for text in probing.strings]
        assert len(translation.refresh()) * 8 == translation.bytes() == 8 * len(probing)


def test_texts_of_two_streams_meet() -> None:
    probing, stored = Dictionary(), Dictionary()
    encode_list(stored, ["x", "y"])
    folding = KeyFolding.of_probing([(Type.STRING, probing)], [(Type.STRING, stored)])
    codes = encode_list(probing, ["y", "new", None, "x"])
    nulls = np.array([0, 0, 1, 0], np.uint8)
    keys = folding.fold([codes], [nulls])
    assert [int(word) for word, good in zip(keys.words, keys.usable) if good] == [1, 0]
    assert keys.usable.tolist() == [1, 0, 0, 1]
    encode_list(stored, ["new"])
    assert folding.fold([codes], [nulls]).usable.tolist() == [1, 1, 0, 1]
    assert folding.bytes() == 8 * len(probing)


# -- Keys of rows against the comparison of the values -----------------------------------------------------------------


COMPARED_INTS = [KEY_MIN, KEY_MIN + 1, -(2**53) - 1, -1, 0, 1, 2**53, 2**53 + 1, KEY_MAX - 1, KEY_MAX]
COMPARED_FLOATS = [
    -math.inf,
    -(2.0**64),
    -(2.0**63),
    -(2.0**53) - 2,
    -1.0,
    -0.5,
    -0.0,
    0.0,
    5e-324,
    1.0,
    1.5,
    2.0**53,
    2.0**63,
    math.inf,
]
COMPARED_FLOATS += [math.nan, -math.nan]
VALUES = {Type.INT: COMPARED_INTS, Type.FLOAT: COMPARED_FLOATS, Type.TIMESTAMP: [-5, 0, 5], Type.BOOL: [False, True]}
DTYPES = {Type.INT: np.int64, Type.FLOAT: np.float64, Type.TIMESTAMP: np.int64, Type.BOOL: np.bool_}
PAIRS = [(kind, kind) for kind in VALUES] + [(Type.INT, Type.FLOAT), (Type.FLOAT, Type.INT)]


@pytest.mark.parametrize(("probing", "held"), PAIRS)
def test_keys_are_equal_exactly_where_the_values_are(probing: Type, held: Type) -> None:
    pairs = list(itertools.product(VALUES[probing], VALUES[held]))
    left = Vector(probing, np.array([a for a, _ in pairs], DTYPES[probing]))
    right = Vector(held, np.array([b for _, b in pairs], DTYPES[held]))
    keys, joins = join_keys(left, held)
    held_keys, all_join = join_keys(right, held)
    assert all_join.all() and keys.dtype == held_keys.dtype == np.int64
    assert (joins & (keys == held_keys)).tolist() == compare("=", [left, right]).values.tolist()


@pytest.mark.parametrize(("probing", "held"), PAIRS)
def test_a_null_has_no_key(probing: Type, held: Type) -> None:
    vector = Vector(probing, np.zeros(2, DTYPES[probing]), np.array([True, False]))
    assert join_keys(vector, held)[1].tolist() == [False, True]


def test_an_int_beyond_53_bits_joins_only_the_float_that_is_it() -> None:
    _, joins = join_keys(Vector(Type.INT, np.array([2**53, 2**53 + 1, KEY_MAX, KEY_MIN])), Type.FLOAT)
    assert joins.tolist() == [True, False, False, True]
    keys, joins = join_keys(Vector(Type.FLOAT, np.array([2.0**53, 2.0**63, -(2.0**63), 0.5, -0.0, math.nan])), Type.INT)
    assert joins.tolist() == [True, False, True, False, True, False]
    assert keys[joins].tolist() == [2**53, KEY_MIN, 0]


def test_order_keys_are_those_of_the_intervals() -> None:
    assert float_keys(np.array(COMPARED_FLOATS)).tolist() == [float_key(value) for value in COMPARED_FLOATS]
