"""Mutated CSV bodies in a child with little memory: a table or a refusal, never a crash; and the same bytes give the same."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.reference.seeds import seeds

ROOT = Path(__file__).resolve().parents[2]
BODIES = 1000
#: Bytes of address space of the child: Arrow and numpy take most of it.
MEMORY = 3 << 30
SECONDS = 120

TYPES = {"a": "int", "b": "float", "c": "string", "d": "bool", "t": "timestamp", "ts": "timestamp[s]"}
SEEDS = [
    b"a,b,c,d,t\n1,2.5,x,true,2024-05-01T12:00:00Z\nNA,-,,F,1000\n",
    b'c,a\n"two\nlines",1\n"a ""word""",2\n5" pipe,3\n',
    b"a;b;c\r\n1;1,5;\xc3\xa9\r\n;;\r\n",
    b"\xef\xbb\xbfyear,month,day,b\n2013,1,2,NA\n2013,2,30,1\n",
    b"1\t1331901000.25\tx\t-\n2\t1331901001\ty\tT\n",
    b"t\n31/12/2024 23:59\n01/01/2025 00:00\n",
]
FORMS: list[dict[str, Any]] = [
    {},
    {"delimiter": ";", "decimal": ","},
    {"delimiter": "tab", "names": "a,ts,c,d"},
    {"time": "ts=year,month,day", "tz": "Europe/Berlin"},
    {"time_format": "%d/%m/%Y %H:%M", "tz": "America/New_York", "null": ["x", "-999"]},
]
PIECES = [
    b'"', b'""', b"\n", b"\r", b"\r\n", b",", b";", b"\t", b"\x00", b"\xff", b"\xc3", b"NA", b"-", b"9" * 400, b"1e400", b" ",
    b"0x1F", b"nan(1)", b"," * 700, b'"' * 33, b"\n" * 50, b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"2024-02-30",
]  # fmt: skip


def mutated(draw: random.Random) -> bytes:
    body = bytearray(draw.choice(SEEDS) * draw.choice([1, 1, 1, 40]))
    for _ in range(draw.randrange(1, 9)):
        at = draw.randrange(len(body) + 1)
        match draw.randrange(5):
            case 0:
                body[at:at] = draw.choice(PIECES)
            case 1:
                body[at : at + draw.randrange(6)] = b""
            case 2:
                body[at : at + 1] = bytes([draw.randrange(256)])
            case 3:
                body[at:at] = body[draw.randrange(len(body) + 1) :][: draw.randrange(40)]
            case _:
                body = body[: max(at, 1)]
    return bytes(body)


def try_all(seed: int) -> None:
    """What the child does; anything but a table or a refusal ends it with a traceback."""
    from lineage.csv_cells import infer
    from lineage.csv_form import CsvForm
    from lineage.csv_rows import decode, split
    from lineage.errors import EddyError

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    draw = random.Random(seed)
    forms = [CsvForm.parse(**texts) for texts in FORMS]
    taken = 0
    for n in range(BODIES):
        body, form = mutated(draw), draw.choice(forms)
        found = []
        for skip in (False, True, True):
            try:
                rows = decode(body, TYPES, form, skip=skip)
                rows.table.validate(full=True)
                found.append((str(rows.table.to_pydict()), [(error.row, error.fact) for error in rows.errors]))
            except EddyError as error:
                found.append((str(error), []))
        assert found[1] == found[2], (seed, n, body)
        if found[0][0].startswith("{"):
            taken += 1
            assert found[0] == found[1], (seed, n, body)
            for column in split(body, form).columns:
                infer(column, form)
    print(f"{BODIES} bodies, {taken} taken whole")


@pytest.mark.parametrize("seed", seeds(range(4), 1))
@pytest.mark.slow
def test_mutated_bodies_are_taken_or_refused(seed: int) -> None:
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.property.test_csv_fuzz import try_all; try_all({seed})"
    env = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=SECONDS, env=env, cwd=ROOT)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()[-3000:]}"
    taken = int(done.stdout.split()[2])
    assert 0.02 * BODIES < taken < 0.98 * BODIES, "mutations are neither all fatal nor all harmless"
