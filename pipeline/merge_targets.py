"""Receivers of a replay whose streams are the inputs of one merged stream: an engine in this process, or a service.

A dataset of `eddy generate gateways` says in its manifest which merge it is meant for. Its streams are in the order of arrival;
that column is left out of what is pushed. The rows of a slice go gateway after gateway, so a slice holds less event time (half of
the merge's lateness) than what would settle rows of a gateway that is pushed later.

The position is what each input has given, which the merge counts, duplicates and settled rows among it. A part of a slice is sent
with a key of its own, so a replay that was cut off anywhere goes on without loss (`pipeline/targets.py`). With the last row of
all every input says that nothing older comes, so that no row is left waiting.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lineage.errors import ConflictError, EddyError
from pipeline.dataset import MANIFEST, Dataset
from pipeline.merged import Position, Slice
from pipeline.replay import Moved

if TYPE_CHECKING:
    from eddy import Engine
    from eddy.client import Client


class MergeOptions:
    """The merged stream that a dataset is meant for."""

    def __init__(self, dataset: Dataset, name: str, timeline: str) -> None:
        found = dataset.parameters.get("merge")
        if not isinstance(found, dict) or not dataset.streams:
            raise EddyError(
                f"the streams of {dataset.path} are not meant to be merged", code="bad_option",
                hint="eddy generate gateways writes such a dataset; without --merge each stream is a stream of its own",
            )  # fmt: skip
        self.name = name
        stored = next(iter(dataset.streams.values()))
        #: the column of arrival
        self.arrival = stored.time
        columns = {column: word for column, word in stored.columns.items() if column != stored.time}
        self.declared: dict[str, Any] = {"columns": columns, "inputs": list(dataset.streams), "timeline": timeline, **found}
        #: event time of a slice, at most
        self.span_us = max(1, round(found["lateness"] * 1000 / 2))
        self._rows = {name: one.rows for name, one in dataset.streams.items()}
        #: after every row, milliseconds
        self.over = max((one.last for one in dataset.streams.values() if one.last is not None), default=0) // 1000 + 1

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as the merge takes them."""
        return batch.drop_columns([self.arrival])

    def finished(self, at: Position) -> bool:
        return at == self._rows


class EngineMergeTarget:
    """An engine in this process; the merge is made here."""

    def __init__(self, engine: Engine, dataset: Dataset, name: str, timeline: str = "replay") -> None:
        self.options = MergeOptions(dataset, name, timeline)
        self._engine = engine
        self._position = dict.fromkeys(dataset.streams, 0)
        engine.create_merge(name, **self.options.declared)

    def position(self) -> Position:
        return self._position

    def take(self, some: Slice) -> int:
        options = self.options
        receipts = [self._engine.push(options.name, options.rows(rows), input=of) for of, rows in some.rows.items()]
        self._position = some.end
        if options.finished(some.end):
            for of in some.end:
                self._engine.stable(options.name, of, options.over)
        return sum(receipt.settled for receipt in receipts)


class ServiceMergeTarget:
    """A service; the merge is made unless it is there."""

    def __init__(self, client: Client, dataset: Dataset, name: str, timeline: str = "replay") -> None:
        self.options = MergeOptions(dataset, name, timeline)
        self._client = client
        client.create_merge(name, **self.options.declared)
        digest = hashlib.blake2b((dataset.path / MANIFEST).read_bytes(), digest_size=8).hexdigest()
        #: the data, and which merge of that name
        self._prefix = f"replay-{digest}-{client.stats()['streams'][name]['number']}"

    def position(self) -> Position:
        inputs = self._client.stats()["streams"][self.options.name]["merge"]["inputs"]
        found = {of: int(inputs[of]["rows"]) for of in self.options.declared["inputs"]}
        self._end(found)
        return found

    def take(self, some: Slice) -> int:
        options = self.options
        settled = 0
        for of, rows in some.rows.items():
            key = f"{self._prefix}-{of}-{some.start[of]}"
            try:
                settled += self._client.push(options.name, options.rows(rows), of, key=key).settled
            except ConflictError as error:
                if error.code != "key_reused":
                    raise
                raise Moved from None
        self._end(some.end)
        return settled

    def _end(self, at: Position) -> None:
        """Say for every input that nothing more comes, if that is so; said again it does nothing."""
        if self.options.finished(at):
            for of in at:
                self._client.stable(self.options.name, of, self.options.over)
