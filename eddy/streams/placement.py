"""Where the legs of a stream are placed: dense slots, whose bits rows are matched for, or entries of candidate indexes.

    active            bits of dense slots that rows are matched for: legs and their disjuncts
    legs_mask         bits of dense legs whose rows are listed
    slot_class[slot]  the window class of a dense slot; the same for sparse slots
    results[slot]     rows that satisfied the slot since it was assigned

A leg with many others that fix the same column to a value is found by that value, in a candidate index, and needs no bit. The
predicates of dense slots are applied by the modules of the stream (`eddy/streams/modules.py`).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from eddy.streams.derived_filters import DerivedFilters
from eddy.streams.legs import Clauses, Leg, LegReader, WindowClass, claim_slot
from eddy.streams.modules import Modules
from eddy.streams.outputs import Outputs
from eddy.streams.window_classes import WindowClasses
from filters.expressions.predicate import Atom, Condition, IndexAtom
from filters.index.candidates import CandidateIndex, float_columns, key_columns
from filters.values.intervals import Intervals
from lineage.bits import clear_bit, set_bit, slots_of
from lineage.dictionary import Dictionary
from lineage.slots import Slots, resized
from stems.row_store import RowStore
from windows.spec import WindowSpec

#: Legs that fix one column before a candidate index is made for it: a word of slots.
MIN_CANDIDATES = 64
#: Average legs per key value beyond which bits are cheaper than walking candidates.
MAX_PER_VALUE = 32


class Placement:
    """The legs of one stream and their places; `stores_ids`: rows that windows let go of are matched by region ids."""

    def __init__(
        self, store: RowStore, dictionaries: list[Dictionary | None], modules: Modules, derived: DerivedFilters | None,
        stores_ids: bool = True,
    ) -> None:  # fmt: skip
        self._store = store
        self._dictionaries = dictionaries
        self._modules = modules
        #: None: every residual is a predicate module
        self.derived = derived
        self.legs: dict[tuple[WindowSpec, Condition], Leg] = {}
        #: the legs of joins: apart from the others, for their rows are not listed
        self.held: dict[tuple[WindowSpec, Condition], Leg] = {}
        #: inputs of running joins that can be read in the log
        self.n_logged_joins = 0
        self.classes = WindowClasses()
        self.indexes: dict[int, CandidateIndex] = {}
        #: per column, legs that could be placed in a candidate index on it, in the order in which they came
        self._fixing: dict[int, dict[Leg, None]] = {}
        self.float_columns = float_columns(store.schema)
        self.slots = Slots(self._assign, self._resize)
        self.sparse_slots = Slots(self._assign_sparse, self._resize_sparse)
        self.active = np.zeros(1, np.uint64)
        self.legs_mask = np.zeros(1, np.uint64)
        self.slot_class = np.zeros(64, np.int32)
        self.results = np.zeros(64, np.int64)
        self.sparse_class = np.zeros(64, np.int32)
        self.sparse_results = np.zeros(64, np.int64)
        self.dense_outputs = Outputs()
        self.sparse_outputs = Outputs()
        self._sparse_leg: list[Leg | None] = [None] * 64
        self.clauses = Clauses()
        self._stores_ids = stores_ids
        #: whether region ids are kept with rows: some leg's window ends, or a join reads them
        self.keeps_ids = False

    @property
    def plain(self) -> bool:
        """Whether dense legs need grouped filters only, and nothing is kept with rows."""
        return not (self._modules.any_asked or self.clauses.n_clauses or self.indexes or self.keeps_ids)

    # ---- slots

    def _assign(self, slot: int) -> None:
        self.results[slot] = 0
        self._modules.on_assign(slot)

    def _assign_sparse(self, slot: int) -> None:
        self.sparse_results[slot] = 0
        for index in self.indexes.values():
            index.on_assign(slot)

    def _resize(self, n_words: int) -> None:
        self.active = resized(self.active, n_words, 0)
        self.legs_mask = resized(self.legs_mask, n_words, 0)
        self.slot_class = resized(self.slot_class, n_words * 64, 0)
        self.results = resized(self.results, n_words * 64, 0)
        self.dense_outputs.resize(n_words * 64)
        self._modules.resize(n_words)

    def _resize_sparse(self, n_words: int) -> None:
        self.sparse_class = resized(self.sparse_class, n_words * 64, 0)
        self.sparse_results = resized(self.sparse_results, n_words * 64, 0)
        self._sparse_leg = [*self._sparse_leg[: n_words * 64], *([None] * (n_words * 64 - len(self._sparse_leg)))]
        self.sparse_outputs.resize(n_words * 64)

    # ---- legs

    def leg(self, window: WindowSpec, condition: Condition, label: str) -> Leg:
        """The leg of that window and condition, made and placed if it is new; `label` names the modules made for it."""
        key = window, condition
        found = self.legs.get(key)
        if found is None:
            found = Leg(condition, self._window_class(window), label, self._store.end)
            self._place(found)
            self.legs[key] = found
            found.window.n_legs += 1
        return found

    def hold(self, window: WindowSpec, condition: Condition, label: str, logged: bool = False) -> Leg:
        """The leg of an input of a join: its rows are matched and kept for the window, but not listed.

        `logged`: what the join did can be read in the log. Operators are fed, and read nothing later.

        Its condition has no clauses (`filters/expressions/predicate.py`): what is kept with a row has to tell whether it is true.
        """
        assert not condition.clauses, "disjunctions of joins are predicate modules"
        found = self.held.get((window, condition))
        if found is None:
            found = Leg(condition, self._window_class(window), label, self._store.end)
            if not condition.never:
                self._place_dense(found, listed=False)
            self.held[found.key] = found
            found.window.n_held += 1
            self._keep_ids()
        found.n_joins += 1
        found.window.n_logged += logged
        self.n_logged_joins += logged
        return found

    def let_go(self, leg: Leg, logged: bool = False) -> None:
        """Release the leg of an input of a join."""
        leg.window.n_logged -= logged
        self.n_logged_joins -= logged
        leg.n_joins -= 1
        if not leg.n_joins:
            del self.held[leg.key]
            self._unplace(leg)
            leg.window.n_held -= 1
            self._tidy(leg.window)

    def add_reader(self, leg: Leg, query: LegReader) -> None:
        """Add a query to the readers of a leg."""
        leg.add(query)
        if leg.slot is not None:
            self._outputs_of(leg).add(leg.slot, query.id, query.born)

    def remove_reader(self, leg: Leg, query: LegReader) -> None:
        """Remove a query from the readers of a leg; a leg without readers is dropped."""
        leg.remove(query)
        if leg.slot is not None:
            heir = leg.some_query() if leg.queries else None
            self._outputs_of(leg).remove(leg.slot, query.id, None if heir is None else (heir.id, heir.born))
        if not leg.queries:
            self._drop_leg(leg)

    def _outputs_of(self, leg: Leg) -> Outputs:
        return self.dense_outputs if leg.index_column is None else self.sparse_outputs

    def _drop_leg(self, leg: Leg) -> None:
        """Drop a leg without readers: free its slots and predicates."""
        del self.legs[leg.key]
        for column in key_columns(leg.condition, self._store.schema):
            self._fixing[column].pop(leg, None)
        self._unplace(leg)
        leg.window.n_legs -= 1
        self._tidy(leg.window)

    def _tidy(self, window: WindowClass) -> None:
        """After a leg of a window class went: drop the class if it is empty, and give back room for slots."""
        if not window.n_legs and not window.n_held:
            self.classes.remove(window)
            self._modules.version += 1
        self._keep_ids()
        self.slots.shrink()
        self.sparse_slots.shrink()
        for f in self._modules.bank.restorable()[:1]:
            self._modules.bank.restore_table(f, self._predicates().get(f, {}))

    def _predicates(self) -> dict[int, dict[int, Intervals]]:
        """The predicates that the dense legs have, by filter and slot."""
        found: dict[int, dict[int, Intervals]] = {}
        for leg in (*self.legs.values(), *self.held.values()):
            if not leg.dense:
                continue
            placed = [(leg.slot, atom) for atom in leg.single()]
            for clause, slots in zip(leg.condition.clauses, leg.disjuncts, strict=True):
                placed.extend(zip(slots, clause, strict=True))
            for slot, atom in placed:
                if isinstance(atom, IndexAtom):
                    f = self._modules.bank.index(atom.position)
                    assert f is not None and slot is not None
                    found.setdefault(f, {})[slot] = atom.intervals
            for one in leg.derived:
                f = self._modules.bank.index(one.column.position)
                assert f is not None and leg.slot is not None
                found.setdefault(f, {})[leg.slot] = one.intervals
        return found

    def _window_class(self, window: WindowSpec) -> WindowClass:
        found = self.classes.get(window)
        if found is None:
            found = self.classes.add(window, self._store.end)
            self._modules.version += 1
            self._keep_ids()
        return found

    def _keep_ids(self) -> None:
        """Decide again whether region ids are kept with rows, after legs came or went."""
        keeps = self._stores_ids and (self.classes.any_ends or bool(self.held))
        self._modules.version += keeps != self.keeps_ids
        self.keeps_ids = keeps

    def _place(self, leg: Leg) -> None:
        if leg.condition.never:
            return
        column = self._index_column(leg)
        if column is not None:
            self._place_sparse(leg, column)
        else:
            self._place_dense(leg)

    def _place_dense(self, leg: Leg, listed: bool = True) -> None:
        leg.slot = self.slots.take()
        self._claim(leg.slot, leg)
        if listed:
            set_bit(self.legs_mask, leg.slot)
        if self.derived is not None:
            leg.derived = self.derived.place(leg.condition, self._modules.by_text)
            for one in leg.derived:
                self._modules.put(leg.slot, one.column.position, one.intervals)
        for atom in leg.single():
            self._modules.add(leg.slot, atom, leg.label)
        for clause in leg.condition.clauses:
            slots = []
            for atom in clause:
                slot = self.slots.take()
                self._claim(slot, leg)
                self._modules.add(slot, atom, leg.label)
                slots.append(slot)
            leg.disjuncts = (*leg.disjuncts, slots)
        if leg.disjuncts:
            self._modules.version += not self.clauses.n_clauses
            self.clauses.add(leg)

    def _claim(self, slot: int, leg: Leg) -> None:
        claim_slot(self.active, self.slot_class, slot, leg.window.number)

    def _release(self, slot: int) -> None:
        clear_bit(self.active, slot)
        self.slots.give_back(slot)

    def _place_sparse(self, leg: Leg, column: int) -> None:
        leg.slot = self.sparse_slots.take()
        leg.index_column = column
        self._sparse_leg[leg.slot] = leg
        self.sparse_class[leg.slot] = leg.window.number
        self.indexes[column].add(leg.slot, leg.condition)

    def _unplace(self, leg: Leg) -> None:
        if leg.slot is None:
            return
        if leg.index_column is not None:
            self.indexes[leg.index_column].remove(leg.slot)
            self._sparse_leg[leg.slot] = None
            self.sparse_slots.give_back(leg.slot)
            if not self.indexes[leg.index_column].n_entries:
                del self.indexes[leg.index_column]
                self._modules.version += 1
        else:
            for clause, slots in zip(leg.condition.clauses, leg.disjuncts, strict=True):
                for atom, slot in zip(clause, slots, strict=True):
                    self._modules.remove(slot, atom)
                    self._release(slot)
            if leg.disjuncts:
                self.clauses.remove(leg)
                self._modules.version += not self.clauses.n_clauses
                leg.disjuncts = ()
            for atom in leg.single():
                self._modules.remove(leg.slot, atom)
            for one in leg.derived:
                self._modules.take(leg.slot, one.column.position, one.intervals)
            if self.derived is not None:
                self.derived.release(leg.condition, leg.derived)
            leg.derived = ()
            clear_bit(self.legs_mask, leg.slot)
            self._release(leg.slot)
        leg.slot = leg.index_column = None

    # ---- candidate indexes

    def _index_column(self, leg: Leg) -> int | None:
        """The column by whose candidate index the leg should be found, None for a dense slot."""
        columns = key_columns(leg.condition, self._store.schema)
        best = None
        for column in columns:
            fixing = self._fixing.setdefault(column, {})
            fixing[leg] = None
            index = self.indexes.get(column)
            if index is None and len(fixing) >= MIN_CANDIDATES and self._spread(fixing, column):
                self._make_index(column, leg)
                index = self.indexes.get(column)
            if index is not None and index.n_entries <= MAX_PER_VALUE * (index.n_values + 1):
                if best is None or index.n_values > self.indexes[best].n_values:
                    best = column
        return best

    def _spread(self, legs: Collection[Leg], column: int) -> bool:
        """Whether the legs fix the column to enough different values."""
        values: set[object] = set()
        for leg in legs:
            for atom in leg.condition.conjuncts:
                if atom.position == column:
                    values.update(atom.intervals.points() or ())
        return len(legs) <= MAX_PER_VALUE * len(values)

    def _make_index(self, column: int, newcomer: Leg) -> None:
        """Move the legs that fix a column from bits to a candidate index."""
        self.indexes[column] = CandidateIndex(column, self._store.schema, self._dictionaries)
        for leg in [leg for leg in self._fixing[column] if leg is not newcomer and leg.dense]:
            results = self.leg_results(leg)
            readers = list(leg.queries)
            assert leg.slot is not None
            for k, query in enumerate(readers):
                heir = (readers[k + 1].id, readers[k + 1].born) if k + 1 < len(readers) else None
                self.dense_outputs.remove(leg.slot, query.id, heir)
            self._unplace(leg)
            self._place_sparse(leg, column)
            self.sparse_results[leg.slot] = results
            for query in readers:
                self.sparse_outputs.add(leg.slot, query.id, query.born)
        self._modules.version += 1

    def leg_results(self, leg: Leg) -> int:
        """The count of rows that satisfied the leg, kept on its slot."""
        if leg.slot is None:
            return 0
        return int((self.results if leg.index_column is None else self.sparse_results)[leg.slot])

    # ---- upkeep

    def recode(self, column: int) -> None:
        """The dictionary of a string column was compacted."""
        if column in self.indexes:
            self.indexes[column].recode()

    def bytes(self) -> int:
        return sum(index.bytes() for index in self.indexes.values())

    def check(self) -> None:
        """All invariants."""
        owned: set[int] = set()
        sparse: dict[int, set[int]] = {column: set() for column in self.indexes}
        modules: dict[str, set[int]] = {text: set() for text in self._modules.by_text}

        def expect(slot: int, atom: Atom) -> None:
            if not isinstance(atom, IndexAtom):
                modules[str(atom)].add(slot)

        for key, leg in (*self.legs.items(), *self.held.items()):
            assert leg.key == key and (leg.queries or leg.n_joins), "a leg has queries"
            assert bool(leg.n_joins) == (self.held.get(key) is leg), "joins have legs of their own"
            if leg.slot is not None and not leg.n_joins:
                held = sorted(self._outputs_of(leg).readers(leg.slot))
                assert held == sorted((query.id, query.born) for query in leg.queries), "outputs name the queries of each leg"
            assert all(leg.since <= query.born for query in leg.queries), "stored rows serve every query that counts them"
            assert self.classes[leg.window.window] is leg.window
            if leg.slot is None:
                assert leg.condition.never
            elif leg.index_column is not None:
                sparse[leg.index_column].add(leg.slot)
                assert self._sparse_leg[leg.slot] is leg and self.sparse_class[leg.slot] == leg.window.number
            else:
                owned.add(leg.slot)
                for atom in leg.single():
                    expect(leg.slot, atom)
                for clause, slots in zip(leg.condition.clauses, leg.disjuncts, strict=True):
                    for atom, slot in zip(clause, slots, strict=True):
                        owned.add(slot)
                        expect(slot, atom)
        assert set(slots_of(self.active).tolist()) == owned, "the active slots are those of legs"
        assert self.n_logged_joins == sum(window.n_logged for window in self.classes.values()), "windows know who is logged"
        self.slots.check(owned)
        self.sparse_slots.check({slot for slots in sparse.values() for slot in slots})
        self.clauses.check()
        self._modules.check(self._predicates(), modules)
        for column, index in self.indexes.items():
            index.check(sparse[column])
        self.classes.check()
