"""A data directory under all that a service does to it, and what a crash may leave of it.

The state is a chain of checksums: each record changes it, a snapshot holds it, and recovery must give one that the chain
had, not before the last that was acknowledged. Discarding starts a new *world*, whose first state is made of the
definitions; while it is under way a crash may leave either.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, replace

from storage import CatalogEntry, DataDirectory
from tests.reference.crashes import Lost, Timeline, Trial
from tests.reference.simulated_disk import SimulatedDisk

#: Small, so that a workload of a few dozen records has many segments.
SEGMENT_BYTES = 300

Definitions = tuple[CatalogEntry, ...]


@dataclass(frozen=True, slots=True)
class World:
    """States after each record, from `n_must` on possible; definitions after each change, from `d_must` on possible."""

    chain: tuple[bytes, ...] = (b"empty",)
    n_must: int = 0
    defined: tuple[Definitions, ...] = ((),)
    d_must: int = 0


@dataclass(frozen=True, slots=True)
class Expected:
    """One world, or two while state is being discarded."""

    worlds: tuple[World, ...] = (World(),)

    @property
    def world(self) -> World:
        assert len(self.worlds) == 1, "state is being discarded"
        return self.worlds[0]


def next_state(state: bytes, payload: bytes) -> bytes:
    return b"%d" % zlib.crc32(payload, zlib.crc32(state))


def state_of(definitions: Definitions) -> bytes:
    return b"made of " + repr(definitions).encode()


class DirectoryTrial(Trial[Expected]):
    n_steps = 20

    def run(self, disk: SimulatedDisk) -> Timeline[Expected]:
        timeline = Timeline(Expected())
        directory = self.open(disk)
        self._start(directory)
        self.work(disk, directory, timeline, random.Random(self.seed), self.n_steps)
        return timeline

    def recover(self, disk: SimulatedDisk, expected: Expected) -> Timeline[Expected]:
        directory = self.open(disk)
        timeline = Timeline(expected)
        state = self._start(directory)
        timeline.note(disk, Expected((self._found(directory, state, expected),)))
        self.work(disk, directory, timeline, random.Random(self.seed + 1), 2)
        directory.close()
        return timeline

    def open(self, disk: SimulatedDisk, *, discard_state: bool = False) -> DataDirectory:
        return DataDirectory.open(self.wrap(disk), discard_state=discard_state, segment_bytes=SEGMENT_BYTES)

    def _start(self, directory: DataDirectory) -> bytes:
        """What a service does first; the state that it comes to."""
        recovery = directory.recover()
        if recovery.snapshot is not None:
            state = bytes(recovery.snapshot.parts[0])
        else:
            state = state_of(tuple(directory.catalog.definitions())) if recovery.discarded else b"empty"
        for record in recovery.records:
            state = next_state(state, record.payload.tobytes())
        if recovery.discarded:
            directory.save_snapshot(directory.durable, [state])
        return state

    def _found(self, directory: DataDirectory, state: bytes, expected: Expected) -> World:
        """The world that was found, without what was not; raises if there is none such."""
        definitions = tuple(directory.catalog.definitions())
        for world in expected.worlds:
            if state in world.chain[world.n_must :] and definitions in world.defined[world.d_must :]:
                n_found = world.chain.index(state)
                d_found = world.defined.index(definitions)
                if directory.catalog.number() > directory.durable:
                    raise Lost("the catalog knows more than the journal")
                return World(world.chain[: n_found + 1], n_found, world.defined[: d_found + 1], d_found)
        raise Lost(f"state {state!r} with {len(definitions)} definitions is not among what may be: {expected}")

    def work(
        self, disk: SimulatedDisk, directory: DataDirectory, timeline: Timeline[Expected], chance: random.Random, n_steps: int
    ) -> DataDirectory:
        for _ in range(n_steps):
            world = timeline.last.world
            step = chance.random()
            if step < 0.45:
                payload = chance.randbytes(chance.choice((0, 40, 40, 200)))
                after = replace(world, chain=(*world.chain, next_state(world.chain[-1], payload)))
                timeline.note(disk, Expected((after,)))
                directory.append(1, payload)
            elif step < 0.7:
                directory.sync()
                timeline.note(disk, Expected((replace(world, n_must=len(world.chain) - 1),)))
            elif step < 0.8:
                self._define(disk, directory, timeline, chance)
            elif step < 0.95:
                # a segment that is full is synced by the append: more may be durable than was asked for
                state = world.chain[len(world.chain) - 1 - (directory.last - directory.durable)]
                directory.save_snapshot(directory.durable, [state, chance.randbytes(700)])
            else:
                directory = self._reopen(disk, directory, timeline, discard_state=chance.random() < 0.5)
        return directory

    def _define(self, disk: SimulatedDisk, directory: DataDirectory, timeline: Timeline[Expected], chance: random.Random) -> None:
        world = timeline.last.world
        # the text makes every state of the catalog another one
        one = CatalogEntry(
            "query", f"q{chance.randrange(5)}", f"text {len(world.defined)} {directory.durable}", directory.durable
        )
        dropped = f"q{chance.randrange(5)}"
        rest = tuple(other for other in world.defined[-1] if other.name not in (one.name, dropped))
        after = replace(world, defined=(*world.defined, (*rest, one)))
        timeline.note(disk, Expected((after,)))
        directory.define(directory.durable, [one], [("query", dropped)])
        timeline.note(disk, Expected((replace(after, d_must=len(after.defined) - 1),)))

    def _reopen(
        self, disk: SimulatedDisk, directory: DataDirectory, timeline: Timeline[Expected], *, discard_state: bool
    ) -> DataDirectory:
        directory.close()
        old = timeline.last
        if discard_state:
            definitions = old.world.defined[-1]
            timeline.note(disk, Expected((*old.worlds, World((state_of(definitions),), 0, (definitions,), 0))))
        directory = self.open(disk, discard_state=discard_state)
        expected = Expected((timeline.last.worlds[-1],))
        state = self._start(directory)
        timeline.note(disk, Expected((self._found(directory, state, expected),)))
        return directory
