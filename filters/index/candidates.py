"""Queries that fix a key (`id = 17 AND temp > 30`): a hash from the key's value to the few queries that may match.

Where thousands of queries each ask for one value of the same column, most rows match almost none of them, and a bit per
query is mostly zeros. The candidate index skips the bits: a row looks its key up, walks the short list of queries on
that value, checks each one's other intervals on the row's own cells, and appends (slot, row) pairs.

    table[h]    (key value, first entry); the entry is EMPTY where there never was a value, NO_ENTRY where it lost its last
    entry[e]    one (slot, key value) in 32 bytes: next entry of the value, slot, and the first further condition
                `low <= order key of column <= high` (column NO_COLUMN: none); `more[e]` holds the others

A string key is the code of its text. A text that no row has brought yet has no code: its entries stand under a negative key
until `learn_strings` sees the text come. So a query never adds to a dictionary.

Slots here are a page of their own: these queries are in no bit matrix. A key of NULL matches nothing. Cost per row: one hash
look-up and the entries of that value. It wins over bits below some 40 candidates a row.
"""

from __future__ import annotations

import numpy as np

from filters.expressions.predicate import Condition
from filters.values.intervals import Intervals
from lineage.batch import TupleBatch
from lineage.dictionary import Dictionary
from lineage.kernels import Number, inline, kernel
from lineage.order_keys import order_key
from lineage.schema import KEY_MAX, KEY_MIN, Schema, Type

#: Further interval conditions an entry can check.
MAX_CHECKS = 3
#: Values of an IN list that still count as a key.
MAX_POINTS = 8

#: Heads of chains that hold no entry: of a value that never was, and of one whose entries have gone.
EMPTY = -2
NO_ENTRY = -1
#: Below this many values the hash table has room for sixteen times as many, beyond for four times.
FEW_VALUES = 512
#: Rows, and candidates, that `match_candidates` takes in one step; four arrays of that size stay in the nearest cache.
WORK = 512
#: Column of an entry without further conditions.
NO_COLUMN = 0xFFFF

U64 = np.uint64


@inline
def hash_key(key: Number) -> Number:
    return (U64(key) * U64(0x9E3779B97F4A7C15)) >> U64(29)


@kernel("int64(int64[:,::1], int64)")
def find_place(table: np.ndarray, key: int) -> int:
    """Where a key value is in the hash table, or the free place it would take."""
    mask = U64(len(table) - 1)
    at = hash_key(key) & mask
    while table[at, 1] != EMPTY and table[at, 0] != key:
        at = (at + U64(1)) & mask
    return int(at)


@inline
def find_heads(
    keys: np.ndarray, start: Number, stop: Number, is_float: bool, table: np.ndarray, heads: np.ndarray, rows: np.ndarray
) -> Number:
    """The rows start..stop whose value is asked for, and the first entry of each; returns how many there are.

    Two places are looked at without a branch: whether a row's value is asked for, and where it is, no predictor can know.
    """
    mask = U64(len(table) - 1)
    n = U64(0)
    for i in range(start, stop):
        key = order_key(keys[i], is_float)
        at = hash_key(key) & mask
        following = (at + U64(1)) & mask
        # all four are loaded before any is looked at: a load behind a condition would become a branch
        found, entry = table[at, 0], table[at, 1]
        next_found, next_entry = table[following, 0], table[following, 1]
        elsewhere = (entry != EMPTY) & (found != key)
        head = next_entry if elsewhere else entry
        if elsewhere & (next_entry != EMPTY) & (next_found != key):
            at = (following + U64(1)) & mask
            while table[at, 1] != EMPTY and table[at, 0] != key:
                at = (at + U64(1)) & mask
            head = table[at, 1]
        heads[n] = head
        rows[n] = i
        n += U64(head >= 0)
    return n


@inline
def check_candidates(
    cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, first: int, float_columns: np.ndarray, entries: np.ndarray,
    more: np.ndarray, work_entry: np.ndarray, work_row: np.ndarray, n_work: Number, out_slot: np.ndarray, out_row: np.ndarray,
    found: Number,
) -> Number:  # fmt: skip
    """Append the (slot, row) pairs of the candidates whose further conditions hold; returns how many pairs there are now."""
    for j in range(n_work):
        e, i = U64(work_entry[j]), np.int64(work_row[j])
        slot = entries[e, 0] >> 32
        checked = entries[e, 1] & 0xFFFF
        inside = True
        if checked != NO_COLUMN:
            value = order_key(cells[U64(checked), U64(first + i)], float_columns[U64(checked)] != 0)
            inside = (entries[e, 2] <= value) & (value <= entries[e, 3])
            if has_nulls and nulls[checked, first + i]:
                inside = False
        for k in range(entries[e, 1] >> 16):
            checked = more[e, k, 0]
            value = order_key(cells[checked, first + i], float_columns[checked] != 0)
            inside &= (more[e, k, 1] <= value) & (value <= more[e, k, 2])
            if has_nulls and nulls[checked, first + i]:
                inside = False
        out_slot[U64(found)] = slot
        out_row[U64(found)] = i
        found += inside
    return found


@kernel(
    "int64(int64[:,::1], uint8[:,::1], boolean, int64, int64, int64, uint8[::1], int64[:,::1], int64[:,::1], int64[:,:,::1], "
    "int32[:,::1], int32[::1], int32[::1])"
)
def match_candidates(
    cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, column: int, first: int, n_rows: int, float_columns: np.ndarray,
    table: np.ndarray, entries: np.ndarray, more: np.ndarray, work: np.ndarray, out_slot: np.ndarray, out_row: np.ndarray,
) -> int:  # fmt: skip
    """Append the matching (slot, row) pairs; -1 when there may be no room for them.

    In three steps, so that the loads of many rows overlap and a branch that was predicted wrong throws little away: find
    the rows' chains, walk them, check what they hold. `work` is scratch `[4, WORK]`.
    """
    is_float = float_columns[column] != 0
    found: Number = np.int64(0)
    heads, rows, work_entry, work_row = work[0], work[1], work[2], work[3]
    keys = cells[column, first : first + n_rows]
    for start in range(0, n_rows, WORK):
        n_heads = find_heads(keys, start, min(start + WORK, n_rows), is_float, table, heads, rows)
        n_work = U64(0)
        for j in range(n_heads):
            if has_nulls and nulls[column, first + rows[j]]:
                continue
            entry = np.int64(heads[j])
            while entry >= 0:
                if n_work == U64(WORK):
                    if found + WORK > len(out_slot):
                        return -1
                    found = check_candidates(
                        cells, nulls, has_nulls, first, float_columns, entries, more, work_entry, work_row, n_work, out_slot,
                        out_row, found,
                    )  # fmt: skip
                    n_work = U64(0)
                work_entry[n_work] = entry
                work_row[n_work] = rows[j]
                n_work += U64(1)
                entry = np.int64(np.int32(entries[U64(entry), 0]))
        if found + np.int64(n_work) > len(out_slot):
            return -1
        found = check_candidates(
            cells, nulls, has_nulls, first, float_columns, entries, more, work_entry, work_row, n_work, out_slot, out_row, found,
        )  # fmt: skip
    return int(found)


@kernel("void(int32[::1], int64, int64[::1])")
def count_pairs(pair_slot: np.ndarray, n_pairs: int, results: np.ndarray) -> None:
    """Add each pair to its slot's count of results."""
    for j in range(n_pairs):
        results[pair_slot[j]] += 1


@kernel("int64(int32[::1], int32[::1], int64, int32[::1], int64[::1], int32[::1], int64[::1], int64[::1], int32[::1])")
def group_pairs(
    pair_slot: np.ndarray, pair_row: np.ndarray, n_pairs: int, count: np.ndarray, query_of: np.ndarray, slots: np.ndarray,
    listed: np.ndarray, offsets: np.ndarray, rows: np.ndarray,
) -> int:  # fmt: skip
    """Pairs grouped by slot, in the order in which slots first occur: the slots, their queries, and their rows.

    `count` must be 0 and is 0 again afterwards.
    """
    n = 0
    for j in range(n_pairs):
        slot = pair_slot[j]
        if count[slot] == 0:
            slots[n] = slot
            n += 1
        count[slot] += 1
    at = np.int64(0)
    for k in range(n):
        slot = slots[k]
        listed[k] = query_of[slot]
        offsets[k] = at
        at += count[slot]
        count[slot] = offsets[k]
    offsets[n] = at
    for j in range(n_pairs):
        slot = pair_slot[j]
        rows[count[slot]] = pair_row[j]
        count[slot] += 1
    for k in range(n):
        count[slots[k]] = 0
    return n


def key_columns(condition: Condition, schema: Schema) -> list[int]:
    """The columns by which a condition could be indexed here; empty when it does not fit."""
    if condition.residuals or condition.clauses or not 0 < len(condition.conjuncts) <= MAX_CHECKS + 1:
        return []
    points = [atom.position for atom in condition.conjuncts if 1 <= len(atom.intervals.points() or ()) <= MAX_POINTS]
    if not points:
        return []
    for atom in condition.conjuncts:
        simple = len(atom.intervals.spans) == 1 and not atom.intervals.null
        if not simple and atom.position not in points:
            return []
    # a condition that cannot be checked on cells must be the key: several values, or a text
    strict = [
        atom.position
        for atom in condition.conjuncts
        if len(atom.intervals.spans) > 1 or schema.columns[atom.position].type is Type.STRING
    ]
    if not strict:
        return points
    return strict if len(strict) == 1 and strict[0] in points else []


class CandidateIndex:
    """The queries of one stream that fix one column to a value."""

    def __init__(self, column: int, schema: Schema, dictionaries: list[Dictionary | None]) -> None:
        self.column = column
        self.schema = schema
        self._dictionary = dictionaries[column]
        self._table = _empty_table(64)
        #: values with a place in the hash table, and how many of them have entries
        self._places = 0
        self.n_values = 0
        self._entries = np.zeros((64, 4), np.int64)
        self._more = np.zeros((64, MAX_CHECKS - 1, 3), np.int64)
        self._work = np.zeros((4, WORK), np.int32)
        self._free = list(range(63, -1, -1))
        #: slot -> its (key, entry) pairs
        self._of_slot: dict[int, list[tuple[int, int]]] = {}
        #: string keys: the text of each key in use, and the negative keys of texts that no row has brought yet
        self._text_of: dict[int, str] = {}
        self._unseen: dict[str, int] = {}
        self._next_unseen = -1
        self._n_seen = 0

    @property
    def n_entries(self) -> int:
        return len(self._entries) - len(self._free)

    def add(self, slot: int, condition: Condition) -> None:
        """Index a condition for which `key_columns` names this column."""
        checks = []
        key_atom: Intervals | None = None
        for atom in condition.conjuncts:
            if atom.position == self.column:
                key_atom = atom.intervals
            else:
                checks.append((atom.position, *self._closed(atom.intervals)))
        assert key_atom is not None
        # known before it is complete: linking may lay the hash table out anew, from what is known
        held = self._of_slot[slot] = []
        for point in key_atom.points() or ():
            key = self._key_of(point)
            entry = self._new_entry()
            column, low, high = checks[0] if checks else (NO_COLUMN, 0, 0)
            self._entries[entry] = (slot << 32, column | max(0, len(checks) - 1) << 16, low, high)
            for k, check in enumerate(checks[1:]):
                self._more[entry, k] = check
            self._link(key, entry)
            held.append((key, entry))

    def remove(self, slot: int) -> None:
        for key, entry in self._of_slot.pop(slot):
            self._unlink(key, entry)
            self._free.append(entry)
            if self._dictionary is not None and int(self._table[find_place(self._table, key), 1]) < 0:
                self._unseen.pop(self._text_of.pop(key), None)

    def _key_of(self, point: object) -> int:
        """The key as cells hold it."""
        dictionary = self._dictionary
        if dictionary is None:
            assert isinstance(point, int)
            return point
        assert isinstance(point, str)
        self.learn_strings()
        key = dictionary.find(point)
        if key < 0:
            key = self._unseen.get(point, self._next_unseen)
            if key == self._next_unseen:
                self._unseen[point] = key
                self._next_unseen -= 1
        self._text_of[key] = point
        return key

    def learn_strings(self) -> None:
        """Give the texts that rows have brought since the last call their codes."""
        dictionary = self._dictionary
        if dictionary is None or len(dictionary) == self._n_seen:
            return
        if self._unseen:
            for code in range(self._n_seen, len(dictionary)):
                key = self._unseen.pop(dictionary.strings[code], None)
                if key is not None:
                    self._rename(key, code)
        self._n_seen = len(dictionary)

    def _rename(self, old: int, new: int) -> None:
        """Move the entries of one key to another that has none."""
        at = find_place(self._table, old)
        entry = int(self._table[at, 1])
        moved = []
        while entry >= 0:
            moved.append(entry)
            entry = self._next(entry)
        for entry in moved:
            # room first: laying the table out anew between unlinking and linking would link the entry twice
            self._make_room()
            self._unlink(old, entry)
            self._link(new, entry)
            held = self._of_slot[int(self._entries[entry, 0]) >> 32]
            held[held.index((old, entry))] = (new, entry)
        self._text_of[new] = self._text_of.pop(old)

    def _closed(self, intervals: Intervals) -> tuple[int, int]:
        lo, hi = intervals.spans[0]
        return (KEY_MIN if lo is None else lo), (KEY_MAX if hi is None else hi - 1)

    def _new_entry(self) -> int:
        if not self._free:
            have = len(self._entries)
            self._entries = np.concatenate([self._entries, np.zeros_like(self._entries)])
            self._more = np.concatenate([self._more, np.zeros_like(self._more)])
            self._free = list(range(2 * have - 1, have - 1, -1))
        return self._free.pop()

    # ---- chains

    def _next(self, entry: int) -> int:
        low = int(self._entries[entry, 0]) & 0xFFFFFFFF
        return low - (1 << 32) if low >> 31 else low

    def _set_next(self, entry: int, following: int) -> None:
        self._entries[entry, 0] = (int(self._entries[entry, 0]) >> 32 << 32) | (following & 0xFFFFFFFF)

    def _link(self, key: int, entry: int) -> None:
        """Put an entry in front of its value's chain."""
        self._make_room()
        at = find_place(self._table, key)
        head = int(self._table[at, 1])
        self._places += head == EMPTY
        self.n_values += head < 0
        self._set_next(entry, head if head >= 0 else NO_ENTRY)
        self._table[at] = (key, entry)

    def _make_room(self) -> None:
        """Room for one more value."""
        if 2 * (self._places + 1) > len(self._table):
            # few values leave most places free, so that most rows are done at the first; many must stay in a near cache
            self._rehash((16 if self.n_values < FEW_VALUES else 4) * (self.n_values + 1))

    def _unlink(self, key: int, entry: int) -> None:
        at = find_place(self._table, key)
        before = int(self._table[at, 1])
        if before == entry:
            self._table[at, 1] = self._next(entry)
        else:
            while self._next(before) != entry:
                before = self._next(before)
            self._set_next(before, self._next(entry))
        self.n_values -= int(self._table[at, 1]) == NO_ENTRY

    def _rehash(self, at_least: int) -> None:
        self._table = _empty_table(max(64, 1 << (at_least - 1).bit_length()))
        self._places = self.n_values = 0
        for held in self._of_slot.values():
            for key, entry in held:
                self._link(key, entry)

    def match(self, batch: TupleBatch, float_columns: np.ndarray, out_slot: np.ndarray, out_row: np.ndarray) -> int:
        """`match_candidates` on this index."""
        return match_candidates(
            batch.cells, batch.nulls, batch.has_nulls, self.column, batch.first, batch.n_rows, float_columns, self._table,
            self._entries, self._more, self._work, out_slot, out_row,
        )  # fmt: skip

    def recode(self) -> None:
        """The dictionary of the key column was compacted: texts have other codes now, or none."""
        dictionary = self._dictionary
        assert dictionary is not None
        texts = self._text_of
        self._text_of, self._unseen = {}, {}
        self._n_seen = len(dictionary)
        self._of_slot = {slot: [(self._key_of(texts[key]), entry) for key, entry in held] for slot, held in self._of_slot.items()}
        self._rehash(len(self._table))

    def on_assign(self, slot: int) -> None:
        """A slot has a new owner, which is not indexed yet."""
        if slot in self._of_slot:
            self.remove(slot)

    def resize(self, n_words: int) -> None:
        """Do nothing: entries hold slot numbers, and no array here has the width of the slots."""

    def bytes(self) -> int:
        return self.n_entries * 8 * (4 + 3 * (MAX_CHECKS - 1)) + self.n_values * 16

    def check(self, placed: set[int]) -> None:
        """`placed` are the slots indexed here."""
        assert set(self._of_slot) == placed, "an entry for each slot placed here"
        chained: dict[int, list[int]] = {}
        for slot, held in self._of_slot.items():
            for key, entry in held:
                chained.setdefault(key, []).append(entry)
                assert int(self._entries[entry, 0]) >> 32 == slot, "an entry names its slot"
        assert len(chained) == self.n_values, "values are counted"
        for key, expected in chained.items():
            entry, found = int(self._table[find_place(self._table, key), 1]), []
            while entry >= 0:
                found.append(entry)
                entry = self._next(entry)
            assert sorted(found) == sorted(expected), "a value's chain holds exactly its entries"


def _empty_table(size: int) -> np.ndarray:
    table = np.zeros((size, 2), np.int64)
    table[:, 1] = EMPTY
    return table


def float_columns(schema: Schema) -> np.ndarray:
    """Which columns hold float cells, as the kernels take it."""
    return np.array([column.type is Type.FLOAT for column in schema.columns], np.uint8)
