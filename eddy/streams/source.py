"""One stream inside the engine: its rows in order, and the parts that hang on it.

    intake, ingestor      rows as they come: checked, ordered, released
    store                 the rows taken, with their columns, indexes and ends (`stems/`)
    placement             the legs of queries and where each is placed (`eddy/streams/placement.py`)
    modules               what tests the rows, at what cost and in what order (`eddy/streams/modules.py`)
    log                   which rows came with which commit, and who may ask (`eddy/streams/stream_log.py`)
    stored, expiry        which rows later queries may see, and how far windows have moved

It knows nothing of commits or queries' answers: the eddy asks it for modules, the engine tells it which legs there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eddy.streams.deferral import Deferral
from eddy.streams.derived_filters import DerivedFilters
from eddy.streams.expiry import Expiry
from eddy.streams.legs import WindowClass
from eddy.streams.modules import Modules
from eddy.streams.placement import Placement
from eddy.streams.stored import Stored
from eddy.streams.stream_log import StreamLog
from eddy.streams.timeline import Intake, Timeline
from lineage.dictionary import Dictionary
from lineage.ingest import Ingestor
from lineage.schema import Schema, Type
from queries.bound import OutputColumn, Readable
from stems.derived import DerivedColumns
from stems.gathering import Gatherer
from stems.indexes import Indexes
from stems.own_ends import OwnEnds
from stems.row_ends import EndColumns
from stems.row_store import RowStore


class Source:
    """A stream with its rows, legs, modules and window classes."""

    #: what the names of its indexes begin with (semantics 23)
    stem_kind = "stem"
    #: whether region ids can be kept with its rows
    stores_ids = True

    def __init__(
        self,
        name: str,
        schema: Schema,
        time_column: int | None,
        timeline: Timeline,
        lateness_us: int,
        drop_late: bool,
        module_numbers: Iterator[int],
        number: int = -1,
        keep_us: int | None = None,
        key: tuple[int, ...] = (),
        end_column: int | None = None,
        make_intake: Callable[[Sequence[Dictionary | None]], Intake] | None = None,
    ) -> None:
        """`make_intake` makes another intake than that of a plain stream, from the dictionaries."""
        self.name = name
        #: tells it from an earlier stream of that name; -1 for what is no stream
        self.number = number
        self.schema = schema
        self.time_column = time_column
        self.timeline = timeline
        #: by column, those of texts; behind the schema's are the derived ones
        self.dictionaries = [Dictionary() if column.type is Type.STRING else None for column in schema.columns]
        self.ingestor = Ingestor(schema, time_column, self.dictionaries)
        if make_intake is None:
            self.intake = Intake(lateness_us, drop_late, front=timeline.advanced)
        else:
            self.intake = make_intake(self.dictionaries)
        taken_back = self.intake.takes_back
        #: the same as queries know it
        self.readable = Readable(schema, key=key, time=time_column, end=end_column, taken_back=taken_back)
        self.store = RowStore(schema)
        self.gatherer = Gatherer(self.store)
        #: the indexes of the row store that joins probe
        self.stems = Indexes(self.store)
        #: the columns of the row store that are computed
        self.derived = DerivedColumns(self.store, self.dictionaries)
        #: when rows leave windows that count rows
        self.row_ends = EndColumns(self.store)
        #: the ends that rows have of their own; None if they have none
        self.own_ends: OwnEnds | None = None
        if key or end_column is not None or taken_back:
            self.own_ends = OwnEnds(self.store, self.gatherer, key, end_column, taken_back)
        self.modules = Modules(name, self.store, self.dictionaries, module_numbers)
        filters = DerivedFilters(self.derived) if self.stores_ids else None
        self.placement = Placement(self.store, self.dictionaries, self.modules, filters, self.stores_ids)
        self.log = StreamLog(self.placement, self.modules, len(schema))
        self.deferral = Deferral(self)
        self.expiry = Expiry(self)
        #: the rows that later queries may see
        self.stored = Stored(self, keep_us)
        self._shared_outputs: dict[tuple[OutputColumn, ...], tuple[OutputColumn, ...]] = {}

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.schema.names

    def shared_outputs(self, columns: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
        """The same output columns as one object for all queries that select them; remembers the last thousand."""
        held = self._shared_outputs.get(columns)
        if held is None:
            if len(self._shared_outputs) >= 1024:
                del self._shared_outputs[next(iter(self._shared_outputs))]
            held = self._shared_outputs[columns] = columns
        return held

    # ---- reading

    def ranks_at(self, filter_: int, positions: np.ndarray, ranks: np.ndarray) -> None:
        """Fill in the ranks of rows held on a grouped filter; right for legs older than the row."""
        self.gatherer.ranks(filter_, self.modules.bank.filters[filter_].rank_of(), positions, ranks)

    def end_at(self, seq: int) -> int:
        """The end of the store after a commit that is still logged."""
        return self.log.end_at(seq)

    # ---- upkeep

    def compact_dictionaries(self) -> None:
        """Remove the strings that no row or query uses, once they are the larger part of a dictionary."""
        rows_held = self.store.end - self.store.watermark + self.intake.n_waiting
        for column, dictionary in enumerate(self.dictionaries):
            if dictionary is None or len(dictionary) < 65_536 or len(dictionary) < 4 * rows_held:
                continue
            pushed = column < len(self.schema)
            used = [self.store.used_codes(column), *(self.intake.used_codes(column) if pushed else ())]
            new_code = dictionary.compact(np.unique(np.concatenate(used)))
            self.store.recode(column, new_code)
            self.stems.recode(column)
            self.modules.bank.forget_codes()
            if not pushed:
                continue
            self.row_ends.recode(column)
            if self.own_ends is not None:
                self.own_ends.recode(column)
            self.intake.recode(column, new_code)
            self.placement.recode(column)

    def bytes(self) -> dict[str, int]:
        return {
            "rows": self.store.bytes(),
            "stems": self.stems.bytes(),
            "row_ends": self.row_ends.bytes() + (0 if self.own_ends is None else self.own_ends.bytes()),
            "waiting": self.intake.bytes(),
            "filters": self.modules.bank.bytes(),
            "candidates": self.placement.bytes(),
            "strings": sum(dictionary.bytes for dictionary in self.dictionaries if dictionary is not None),
        }

    def check(self) -> None:
        """All invariants of the source and its parts."""
        self.placement.check()
        for window in self.placement.classes.by_width:
            assert window.oldest >= self.store.watermark, "no window reaches below the watermark"
            if window.window.ends:
                self._check_lives(window)
        self.store.check()
        self.derived.check()
        self.stems.check()
        self.row_ends.check()
        if self.own_ends is not None:
            self.own_ends.check()
        self.intake.check()
        if self.placement.keeps_ids:
            self._check_ids()

    def _check_lives(self, window: WindowClass) -> None:
        """Assert that every row in a window is alive."""
        for page, at, stop in self.store.slices(window.oldest, self.store.end):
            alive = page.elements(slice(at, stop), window.window.width_us).alive_at(self.timeline.now)
            assert alive.all(), "a window holds no row that has left"

    def _check_ids(self) -> None:
        """Stored region ids agree with the values for every leg older than the row."""
        for f, filter_ in enumerate(self.modules.bank.filters):
            rank_of = filter_.rank_of()
            for window in self.placement.classes.values():
                for page, at, stop in self.store.slices(window.oldest, self.store.end):
                    if not window.window.ends_by_clock or page.ids is None or page.ids.shape[0] <= f:
                        continue
                    stored = rank_of[page.ids[f, at:stop]]
                    assert ((stored >= 0) & (stored < filter_.n_regions)).all(), "a stored id names a region"
