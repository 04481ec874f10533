"""Real processes, really killed: what they acknowledged on their standard output is in the directory."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib
from pathlib import Path

from storage import DataDirectory, LocalDisk

#: Appends, syncs and acknowledges for ever, with a snapshot now and then; goes on where the last one ended.
PROGRAM = """
import sys, zlib
from storage import DataDirectory, CatalogEntry, LocalDisk
directory = DataDirectory.open(LocalDisk(sys.argv[1]), segment_bytes=5000)
recovery = directory.recover()
state = int(recovery.snapshot.parts[0]) if recovery.snapshot else 0
for record in recovery.records:
    state = zlib.crc32(record.payload, state)
while True:
    for _ in range(3):
        payload = str(directory.last + 1).encode() * 20
        directory.append(1, payload)
        state = zlib.crc32(payload, state)
    directory.sync()
    if directory.durable % 5 == 0:
        directory.define(directory.durable, [CatalogEntry("query", "q", str(directory.durable), directory.durable)])
    if directory.durable % 4 == 0:
        directory.save_snapshot(directory.durable, [str(state).encode()])
    print(directory.durable, directory.catalog.number(), state, flush=True)
"""


def test_a_writer_that_is_killed_again_and_again_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(5)
    durable = defined = 0
    states = {0: 0}
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(chance.randrange(1, 40)):
                durable, defined, state = map(int, writer.stdout.readline().split())
                states[durable] = state
            writer.kill()
            for line in writer.stdout:
                if line.endswith("\n"):
                    durable, defined, state = map(int, line.split())
                    states[durable] = state
        directory = DataDirectory.open(LocalDisk(tmp_path), segment_bytes=5000)
        assert directory.durable >= durable and directory.catalog.number() >= defined
        recovery = directory.recover()
        state = int(recovery.snapshot.parts[0]) if recovery.snapshot else 0
        assert recovery.snapshot is None or states.get(recovery.snapshot.number, state) == state
        for record in recovery.records:
            assert bytes(record.payload) == str(record.number).encode() * 20
            state = zlib.crc32(record.payload, state)
            assert states.get(record.number, state) == state
        directory.close()
    assert durable > 20
