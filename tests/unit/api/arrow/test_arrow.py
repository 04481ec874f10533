"""The door for Arrow: what is good is read as pyarrow reads it, and nothing else comes through."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from api.arrow.arrow_files import file_batches, stream_batches
from api.arrow.buffers import ByteBudget
from api.arrow.flatbuffer import FormatError
from api.arrow.stream import read_stream
from api.base.refusals import TooLargeError
from api.core.calls import Call, apply
from api.core.holdings import Holdings
from api.wire.bodies import ARROW, BodyError, parse_bundle, parse_rows
from eddy import EddyError, Engine, RowError
from tests.reference.arrow_bodies import COLUMNS, LEGACY, encoded, encoded_file, mutated, seedlings, table
from tests.reference.arrow_fuzz import BODY_BYTES, run
from tests.reference.in_process import InProcess, in_process
from tests.reference.peaks import peak_of
from tests.reference.seeds import amount, seeds
from tests.unit.eddy.digest import digest

MIB = 1 << 20
WAYS: list[dict[str, Any]] = [{}, {"compression": "lz4"}, {"compression": "zstd"}, LEGACY, {"emit_dictionary_deltas": True}]


def read(body: bytes, room: int | None = 64 * MIB) -> pa.Table:
    found = pa.table(read_stream(body, 0, ByteBudget(room)).rows)
    found.validate(full=True)
    return found


def plain(rows: pa.Table) -> dict[str, list[Any]]:
    """Rows without what may differ: the name of a zone, and how a dictionary is cut."""
    columns = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        columns[field.name] = [str(field.type).replace("Europe/Berlin", "UTC"), *column.to_pylist()]
    return columns


# ---- what is good


@pytest.mark.parametrize("seed", seeds(range(60), 15))
def test_what_is_well_formed_is_read_as_pyarrow_reads_it(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(6):
        rows = table(rng.randrange(1 << 30), rng.choice((0, 1, 2, 7, 8, 9, 65)), rng.choice((0.0, 0.3, 1.0)))
        way, chunk = rng.choice(WAYS), rng.choice((None, 1, 5))
        body = encoded(rows, chunk, **way)
        wanted = plain(pa.ipc.open_stream(body).read_all())
        assert plain(read(body)) == wanted
        assert read(body).schema.equals(read(encoded(rows)).schema)
        streamed = pa.Table.from_batches(stream_batches(io.BytesIO(body)), read(body).schema)
        assert plain(streamed) == wanted
        file = encoded_file(rows, chunk, **way)
        filed = pa.Table.from_batches(file_batches(io.BytesIO(file)), read(body).schema)
        assert plain(filed) == plain(pa.ipc.open_file(file).read_all())


def test_dictionaries_that_grow_and_that_are_replaced_are_read_as_they_were_at_each_batch() -> None:
    for body in (seedlings()[11].body, seedlings()[12].body):
        assert plain(read(body)) == plain(pa.ipc.open_stream(body).read_all())


def test_an_extension_type_is_what_it_is_stored_as() -> None:
    rows = pa.table({"a": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"x": 1}']))})
    assert read(encoded(rows)).to_pydict() == {"a": ['{"x": 1}']}


def test_a_stream_without_an_end_ends_with_the_body() -> None:
    body = encoded(pa.table({"a": [1, 2]}))
    assert body.endswith(b"\xff\xff\xff\xff\0\0\0\0") and read(body[:-8]).to_pydict() == {"a": [1, 2]}


def test_a_body_that_is_not_aligned_is_read() -> None:
    body = encoded(table(3, 9, 0.3))
    assert plain(pa.table(read_stream(b"abc" + body, 3, ByteBudget(None)).rows)) == plain(read(body))


def patched(column: Any, *changes: tuple[bytes, bytes]) -> bytes:
    """A body with one column, and other bytes in its buffers."""
    body = encoded(pa.table({"a": column}))
    for before, after in changes:
        at = body.rindex(before)
        body = body[:at] + after + body[at + len(before) :]
    return body


def ints(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def longs(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


TEXTS = pa.array(["abc", "de"])
CODED = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int32()), ["a", "b"])
VIEWS = pa.array(["short", "a" * 20], pa.string_view())
NULLS = pa.array(["a", None, "bcd"])


def view(length: int, prefix: bytes = b"aaaa", buffer: int = 0, offset: int = 0) -> bytes:
    return struct.pack("<i4sii", length, prefix, buffer, offset)


FAR = view(20)


def test_what_lies_below_a_null_is_nobodys() -> None:
    texts = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(one) for one in (b"\x01", ints(0, 1, 3), b"a\xff\xfe")])
    views = pa.array(["a", None], pa.string_view())
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int32()), ["a"])
    below = {
        "text": encoded(pa.table({"a": texts})),
        "index": patched(coded, (ints(0, 0), ints(0, 99))),
        "view": patched(views, (view(1, b"a\0\0\0") + bytes(16), view(1, b"a\0\0\0") + view(1 << 30, b"zzzz", 77, -5))),
    }
    assert {name: read(body).to_pydict() for name, body in below.items()} == dict.fromkeys(below, {"a": ["a", None]})
    nothing = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string()))
    assert read(encoded(pa.table({"a": nothing}))).to_pydict() == {"a": [None, None]}


# ---- what is refused

DECIMAL = pa.array([1], pa.decimal128(5))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (patched(CODED, (ints(0, 1, 0, 1), ints(0, 1, 0, 5000))), "indices outside its dictionary"),
        (patched(CODED, (ints(0, 1, 0, 1), ints(0, 1, -1, 1))), "indices outside its dictionary"),
        (patched(TEXTS, (ints(0, 3, 5), ints(0, 3, 1000))), "lie outside their buffer"),
        (patched(TEXTS, (ints(0, 3, 5), ints(-4, 3, 5))), "lie outside their buffer"),
        (patched(TEXTS, (ints(0, 3, 5), ints(0, 5, 3))), "lie outside their buffer"),
        (patched(TEXTS, (ints(0, 3, 5), ints(9, 3, 5))), "lie outside their buffer"),
        (patched(TEXTS.cast(pa.large_string()), (longs(0, 3, 5), longs(0, 3, 1 << 60))), "lie outside their buffer"),
        (patched(VIEWS, (FAR, view(20, buffer=1))), "lie outside their buffers"),
        (patched(VIEWS, (FAR, view(20, buffer=-1))), "lie outside their buffers"),
        (patched(VIEWS, (FAR, view(20, offset=60))), "lie outside their buffers"),
        (patched(VIEWS, (FAR, view(-1))), "lie outside their buffers"),
        (patched(VIEWS, (FAR, view(20, b"bbbb"))), 'column "a"'),
        (patched(pa.array([1, 2, 3]), (longs(0, 24), longs(0, 16))), "a buffer has 16 bytes, its column needs 24"),
        (patched(pa.array([1, 2, 3]), (longs(0, 24), longs(1 << 40, 24))), "outside the body of its message"),
        (patched(pa.array([1, 2, 3]), (longs(0, 24), longs(0, -24))), "outside the body of its message"),
        (patched(pa.array([1, None, 3]), (longs(3, 1), longs(3, 2))), "as many NULLs as it says"),
        (patched(pa.array([1, None, 3]), (longs(3, 1), longs(3, 4))), "4 NULLs in 3 rows"),
        (patched(pa.array([1, None, 3]), (longs(3, 1), longs(4, 1))), "has 4 rows, its batch 3"),
    ],
)
def test_numbers_that_lead_outside_their_buffers_are_refused(body: bytes, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        read(body)


@pytest.mark.parametrize(
    ("body", "row"),
    [
        (patched(TEXTS, (b"abcde", b"abcd\xff")), 1),
        # good as a whole, but cut within a letter
        (patched(TEXTS, (b"abcde", "abäe".encode())), 0),
        (patched(NULLS, (b"abcd", b"a\xc3bc")), 2),
        (patched(VIEWS, (b"short", b"sho\xfft")), 0),
        (patched(VIEWS, (b"a" * 20, b"a" * 19 + b"\xe4")), 1),
    ],
)
def test_a_text_that_is_not_utf8_is_refused_with_its_row(body: bytes, row: int) -> None:
    with pytest.raises(RowError, match="not UTF-8") as caught:
        read(body)
    assert (caught.value.row, caught.value.column) == (row, "a")


def test_rows_of_later_batches_are_counted_on() -> None:
    with pytest.raises(RowError) as caught:
        read(patched(pa.chunked_array([["a", "b"], ["xyz"]]), (b"xyz", b"x\xffz")))
    assert caught.value.row == 2


def test_a_bad_entry_of_a_dictionary_is_refused() -> None:
    entries = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), ["xyz", "w"])
    with pytest.raises(RowError, match="entry 0 of its dictionary"):
        read(patched(entries, (b"xyzw", b"\xffyzw")))


@pytest.mark.parametrize(
    ("column", "word"),
    [
        (pa.array([[1]]), "list"), (pa.array([{"a": 1}]), "struct"), (pa.array([b"a"]), "binary"), (DECIMAL, "decimal"),
        (pa.array([1], pa.duration("s")), "duration"), (pa.array([1], pa.time64("us")), "time of day"),
        (pa.array([b"abcd"], pa.binary(4)), "fixed-size binary"), (pa.array([b"a"], pa.binary_view()), "binary view"),
        (pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([7])), "run-end encoded"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "map"),
        (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]), "union"),
        (DECIMAL.dictionary_encode(), "decimal"),
    ],
)  # fmt: skip
def test_a_type_that_no_column_takes_is_refused_by_name(column: Any, word: str) -> None:
    with pytest.raises(RowError, match=f"no column takes the Arrow type {word}") as caught:
        read(encoded(pa.table({"a": [1], "odd": column})))
    assert (caught.value.column, caught.value.code) == ("odd", "bad_type") and "cast" in caught.value.hint


@pytest.mark.parametrize("end", [1, 7, 9, 40, 100, -9, -17])
def test_a_body_that_is_cut_off_is_refused(end: int) -> None:
    with pytest.raises(FormatError):
        read(encoded(pa.table({"a": list(range(10))}))[:end])


def test_more_messages_than_anybody_sends_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    body = encoded(pa.table({"a": list(range(20))}), 1)
    monkeypatch.setattr("api.arrow.stream.MAX_MESSAGES", 20)
    with pytest.raises(FormatError, match="more than 20 messages"):
        read(body)
    assert read(body, None).num_rows == 20


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("off", [-8, 8])
def test_a_compressed_buffer_that_is_not_as_long_as_it_says_is_refused(codec: str, off: int) -> None:
    """Fewer bytes would leave memory that was never written; it was what others had sent before."""
    n_rows = 10_000
    body = bytearray(encoded(pa.table({"a": np.zeros(n_rows, np.int64)}), compression=codec))
    at = body.index(struct.pack("<q", 8 * n_rows))
    body[at : at + 8] = struct.pack("<q", 8 * n_rows + off)
    with pytest.raises(FormatError):
        read(bytes(body))


# ---- how much it may stand for


def shared_views(n_rows: int, size: int) -> bytes:
    column = pa.Array.from_buffers(pa.string_view(), n_rows, [None, pa.py_buffer(view(size) * n_rows), pa.py_buffer(b"a" * size)])
    return encoded(pa.table({"a": column}))


BOMBS: dict[str, Callable[[], bytes]] = {
    "compressed texts": lambda: encoded(pa.table({"a": ["\0" * (64 * MIB)]}), compression="zstd"),
    "compressed numbers": lambda: encoded(pa.table({"a": np.zeros(8 * MIB, np.int64)}), compression="lz4"),
    "many compressed": lambda: encoded(pa.table({"a": ["\0" * MIB] * 64}), 1, compression="zstd"),
    "rows without bytes": lambda: encoded(pa.table({"a": pa.nulls(9_000_000)})),
    "a bit a row": lambda: encoded(pa.table({"a": np.zeros(9_000_000, bool)})),
    "views of one text": lambda: shared_views(20_000, 4096),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_body_that_stands_for_much_is_refused_before_memory_is_taken(name: str) -> None:
    body = BOMBS[name]()
    limit = 4 * MIB
    assert len(body) < limit
    read(seedlings()[13].body)

    def refused() -> None:
        with pytest.raises(TooLargeError, match="than"):
            parse_rows(body, ARROW, 1, limit)

    assert peak_of(refused) <= 4 * limit


def test_columns_that_rows_leave_out_count_as_well() -> None:
    body = encoded(pa.table({"a": [1] * 1000}))
    assert len(parse_rows(body, ARROW, 1, 64_000)["a"]) == 1000
    with pytest.raises(TooLargeError, match="8,000 values"):
        parse_rows(body, ARROW, 100, 64_000)
    bundle = encoded(pa.table({"a": [1] * 1000}).replace_schema_metadata({"stream": "s"}))
    with pytest.raises(TooLargeError, match="8,000 values"):
        parse_bundle(bundle, ARROW, lambda stream: 100, 64_000)


def test_streams_of_one_body_share_its_room() -> None:
    streams = [encoded(pa.table({"a": [1] * 600}).replace_schema_metadata({"stream": name})) for name in "st"]
    with pytest.raises(TooLargeError):
        parse_bundle(b"".join(streams), ARROW, room=8000)


def test_what_the_journal_holds_is_read_whatever_the_limits_are_now() -> None:
    holdings = Holdings(Engine())
    holdings.engine.create_stream("s", {"a": "int"})
    body = encoded(pa.table({"a": np.zeros(100_000, np.int64)}), compression="zstd")
    call = Call("push", {"stream": "s", "media": ARROW}, body, room=10_000)
    with pytest.raises(TooLargeError):
        apply(holdings, call)
    call.room = None
    assert apply(holdings, call).result["accepted"] == 100_000


def test_a_text_of_a_dictionary_is_converted_once_for_all_rows() -> None:
    engine = Engine()
    engine.create_stream("s", {"ts": "timestamp", "n": "int"}, time="ts")
    many = pa.array(np.arange(400_000) >= 300_000, pa.int8())
    times = pa.DictionaryArray.from_arrays(many, ["2024-01-01T00:00:00Z", "x" * 1000])

    def refused() -> None:
        with pytest.raises(RowError, match="not a time") as caught:
            engine.push("s", pa.table({"ts": times}))
        assert caught.value.row == 300_000

    assert peak_of(refused) < 64 * MIB


# ---- hostile


@pytest.fixture(scope="module")
def service() -> Iterator[InProcess]:
    with in_process() as found:
        assert found.put("/v1/streams/s", json={"columns": COLUMNS, "time": "ts"}).status_code == 201
        yield found


def test_no_body_stops_the_service(service: InProcess) -> None:
    times = [1, 2]
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), ["a", "b"])
    sent = [
        (coded, (ints(0, 1), ints(0, 5000))), (TEXTS, (b"abcde", b"abcd\xff")), (TEXTS, (ints(0, 3, 5), ints(0, 3, 1 << 30))),
        (pa.array([[1], [2]]), (b"", b"")), (TEXTS, (b"", b"")),
    ]  # fmt: skip
    headers = {"Content-Type": ARROW}
    statuses = []
    for column, (before, after) in sent:
        body = encoded(pa.table({"ts": times, "string": column}))
        at = body.rindex(before)
        body = body[:at] + after + body[at + len(before) :]
        statuses.append(service.post("/v1/streams/s/rows", content=body, headers=headers).status_code)
    assert statuses == [400, 422, 400, 422, 202]
    bomb = encoded(pa.table({"ts": times, "string": ["\0" * (65 * MIB), ""]}), compression="zstd")
    assert service.post("/v1/streams/s/rows", content=bomb, headers=headers).status_code == 413


def test_bad_rows_are_left_out_of_arrow_as_well(service: InProcess) -> None:
    rows = pa.table({
        "ts": pa.array([1_000, 2_000, 3_000], pa.timestamp("us", "Europe/Berlin")),
        "time_ns": pa.array([1_234_567, None, -(2**63) + 1], pa.timestamp("ns")),
        "time_coded": pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), ["2024-01-01T00:00:00Z", "never"]),
        "date32": pa.array([1, 2**31 - 1, 3], pa.date32()),
        "string": ["a", "b", None],
    })  # fmt: skip
    answer = service.post("/v1/streams/s/rows?bad=skip", content=encoded(rows), headers={"Content-Type": ARROW})
    told = answer.json()
    assert answer.status_code == 202 and (told["accepted"], told["rejected"]) == (2, 1)
    assert [(error["row"], error["column"]) for error in told["errors"]] == [(1, "date32")]


def test_a_seed_that_once_failed_passes() -> None:
    # dictionaries of several batches with entries that are NULL
    assert not run(930_873, 1).faults


def test_damaged_bodies_are_taken_or_refused_and_nothing_else_happens() -> None:
    n = amount(4_000, long=20_000)
    found = run(0, n)
    assert found.faults == {}
    assert found.count == n and found.taken > 0.1 * n and found.refused > 0.5 * n
    assert found.peak <= 4 * BODY_BYTES


def test_a_refused_bundle_has_changed_nothing() -> None:
    engine = Engine()
    for name in "st":
        engine.create_stream(name, {"ts": "timestamp", "string": "string"}, time="ts")
    good = encoded(pa.table({"ts": [1], "string": ["new"]}).replace_schema_metadata({"stream": "s"}))
    bad = encoded(pa.table({"ts": [1], "string": [1.5]}).replace_schema_metadata({"stream": "t"}))
    before = digest(engine)
    for body in (good + bad, good + bad[:-40], good + good):
        with pytest.raises(EddyError):
            engine.push_many(parse_bundle(body, ARROW))
    assert digest(engine) == before


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_are_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    whole = encoded_file(table(seed, 9, 0.3, ("ts", "string", "coded8", "string_view")), 4)
    for n in range(400):
        body = bytearray(whole)
        for _ in range(rng.choice((1, 2, 4))):
            at = rng.randrange(len(body) - 8)
            body[at : at + rng.choice((1, 4, 8))] = rng.choice((b"\xff" * 8, bytes(8), rng.randbytes(4)))
        for batches, source in ((file_batches, bytes(body)), (stream_batches, mutated(1000 * seed + n).body)):
            try:
                for batch in batches(io.BytesIO(source)):
                    for column in batch.columns:
                        # of days as milliseconds only those of midnight are good, but all are times
                        column.validate(full=not pa.types.is_date64(column.type))
            except (FormatError, EddyError):
                pass


@pytest.mark.parametrize("n_rows", [1 << 28, 1 << 60])
def test_a_file_that_stands_for_gigabytes_is_refused(n_rows: int) -> None:
    body = patched(pa.nulls(10), (longs(10, 10), longs(n_rows, n_rows)))
    body = body.replace(longs(10), longs(n_rows))
    with pytest.raises(TooLargeError):
        list(stream_batches(io.BytesIO(body)))


def test_what_is_no_arrow_says_so() -> None:
    for body in (b"", b"abc", b"\xff\xff\xff\xff", bytes(100), b"\xff" * 100):
        with pytest.raises(BodyError, match="not an Arrow IPC stream"):
            parse_rows(body, ARROW, 0, 1000)
