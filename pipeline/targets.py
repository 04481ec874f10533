"""The receivers of a replay: an engine in this process, or a service.

The service is asked how far it is: the rows that each stream has accepted are the position. A slice is sent with an idempotency
key made of the data, the streams and the position where it begins:

    two slices from one position    the service takes the first; the second, if it is the same, gets the first one's receipt,
                                    and else is refused, and whoever sent it asks for the position again

So what a killed replay had sent and what the next one sends can overlap in any way, and every row is taken once. It needs
nothing on this side, and a service that lost its rows has lost the position with them. What would break it is somebody else who
pushes into the same streams or moves their timeline; then the times do not fit, and `position` says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lineage.errors import ConflictError
from lineage.times import to_iso, to_us
from pipeline.dataset import MANIFEST, Dataset, times_of
from pipeline.merged import Position, Slice
from pipeline.replay import Moved

if TYPE_CHECKING:
    from eddy import Engine
    from eddy.client import Client, Receipt

#: Queries of one call.
_PART = 1000


class EngineTarget:
    """An engine in this process; its streams are made here."""

    def __init__(self, engine: Engine, dataset: Dataset, timeline: str = "replay") -> None:
        self._push = engine.push_many
        self._position = dict.fromkeys(dataset.streams, 0)
        for name, stored in dataset.streams.items():
            engine.create_stream(name, stored.columns, time=stored.time, key=stored.key, timeline=timeline)

    def position(self) -> Position:
        return self._position

    def take(self, some: Slice) -> int:
        receipts = self._push(some.rows)
        self._position = some.end
        return sum(receipt.late for receipt in receipts.values())


class ServiceTarget:
    """A service; its streams and queries are made unless they are there."""

    def __init__(self, client: Client, dataset: Dataset, timeline: str = "replay") -> None:
        self._client = client
        self._dataset = dataset
        self._timeline = timeline
        line = client.stats()["timelines"].get(timeline)
        if line is not None and not set(dataset.streams) & set(client.streams):
            # said before streams are made on it, for those would be in the way of another try
            first_us = min((stored.first for stored in dataset.streams.values() if stored.first is not None), default=None)
            _check_clock(timeline, _clock_of(line), first_us)
        for name, stored in dataset.streams.items():
            client.create_stream(name, stored.columns, time=stored.time, key=stored.key, timeline=timeline)
        digest = hashlib.blake2b((dataset.path / MANIFEST).read_bytes(), digest_size=8)
        streams = client.stats()["streams"]
        #: the data, and which streams of that name: one that was dropped and made again is another
        self._prefix = f"replay-{digest.hexdigest()}-" + ".".join(str(streams[name]["number"]) for name in dataset.streams)

    def position(self) -> Position:
        stats = self._client.stats()
        position = {name: int(stats["streams"][name]["rows"]) for name in self._dataset.streams}
        now_us = _clock_of(stats["timelines"][self._timeline])
        last_us, next_us = _around(self._dataset, position)
        if last_us is not None and (now_us is None or now_us < last_us):
            raise _foreign(next(iter(position)), "its clock is before its last row")
        _check_clock(self._timeline, now_us, next_us)
        return position

    def take(self, some: Slice) -> int:
        key = f"{self._prefix}-{'.'.join(map(str, some.start.values()))}"
        try:
            if len(some.rows) == 1:
                ((stream, rows),) = some.rows.items()
                receipt: Receipt = self._client.push(stream, rows, key=key)
                return receipt.late
            return sum(receipt.late for receipt in self._client.push_many(some.rows, key=key).values())
        except ConflictError as error:
            if error.code != "key_reused":
                raise
            raise Moved from None


def submit_missing(client: Client, queries: Sequence[dict[str, Any]]) -> int:
    """Start the named queries that do not exist yet; return their number."""
    known = client.queries
    for query in queries:
        found = known.get(query["name"])
        if found is not None and (found.sql, dict(found.params)) != (query["sql"], query.get("params") or {}):
            raise ConflictError(
                f'query "{query["name"]}" is there with another text', code="other_definition",
                hint="cancel it, or give this one another name",
            )  # fmt: skip
    missing = [query for query in queries if query["name"] not in known]
    for first in range(0, len(missing), _PART):
        client.submit_many(missing[first : first + _PART])
    return len(missing)


def _around(dataset: Dataset, position: Position) -> tuple[int | None, int | None]:
    """Return the times of the last row before a position and of the first after it; raise if the dataset does not have it."""
    last: list[tuple[int, int]] = []
    following: list[tuple[int, int]] = []
    names = list(dataset.streams)
    for n, name in enumerate(names):
        at, rows = position[name], dataset.streams[name].rows
        if at > rows:
            raise _foreign(name, f"it has taken {at} rows, the dataset has {rows}")
        if at:
            last.append((_time_of(dataset, name, at - 1), n))
        if at < rows:
            following.append((_time_of(dataset, name, at), n))
    if last and following and max(last) > min(following):
        raise _foreign(names[max(last)[1]], "it is ahead of the others")
    return max(last)[0] if last else None, min(following)[0] if following else None


def _clock_of(line: Mapping[str, Any]) -> int | None:
    return None if line["time"] is None else to_us(line["time"])


def _check_clock(timeline: str, now_us: int | None, next_us: int | None) -> None:
    """Raise if a timeline is past the next row: its windows would be over before they are filled."""
    if now_us is not None and next_us is not None and now_us > next_us:
        raise ConflictError(
            f'timeline "{timeline}" is at {to_iso(now_us)}, past the next row of the dataset ({to_iso(next_us)})',
            code="other_rows",
            hint="time never goes back: name another timeline with --timeline, after dropping the streams if they are there",
        )  # fmt: skip


def _foreign(stream: str, detail: str) -> ConflictError:
    return ConflictError(
        f'stream "{stream}" of the service holds rows that are not of this dataset', code="other_rows", detail=detail,
        hint=f"drop it first (eddy stream drop {stream}), or replay into another service",
    )  # fmt: skip


def _time_of(dataset: Dataset, stream: str, row: int) -> int:
    """The time of a row by its number."""
    time = dataset.streams[stream].time
    batch = next(dataset.batches(stream, from_row=row, columns=[time]))
    return int(times_of(batch, time)[0])
