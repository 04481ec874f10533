"""Queries that fix a key (`id = 17 AND temp > 30`): a hash from the key's value to the few queries that may match.

Where thousands of queries each ask for one value of the same column, most rows match almost none of them, and a bit per
query is mostly zeros. The candidate index skips the bits: a row looks its key up, walks the short list of queries on
that value, checks each one's other intervals on the row's own cells, and appends (slot, row) pairs.

    entry e   one (slot, key value): `entry_next` chains the entries of one value, `checks[e]` holds up to `MAX_CHECKS`
              further conditions `low <= order key of column <= high` (column -1: none)

Slots here are a page of their own: these queries are in no bit matrix. A key of NULL matches nothing. Cost per row: one hash
look-up and the entries of that value. It wins over bits below some 40 candidates a row (design 3).
"""

from __future__ import annotations

import numpy as np

from filters.intervals import Intervals
from filters.predicate import Condition
from filters.regions import order_key
from lineage.dictionary import Dictionary
from lineage.kernels import Number, inline, kernel
from lineage.schema import KEY_MAX, KEY_MIN, Schema, Type

#: Further interval conditions an entry can check.
MAX_CHECKS = 3
#: Values of an IN list that still count as a key.
MAX_POINTS = 8

U64 = np.uint64


@inline
def hash_key(key: Number) -> Number:
    return (U64(key) * U64(0x9E3779B97F4A7C15)) >> U64(29)


@kernel("void(int64[::1], int32[::1], int64, int32, int32[::1])")
def link(keys: np.ndarray, heads: np.ndarray, key: int, entry: int, entry_next: np.ndarray) -> None:
    """Put an entry in front of its value's chain; `heads` is -1 where the hash table is free."""
    mask = U64(len(keys) - 1)
    at = hash_key(key) & mask
    while heads[at] != -1 and keys[at] != key:
        at = (at + U64(1)) & mask
    keys[at] = key
    entry_next[entry] = heads[at] if heads[at] >= 0 else -1
    heads[at] = entry


@kernel("boolean(int64[::1], int32[::1], int64, int32, int32[::1])")
def unlink(keys: np.ndarray, heads: np.ndarray, key: int, entry: int, entry_next: np.ndarray) -> bool:
    """Take an entry out of its chain; a value left without entries keeps its place as -2. Returns whether it is the last."""
    mask = U64(len(keys) - 1)
    at = hash_key(key) & mask
    while keys[at] != key or heads[at] == -1:
        at = (at + U64(1)) & mask
    if heads[at] == entry:
        heads[at] = entry_next[entry] if entry_next[entry] >= 0 else -2
    else:
        before = heads[at]
        while entry_next[before] != entry:
            before = entry_next[before]
        entry_next[before] = entry_next[entry]
    return bool(heads[at] == -2)


@kernel(
    "int64(int64[:,::1], uint8[:,::1], boolean, int64, int64, int64, uint8[::1], int64[::1], int32[::1], int32[::1], int32[::1], "
    "int64[:,:,::1], int32[::1], uint8[::1], int32[::1], int32[::1])"
)
def match_candidates(
    cells: np.ndarray,
    nulls: np.ndarray,
    has_nulls: bool,
    column: int,
    first: int,
    n_rows: int,
    float_columns: np.ndarray,
    keys: np.ndarray,
    heads: np.ndarray,
    entry_next: np.ndarray,
    entry_slot: np.ndarray,
    checks: np.ndarray,
    slot_class: np.ndarray,
    class_on: np.ndarray,
    out_slot: np.ndarray,
    out_row: np.ndarray,
) -> int:
    """Append the matching (slot, row) pairs of window classes that are on; -1 when they do not fit."""
    mask = U64(len(keys) - 1)
    is_float = float_columns[column] != 0
    found = 0
    room = len(out_slot)
    for i in range(n_rows):
        if has_nulls and nulls[column, first + i]:
            continue
        key = order_key(cells[column, first + i], is_float)
        at = hash_key(key) & mask
        while heads[at] != -1 and keys[at] != key:
            at = (at + U64(1)) & mask
        entry = heads[at]
        while entry >= 0:
            slot = entry_slot[entry]
            inside = class_on[slot_class[slot]] != 0
            for k in range(MAX_CHECKS):
                checked = checks[entry, k, 0]
                if checked < 0:
                    break
                if has_nulls and nulls[checked, first + i]:
                    inside = False
                    break
                value = order_key(cells[checked, first + i], float_columns[checked] != 0)
                inside &= (checks[entry, k, 1] <= value) & (value <= checks[entry, k, 2])
            if found == room:
                return -1
            out_slot[found] = slot
            out_row[found] = i
            found += inside
            entry = entry_next[entry]
    return found


@kernel("void(int32[::1], int64, int64[::1])")
def count_pairs(pair_slot: np.ndarray, n_pairs: int, results: np.ndarray) -> None:
    """Add each pair to its slot's count of results."""
    for j in range(n_pairs):
        results[pair_slot[j]] += 1


@kernel("int64(int32[::1], int32[::1], int64, int32[::1], int32[::1], int64[::1], int32[::1])")
def group_pairs(
    pair_slot: np.ndarray,
    pair_row: np.ndarray,
    n_pairs: int,
    count: np.ndarray,
    listed: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
) -> int:
    """Pairs grouped by slot, in the order in which slots first occur; `count` must be 0 and is 0 again afterwards."""
    n = 0
    for j in range(n_pairs):
        slot = pair_slot[j]
        if count[slot] == 0:
            listed[n] = slot
            n += 1
        count[slot] += 1
    at = np.int64(0)
    for k in range(n):
        slot = listed[k]
        offsets[k] = at
        at += count[slot]
        count[slot] = offsets[k]
    offsets[n] = at
    for j in range(n_pairs):
        slot = pair_slot[j]
        rows[count[slot]] = pair_row[j]
        count[slot] += 1
    for k in range(n):
        count[listed[k]] = 0
    return n


def key_columns(condition: Condition, schema: Schema) -> list[int]:
    """The columns by which a condition could be indexed here; empty when it does not fit."""
    if condition.residuals or condition.clauses or not 0 < len(condition.conjuncts) <= MAX_CHECKS + 1:
        return []
    points = [atom.position for atom in condition.conjuncts if len(atom.intervals.points() or ()) in range(1, MAX_POINTS + 1)]
    for atom in condition.conjuncts:
        simple = len(atom.intervals.spans) == 1 and not atom.intervals.null
        if schema.columns[atom.position].type is Type.STRING:
            simple = simple and atom.intervals.points() is not None
        if not simple and atom.position not in points:
            return []
    several = [atom.position for atom in condition.conjuncts if len(atom.intervals.spans) > 1]
    return points if not several else several if len(several) == 1 else []


class CandidateIndex:
    """The queries of one stream that fix one column to a value."""

    def __init__(self, column: int, schema: Schema, dictionaries: list[Dictionary | None]) -> None:
        self.column = column
        self.schema = schema
        self.dictionaries = dictionaries
        self._keys = np.zeros(64, np.int64)
        self._heads = np.full(64, -1, np.int32)
        #: values with a place in the hash table, and how many of them have entries
        self._places = 0
        self.n_values = 0
        self._next = np.full(64, -1, np.int32)
        self._slot = np.zeros(64, np.int32)
        self._checks = np.full((64, MAX_CHECKS, 3), -1, np.int64)
        self._free = list(range(63, -1, -1))
        #: slot -> its (key, entry) pairs
        self._entries: dict[int, list[tuple[int, int]]] = {}

    @property
    def n_entries(self) -> int:
        return len(self._next) - len(self._free)

    def add(self, slot: int, condition: Condition) -> None:
        """Index a condition for which `key_columns` names this column."""
        checks = []
        key_atom: Intervals | None = None
        for atom in condition.conjuncts:
            if atom.position == self.column:
                key_atom = atom.intervals
            else:
                checks.append((atom.position, *self._closed(atom.position, atom.intervals)))
        assert key_atom is not None
        held = []
        for point in key_atom.points() or ():
            key = self._cell_key(self.column, point)
            entry = self._new_entry()
            self._slot[entry] = slot
            self._checks[entry, :, 0] = -1
            for k, check in enumerate(checks):
                self._checks[entry, k] = check
            self._link(key, entry)
            held.append((key, entry))
        self._entries[slot] = held

    def remove(self, slot: int) -> None:
        for key, entry in self._entries.pop(slot):
            if unlink(self._keys, self._heads, key, entry, self._next):
                self.n_values -= 1
            self._free.append(entry)

    def _cell_key(self, position: int, point: object) -> int:
        """The order key as cells hold it: strings by their code, which is taken in if it is new."""
        dictionary = self.dictionaries[position]
        if dictionary is not None:
            assert isinstance(point, str)
            return dictionary.code(point)
        assert isinstance(point, int)
        return point

    def _closed(self, position: int, intervals: Intervals) -> tuple[int, int]:
        lo, hi = intervals.spans[0]
        if self.dictionaries[position] is not None:
            code = self._cell_key(position, lo)
            return code, code
        return (KEY_MIN if lo is None else lo), (KEY_MAX if hi is None else hi - 1)

    def _new_entry(self) -> int:
        if not self._free:
            have = len(self._next)
            self._next = np.concatenate([self._next, np.full(have, -1, np.int32)])
            self._slot = np.concatenate([self._slot, np.zeros(have, np.int32)])
            self._checks = np.concatenate([self._checks, np.full((have, MAX_CHECKS, 3), -1, np.int64)])
            self._free = list(range(2 * have - 1, have - 1, -1))
        return self._free.pop()

    def _link(self, key: int, entry: int) -> None:
        if 2 * (self._places + 1) > len(self._keys):
            self._rehash(4 * (self.n_values + 1))
        head = self._head(key)
        self._places += head == -1
        self.n_values += head < 0
        link(self._keys, self._heads, key, entry, self._next)

    def _head(self, key: int) -> int:
        mask = len(self._keys) - 1
        at = ((key * 0x9E3779B97F4A7C15) & (2**64 - 1)) >> 29 & mask
        while self._heads[at] != -1 and self._keys[at] != key:
            at = (at + 1) & mask
        return int(self._heads[at])

    def _rehash(self, at_least: int) -> None:
        size = max(64, 1 << (at_least - 1).bit_length())
        self._keys = np.zeros(size, np.int64)
        self._heads = np.full(size, -1, np.int32)
        self._places = self.n_values = 0
        for entries in self._entries.values():
            for key, entry in entries:
                head = self._head(key)
                self._places += head == -1
                self.n_values += head < 0
                link(self._keys, self._heads, key, entry, self._next)

    def match(
        self, cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, first: int, n_rows: int, float_columns: np.ndarray,
        slot_class: np.ndarray, class_on: np.ndarray, out_slot: np.ndarray, out_row: np.ndarray,
    ) -> int:  # fmt: skip
        """`match_candidates` on this index."""
        return match_candidates(
            cells, nulls, has_nulls, self.column, first, n_rows, float_columns, self._keys, self._heads, self._next, self._slot,
            self._checks, slot_class, class_on, out_slot, out_row,
        )  # fmt: skip

    def used_codes(self, position: int) -> set[int]:
        """The dictionary codes of a column that entries name."""
        codes: set[int] = set()
        for entries in self._entries.values():
            for key, entry in entries:
                if position == self.column:
                    codes.add(key)
                codes.update(int(check[1]) for check in self._checks[entry] if check[0] == position)
        return codes

    def recode(self, position: int, new_code: np.ndarray) -> None:
        """The dictionary of a column was compacted."""
        at = self._checks[:, :, 0] == position
        for bound in (1, 2):
            self._checks[:, :, bound][at] = new_code[self._checks[:, :, bound][at]]
        if position == self.column:
            self._entries = {
                slot: [(int(new_code[key]), entry) for key, entry in entries] for slot, entries in self._entries.items()
            }
            self._rehash(len(self._keys))

    def bytes(self) -> int:
        return self.n_entries * (8 + 8 * 3 * MAX_CHECKS) + self.n_values * 12

    def check(self, slots: set[int]) -> None:
        assert set(self._entries) == slots, "an entry for each slot placed here"
        chained: dict[int, list[int]] = {}
        for entries in self._entries.values():
            for key, entry in entries:
                chained.setdefault(key, []).append(entry)
        assert len(chained) == self.n_values, "values are counted"
        for key, expected in chained.items():
            entry, found = self._head(key), []
            while entry >= 0:
                found.append(entry)
                entry = int(self._next[entry])
            assert sorted(found) == sorted(expected), "a value's chain holds exactly its entries"


def float_columns(schema: Schema) -> np.ndarray:
    """Which columns hold float cells, as the kernels take it."""
    return np.array([column.type is Type.FLOAT for column in schema.columns], np.uint8)
