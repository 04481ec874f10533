"""What takes the rows of a replay: an engine in this process, or a service.

The service is asked how far it is: the rows that each stream has accepted are the position. A slice is sent with an idempotency
key made of the data, the streams and the position where it begins:

    two slices from one position    the service takes the first; the second, if it is the same, gets the first one's receipt,
                                    and else is refused, and whoever sent it asks for the position again

So what a killed replay had sent and what the next one sends can overlap in any way, and every row is taken once. It needs
nothing on this side, and a service that lost its rows has lost the position with them. What would break it is somebody else who
pushes into the same streams; their times would not fit, and `position` says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lineage.errors import ConflictError
from lineage.times import to_us
from pipeline.dataset import MANIFEST, Dataset, times_of
from pipeline.merged import Position, Slice
from pipeline.replay import Moved

if TYPE_CHECKING:
    from eddy import Engine
    from eddy.client import Client

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
        for name, stored in dataset.streams.items():
            client.create_stream(name, stored.columns, time=stored.time, key=stored.key, timeline=timeline)
        digest = hashlib.blake2b((dataset.path / MANIFEST).read_bytes(), digest_size=8)
        streams = client.stats()["streams"]
        #: the data, and which streams of that name: one that was dropped and made again is another
        self._prefix = f"replay-{digest.hexdigest()}-" + ".".join(str(streams[name]["number"]) for name in dataset.streams)

    def submit(self, queries: Sequence[dict[str, Any]]) -> int:
        """Start those of some named queries that are not there yet; gives how many."""
        known = self._client.queries
        for query in queries:
            found = known.get(query["name"])
            if found is not None and (found.sql, dict(found.params)) != (query["sql"], query.get("params") or {}):
                raise ConflictError(
                    f'query "{query["name"]}" is there with another text', code="other_definition",
                    hint="cancel it, or give this one another name",
                )  # fmt: skip
        missing = [query for query in queries if query["name"] not in known]
        for first in range(0, len(missing), _PART):
            self._client.submit_many(missing[first : first + _PART])
        return len(missing)

    def position(self) -> Position:
        stats = self._client.stats()
        position = {name: int(stats["streams"][name]["rows"]) for name in self._dataset.streams}
        line = stats["timelines"][self._timeline]
        now_us = None if line["time"] is None else to_us(line["time"])
        _check(self._dataset, position, now_us, alone=line["streams"] == len(position))
        return position

    def take(self, some: Slice) -> int:
        key = f"{self._prefix}-{'.'.join(map(str, some.start.values()))}"
        try:
            if len(some.rows) == 1:
                ((stream, rows),) = some.rows.items()
                return self._client.push(stream, rows, key=key).late
            return sum(receipt.late for receipt in self._client.push_many(some.rows, key=key).values())
        except ConflictError as error:
            if error.code != "key_reused":
                raise
            raise Moved from None


def _check(dataset: Dataset, position: Position, now_us: int | None, *, alone: bool) -> None:
    """Raise if so many rows of each stream are not the beginning of the dataset, by their times and the clock of the timeline."""
    last: list[tuple[int, int]] = []
    following: list[tuple[int, int]] = []
    for n, (name, stored) in enumerate(dataset.streams.items()):
        at = position[name]
        if at > stored.rows:
            raise _foreign(name, f"it has taken {at} rows, the dataset has {stored.rows}")
        if at:
            last.append((_time_of(dataset, name, at - 1), n))
        if at < stored.rows:
            following.append((_time_of(dataset, name, at), n))
    names = list(dataset.streams)
    if last and following and max(last) > min(following):
        raise _foreign(names[max(last)[1]], "it is ahead of the others")
    latest_us = max(last)[0] if last else None
    if alone and now_us != latest_us or latest_us is not None and (now_us is None or now_us < latest_us):
        raise _foreign(names[0], "the clock of its timeline is not that of its last row")


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
