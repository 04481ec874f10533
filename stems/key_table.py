"""The hash table from a key to the newest row that has it: extendible hashing, so that it never grows or shrinks at a stroke.

The table is many **segments**, each a small open-addressing table; a directory of `2 ** depth` entries leads from the first
bits of a key's hash to its segment. A full segment is laid out anew, larger, without its dead keys, or split in two by one more
bit; a light one shrinks or joins its buddy. One step touches at most two segments of `max_places` places (tens of microseconds)
whatever the size of the table, and new memory is used a segment at a time. (Keys made to collide, or hashes of several columns
that do, share a segment that is as large as they need.)

    segment = [places in use, limit, place 0, place 1, ...]      int64 words; a place is two words
    place   = (key word, head)                                   head = 0: never used
    head    = (position + 1) << COUNT_BITS | count               of the key's newest row (see `stems/links.py`)

A place whose position is below the watermark is **dead**: nobody needs to visit it when its rows expire. A search passes
over it, a new key may take it, a segment drops it when it is laid out anew. A segment's limit is from 7/16 to 5/8 of its
places, so a search is short, and differs between segments: keys spread so evenly that all of them would else be full at the
same time. A key word is the key itself (one column) or a hash of it (several); different keys may share a hash, and then
have a place each.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel
from lineage.memory import load_int64, store_int64

U64 = np.uint64

#: Words before the first place: places in use, and how many may be.
HEADER = 2
#: Low bits of a head that count the key's rows since the last try to seal them.
COUNT_BITS = 7
COUNT_MASK = (1 << COUNT_BITS) - 1
#: The head of a key that lost all its rows by deletion: dead at any watermark, but not "never used".
NO_ROWS = 1

#: Places of a new table, and beyond which a segment splits: 64 KB, laid out anew in some 30 microseconds.
MIN_PLACES = 16
MAX_PLACES = 4096
#: Places that are looked at first to see whether a segment is light.
SAMPLE = 128
#: Bits of the hash the directory may use. Keys that agree in more share a segment however large it gets.
MAX_DEPTH = 24


@inline
def hash_word(word: Number) -> Number:
    """A bijection of 64-bit words whose first bits spread evenly over any arithmetic progression (Fibonacci hashing).

    So keys that are numbered one after the other nearly never collide. The upper half is folded in for floats, whose lower
    half is mostly zeros.
    """
    return (U64(word) ^ (U64(word) >> U64(32))) * U64(0x9E3779B97F4A7C15)


@inline
def directory_index(h: Number, shift: Number) -> Number:
    """The first bits of a hash; `shift` is 63 - depth."""
    return (h >> U64(1)) >> U64(shift)


@inline
def first_place(h: Number, mask: Number, place_shift: Number) -> Number:
    """Where a search in a segment begins: the bits of the hash after those that lead to the segment."""
    return (h >> U64(place_shift)) & U64(mask)


@kernel("int64(int64, int64)")
def locate_segment(word: int, shift: int) -> int:
    """The directory entry of a key word."""
    return int(directory_index(hash_word(word), shift))


@kernel("int64(int64, int64, int64)")
def place_of(word: int, mask: int, place_shift: int) -> int:
    """Where a search for a key word begins; for checks."""
    return int(first_place(hash_word(word), mask, place_shift))


@kernel("int64(int64, int64, int64)")
def count_live(segment: int, n_places: int, watermark: int) -> int:
    """Keys of a segment whose newest row is not dead."""
    live = np.int64(0)
    lowest = np.int64(watermark + 1) << COUNT_BITS
    for at in range(n_places):
        live += load_int64(segment, HEADER + 2 * at + 1) >= lowest
    return int(live)


@kernel("int64(int64, int64, int64, int64)")
def count_upper(segment: int, n_places: int, watermark: int, bit: int) -> int:
    """Live keys of a segment whose hash has this bit set."""
    upper = np.int64(0)
    lowest = np.int64(watermark + 1) << COUNT_BITS
    for at in range(n_places):
        set_ = (hash_word(load_int64(segment, HEADER + 2 * at)) >> U64(bit)) & U64(1)
        upper += np.int64(set_) & np.int64(load_int64(segment, HEADER + 2 * at + 1) >= lowest)
    return int(upper)


@kernel("void(int64, int64, int64, int64, int64[:,::1])")
def move_live(segment: int, n_places: int, watermark: int, bit: int, targets: np.ndarray) -> None:
    """Copy the live places of a segment to one or two others, by one bit of their hash; see `KeySegment.entry` for `targets`."""
    lowest = np.int64(watermark + 1) << COUNT_BITS
    for place in range(n_places):
        head = load_int64(segment, HEADER + 2 * place + 1)
        if head >= lowest:
            word = load_int64(segment, HEADER + 2 * place)
            h = hash_word(word)
            target = np.int64((h >> U64(bit)) & U64(1)) if len(targets) == 2 else 0
            address = targets[target, 0]
            mask = U64(targets[target, 1])
            at = first_place(h, mask, targets[target, 2])
            while load_int64(address, HEADER + 2 * np.int64(at) + 1) != 0:
                at = (at + U64(1)) & mask
            store_int64(address, HEADER + 2 * np.int64(at), word)
            store_int64(address, HEADER + 2 * np.int64(at) + 1, head)
            store_int64(address, 0, load_int64(address, 0) + 1)


class KeySegment:
    """The keys whose hash begins with the `depth` bits of `prefix`."""

    __slots__ = ("depth", "prefix", "n_places", "words", "address")

    def __init__(self, depth: int, prefix: int, n_places: int) -> None:
        self.depth = depth
        self.prefix = prefix
        self.n_places = n_places
        self.words = np.zeros(HEADER + 2 * n_places, np.int64)
        # small ones need room for one key more than they are made for
        share = (7 + 3 * (prefix * 0x9E3779B1 % 1024) / 1024) / 16 if n_places >= 64 else 1 / 2
        self.words[1] = int(n_places * share)
        self.address = int(self.words.ctypes.data)

    def __getstate__(self) -> tuple[int, int, int, np.ndarray]:
        return self.depth, self.prefix, self.n_places, self.words

    def __setstate__(self, state: tuple[int, int, int, np.ndarray]) -> None:
        self.depth, self.prefix, self.n_places, self.words = state
        self.address = int(self.words.ctypes.data)

    @property
    def used(self) -> int:
        return int(self.words[0])

    def entry(self) -> tuple[int, int, int]:
        """The directory's entry: address, places - 1, and the position of the first place's bits in a hash."""
        n_places = self.n_places
        return self.address, n_places - 1, 65 - self.depth - n_places.bit_length()

    def places(self) -> np.ndarray:
        """`[places, 2]`: key word and head."""
        return self.words[HEADER:].reshape(-1, 2)


class KeyTable:
    """The segments and their directory: kernels search it (`stems/key_search.py`) and put keys in (`stems/chain_changes.py`)."""

    def __init__(self, min_places: int = MIN_PLACES, max_places: int = MAX_PLACES) -> None:
        self._min_places = min_places
        self._max_places = max_places
        #: steps taken, and the most places that one of them has touched
        self.steps = {"grown": 0, "split": 0, "shrunk": 0, "merged": 0}
        self.longest_step = 0
        self.clear()

    def clear(self) -> None:
        """Forget every key."""
        self.depth = 0
        #: segments as deep as the directory
        self._n_deepest = 1
        #: where the next `sweep` looks
        self._swept = 0
        #: `KeySegment.entry` per directory entry (and a word that makes them lie even), and the segments themselves
        self.directory = np.zeros((1, 4), np.int64)
        self._segment_of: list[KeySegment] = [KeySegment(0, 0, self._min_places)]
        self._enter(self._segment_of[0])

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "directory"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self.directory = np.zeros((len(self._segment_of), 4), np.int64)
        self.directory[:, :3] = [segment.entry() for segment in self._segment_of]

    @property
    def shift(self) -> int:
        """The shift that `directory_index` takes."""
        return 63 - self.depth

    def _range(self, segment: KeySegment) -> tuple[int, int]:
        """The directory entries of a segment."""
        width = self.depth - segment.depth
        return segment.prefix << width, (segment.prefix + 1) << width

    def _enter(self, segment: KeySegment) -> None:
        first, last = self._range(segment)
        self.directory[first:last, :3] = segment.entry()
        self._segment_of[first:last] = [segment] * (last - first)

    def _places_for(self, live: int) -> int:
        """Places for so many keys: at most a third in use, so many more can come before the next step."""
        return max(self._min_places, 1 << max(0, 3 * live - 1).bit_length())

    def _places_for_half(self, live: int) -> int:
        """The same for half of a split, which is made larger than a segment should be only where nearly all keys went to it."""
        wanted = self._places_for(live)
        return min(wanted, self._max_places) if 8 * live <= 3 * self._max_places else wanted

    def _count(self, segment: KeySegment, watermark: int) -> int:
        return count_live(segment.address, segment.n_places, watermark)

    # ---- more room

    def make_room(self, word: int, watermark: int) -> None:
        """The segment of this key word is full: lay it out anew without its dead keys, larger if need be, or split it."""
        segment = self._segment_of[locate_segment(word, self.shift)]
        live = self._count(segment, watermark)
        n_places = self._places_for(live)
        if n_places <= self._max_places or segment.depth == MAX_DEPTH:
            self._replace(segment, n_places, watermark)
            self.steps["grown"] += 1
        else:
            self._split(segment, live, watermark)
            self.steps["split"] += 1
        self.longest_step = max(self.longest_step, segment.n_places)

    def _replace(self, segment: KeySegment, n_places: int, watermark: int) -> None:
        fresh = KeySegment(segment.depth, segment.prefix, n_places)
        self._move(segment, watermark, fresh)
        self._enter(fresh)

    def _move(self, segment: KeySegment, watermark: int, *targets: KeySegment) -> None:
        """Copy the live keys of a segment to another, or to its two halves."""
        entries = np.array([target.entry() for target in targets], np.int64)
        move_live(segment.address, segment.n_places, watermark, 63 - segment.depth, entries)

    def _split(self, segment: KeySegment, live: int, watermark: int) -> None:
        if segment.depth == self.depth:
            self.depth += 1
            self._n_deepest = 0
            self.directory = np.repeat(self.directory, 2, axis=0)
            self._segment_of = [each for each in self._segment_of for _ in range(2)]
            self._swept *= 2
        bit = 63 - segment.depth
        upper = count_upper(segment.address, segment.n_places, watermark, bit)
        low = KeySegment(segment.depth + 1, 2 * segment.prefix, self._places_for_half(live - upper))
        high = KeySegment(segment.depth + 1, 2 * segment.prefix + 1, self._places_for_half(upper))
        self._move(segment, watermark, low, high)
        self._enter(low)
        self._enter(high)
        self._n_deepest += 2 * (low.depth == self.depth)

    # ---- less room

    def sweep(self, watermark: int) -> None:
        """Look at one segment, the next in turn, and shrink it or join it with its buddy if both are light."""
        if self._swept >= len(self._segment_of):
            self._swept = 0
        segment = self._segment_of[self._swept]
        self._swept = self._range(segment)[1]
        if segment.n_places > SAMPLE:
            # keys spread evenly, so a part of the places shows whether all are worth counting
            sampled = count_live(segment.address, SAMPLE, watermark)
            if 12 * sampled * segment.n_places > 2 * SAMPLE * max(segment.n_places, self._max_places):
                return
        live = self._count(segment, watermark)
        touched = segment.n_places
        merged = False
        if segment.depth and 12 * live <= self._max_places:
            buddy = self._segment_of[self._range(segment)[0] ^ (1 << (self.depth - segment.depth))]
            if buddy.depth == segment.depth:
                total = live + self._count(buddy, watermark)
                touched += buddy.n_places
                if 2 * self._places_for(total) <= self._max_places:
                    self._merge(segment, buddy, total, watermark)
                    merged = True
        if not merged and 4 * self._places_for(live) <= segment.n_places:
            self._replace(segment, self._places_for(live), watermark)
            self.steps["shrunk"] += 1
        self.longest_step = max(self.longest_step, touched)

    def _merge(self, segment: KeySegment, buddy: KeySegment, live: int, watermark: int) -> None:
        fresh = KeySegment(segment.depth - 1, segment.prefix >> 1, self._places_for(live))
        for half in (segment, buddy):
            self._move(half, watermark, fresh)
        self._enter(fresh)
        self.steps["merged"] += 1
        self._n_deepest -= 2 * (segment.depth == self.depth)
        while not self._n_deepest:
            self.directory = np.ascontiguousarray(self.directory[::2])
            self._segment_of = self._segment_of[::2]
            self.depth -= 1
            self._n_deepest = sum(each.depth == self.depth for each in self.segments())
        self._swept = min(self._range(fresh)[1], len(self._segment_of))

    # ---- looking

    def segments(self) -> list[KeySegment]:
        return list(dict.fromkeys(self._segment_of))

    def bytes(self) -> int:
        return self.directory.nbytes + sum(segment.words.nbytes for segment in self.segments())

    def check(self) -> None:
        assert len(self.directory) == len(self._segment_of) == 1 << self.depth, "an entry for each prefix"
        assert self._n_deepest == sum(each.depth == self.depth for each in self.segments()) > 0, "no deeper than need be"
        for segment in self.segments():
            first, last = self._range(segment)
            assert all(each is segment for each in self._segment_of[first:last]), "a segment has its whole range"
            assert (self.directory[first:last, :3] == segment.entry()).all(), "an entry leads to its segment"
            places = segment.places()
            used = places[:, 1] != 0
            assert segment.used == int(used.sum()), "places in use are counted"
            assert segment.used <= int(segment.words[1]) <= 5 * segment.n_places // 8, "a good part of the places is free"
            for at, (word, _) in enumerate(places.tolist()):
                if used[at]:
                    entry = locate_segment(word, self.shift)
                    assert first <= entry < last, "a key is in the segment of its hash"
                    start = place_of(word, *segment.entry()[1:])
                    between = (np.arange(start, start + (at - start) % segment.n_places)) % segment.n_places
                    assert used[between].all(), "a search for a key finds it before a free place"
