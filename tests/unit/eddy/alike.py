"""Two engines object by object: whether one that was loaded is the one that was dumped.

`assert_alike(one, other)` walks both from the engine down, side by side. Objects have the same classes and attributes, arrays the
same values, and an object that is reached twice on one side is on the other: what was shared is shared. `APART` lists the little
that may differ: addresses, scratch memory, and what is found again when it is asked for.
"""

from __future__ import annotations

import enum
import functools
import types
from array import array
from operator import itemgetter
from typing import Any

import numpy as np

from eddy.state.state_graph import is_ours
from lineage.identity import ById

#: Attributes that may differ, by class.
APART = {
    "Engine": {"_clock", "_turn"},
    "Committer": {"listeners", "_buffers", "_failure"},
    "Eddy": {"lineage", "_trial"},
    "Planner": {"_skeletons", "_last"},
    "Refill": {"_steps", "_place", "_n_constants"},
    "Lifted": {"lifting"},
    "TextOutcomes": {"_fails", "_strings", "_table"},
    "FilterBank": {"_pool"},
    "MatchFilters": {"_pool"},
    "MemberRows": {"_pool"},
    "RowStore": {"_spare", "_addresses", "_times_addresses"},
    "Page": {"address", "times_address", "_ids_address", "floats", "columns"},
    "Gatherer": {"_version", "_origin", "_bits", "_lives", "_nulls", "_ids", "_outcomes"},
    "PagedWords": {"addresses"},
    "KeySegment": {"address"},
    "KeyTable": {"directory"},
    "HashIndex": {"_begins"},
    "Texts": {"_translations"},
    "Dictionary": {"_array", "_filled"},
    "Marks": {"_arrays"},
}

ATOMS = (str, bytes, int, float, bool, type(None), enum.Enum, type, np.generic, np.dtype, array, itemgetter, types.FunctionType)


def assert_alike(one: Any, other: Any) -> int:
    """Raise unless both are the same; returns how many objects were compared."""
    #: on each side, the number under which an object was met; the objects are kept, so that no other has their id
    met: tuple[dict[int, int], dict[int, int]] = {}, {}
    kept: list[Any] = []
    todo = [(one, other, type(one).__name__)]
    while todo:
        one, other, path = todo.pop()
        assert type(one) is type(other), f"{path}: {type(one).__name__} and {type(other).__name__}"
        if isinstance(one, ATOMS):
            assert repr(one) == repr(other), f"{path}: {one!r} and {other!r}"
            continue
        if isinstance(one, frozenset | set):
            assert one == other, path
            continue
        numbers = met[0].get(id(one)), met[1].get(id(other))
        assert numbers[0] == numbers[1], f"{path}: shared on one side only"
        if numbers[0] is None:
            met[0][id(one)] = met[1][id(other)] = len(kept)
            kept.append((one, other))
            todo += _parts(one, other, path)
    return len(kept)


def _parts(one: Any, other: Any, path: str) -> list[tuple[Any, Any, str]]:
    """What two objects are made of, in pairs."""
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape, path
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), path
        return []
    if isinstance(one, dict):
        assert len(one) == len(other), path
        pairs = zip(one.items(), other.items())
        found = [
            pair for k, ((key, a), (twin, b)) in enumerate(pairs) for pair in ((key, twin, f"{path}[{k}"), (a, b, f"{path}[{k}]"))
        ]
        return [*found, *_attributes(one, other, path)]
    if isinstance(one, list | tuple):
        assert len(one) == len(other), path
        return [*((a, b, f"{path}[{k}]") for k, (a, b) in enumerate(zip(one, other))), *_attributes(one, other, path)]
    if isinstance(one, ById):
        return [(a, b, f"{path}[{k}]") for k, (a, b) in enumerate(zip(one.items(), other.items(), strict=True))]
    if isinstance(one, types.MethodType):
        assert one.__func__ is other.__func__, path
        return [(one.__self__, other.__self__, path)]
    if isinstance(one, functools.partial):
        return [(one.func, other.func, path), (one.args, other.args, path), (one.keywords, other.keywords, path)]
    assert is_ours(type(one)), f"{path}: {type(one)}"
    return _attributes(one, other, path)


def _attributes(one: Any, other: Any, path: str) -> list[tuple[Any, Any, str]]:
    if not is_ours(type(one)):
        return []
    names = [*(name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())), *getattr(one, "__dict__", {})]
    apart = {"__weakref__"}.union(*(APART.get(kind.__name__, ()) for kind in type(one).__mro__))
    found = []
    for name in names:
        if name not in apart:
            assert hasattr(one, name) == hasattr(other, name), f"{path}.{name}"
            if hasattr(one, name):
                found.append((_held(one, name), _held(other, name), f"{path}.{name}"))
    return found


def _held(of: Any, name: str) -> Any:
    """An attribute; of the arrays of a page, the rows that it has."""
    value = getattr(of, name)
    if type(of).__name__ == "Page":
        if isinstance(value, np.ndarray):
            return value[..., : of.n_rows].copy()
        if name == "outcomes":
            return {module: outcome[: of.n_rows].copy() for module, outcome in value.items()}
    return value
