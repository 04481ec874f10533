"""The names that a state may hold: exactly those that states hold, and none that reaches out of the process."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eddy import Engine
from eddy.lifecycle import Lifecycle
from eddy.operators.replanning import ReplanPace
from eddy.preparing import EXPIRY
from eddy.state.dump import dump_state
from eddy.state.state_graph import HUBS, GraphWriter, method
from eddy.state.state_names import CLASSES, METHODS, NAMES, OTHERS
from lineage.errors import EddyError
from tests.unit.eddy.rich import W, feed, make_engine, submit_all

ROOT = Path(__file__).resolve().parents[4]

#: Queries that hold what those of `rich` do not.
MORE = (
    f"SELECT k FROM s {W} WHERE ts + INTERVAL '1 second' > TIMESTAMP '2020-01-01'",
    f"SELECT k FROM s {W} INTERSECT SELECT k FROM t {W}",
    "SELECT g, SUM(k) AS x FROM s [ROWS 5] GROUP BY g",
    f"SELECT s.k, t.v FROM s {W}, t {W} WHERE s.k = t.k AND s.a * s.b > 0.1 AND (s.g LIKE 'u%' OR s.a > 0.5)",
    f"SELECT k FROM s {W} WHERE g LIKE '%u'",
    "SELECT x.k, rooms.floor FROM s [RANGE 1 SECOND SLIDE 100 MILLISECONDS] AS x, rooms WHERE x.g = rooms.g",
    "SELECT DISTINCT k FROM base",
)
OURS = {"lineage", "filters", "stems", "windows", "lmerge", "queries", "eddy"}
POLICIES = ("random", "lottery", "backpressure", "fixed:nothing")


class Names(GraphWriter):
    """Notes what is named."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: set[tuple[str, str]] = set()
        self.methods: set[tuple[str, str]] = set()
        self.others: set[tuple[str, str]] = set()

    def reducer_override(self, obj: Any) -> Any:
        for kind in (type(obj), obj):
            if isinstance(kind, type):
                name = kind.__module__, kind.__qualname__
                (self.others if name in OTHERS else self.classes).add(name)
        if type(obj).__name__ == "method":
            of, name = obj.__self__, obj.__func__.__name__
            kind = next(kind for kind in type(of).__mro__ if name in vars(kind))
            self.methods.add((f"{kind.__module__}.{kind.__qualname__}", name))
        if type(obj).__name__ == "builtin_function_or_method":
            self.others.add((obj.__module__, obj.__name__))
        return super().reducer_override(obj)


def found() -> Names:
    """What engines with something of everything name."""
    names = Names()
    engine = make_engine()
    engine._lives.pace = ReplanPace(every=1, rotates=True)
    submit_all(engine)
    engine.submit(f"SELECT k FROM s {W}", name="base")
    for sql in MORE:
        for expiry in EXPIRY:
            engine.submit(sql, expiry=expiry)
    feed(engine, 13, 0, 3)
    engine.pause("window")
    engine.pause("shared")
    engine.replace("own_ends", "SELECT k, v FROM keyed [RANGE 1 SECOND] WHERE v > 0.5")
    engine.replace("rows", "SELECT k, a FROM s [ROWS 20] WHERE a > 0.5")
    engine.resume("window")
    names.write(engine)
    for policy in POLICIES:
        engine = make_engine(policy=policy)
        engine.submit(MORE[0])
        feed(engine, 13, 0, 1)
        names.write(engine)
    return names


def test_the_lists_have_what_states_hold_and_nothing_else() -> None:
    names = found()
    held = {name for name in names.classes if name[0].partition(".")[0] in OURS}
    listed = {(of, name) for of, some in METHODS.items() for name in some.split()}
    missing, idle = held - NAMES, NAMES - held
    assert not missing, f"add to CLASSES of eddy/state/state_names.py: {sorted(missing)}"
    assert not idle, (
        f"no state holds these classes of eddy/state/state_names.py, or {__name__}.MORE lacks a query: {sorted(idle)}"
    )
    assert names.methods == listed, f"METHODS of eddy/state/state_names.py differ: {sorted(names.methods ^ listed)}"
    assert names.others == OTHERS, f"OTHERS of eddy/state/state_names.py differ: {sorted(names.others ^ OTHERS)}"


def test_a_class_that_is_not_listed_cannot_be_dumped_and_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine._lives.unknown = Path("x")  # type: ignore[attr-defined]
    with pytest.raises(EddyError, match=r"pathlib\.\w*Path"):
        dump_state(engine)


def test_methods_are_those_that_are_listed() -> None:
    engine = make_engine()
    assert method(engine, "_forget") == engine._forget
    for name in ("close", "push", "answer", "__init__", "__class__", "nothing"):
        with pytest.raises(Exception, match=f"Engine.{name}"):
            method(engine, name)
    assert isinstance(engine._lives, Lifecycle)


def test_nothing_that_is_listed_belongs_to_the_client_or_is_loaded_only_by_name() -> None:
    script = "import sys, eddy.state.dump, eddy.state.state_names as n; print([m for m in n.CLASSES if m not in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.strip() == "[]"
    assert not any(module.startswith(("eddy.client", "api", "storage", "pipeline")) for module in CLASSES)
    for module, name in NAMES:
        assert isinstance(getattr(importlib.import_module(module), name), type)


#: Runs in a process of its own: a pickle for every class and method with arguments of many shapes, under an audit.
_ATTACK = r"""
import os, pickle, resource, sys, tempfile, warnings
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
warnings.simplefilter("ignore")
from eddy.state.state_graph import NotAllowed, GraphReader, GraphWriter
from eddy.state.state_names import METHODS, NAMES, OTHERS
from lineage.kernels import _declared
from tests.unit.eddy.rich import feed, make_engine, submit_all
import numba

engine = make_engine()
submit_all(engine)
feed(engine, 1, 0, 2)
# a kernel is loaded from its cache with its first call, whoever makes it
for kernel, signature in _declared:
    kernel.signatures or kernel.compile(numba.core.sigutils.normalize_signature(signature)[0])
writer = GraphWriter()
kinds, _ = writer.write(engine)
hubs = writer._hubs
path = os.path.join(tempfile.mkdtemp(), "made")
url = "http://127.0.0.1:9"
shapes = [
    (), (url,), (path,), (path, "w"), (1,), ([path],), ({"a": path},), (None, None), (0, 0), (url, url, 1), (1, 2, 3, 4),
    (b"touch",), (("a", "b"), path), (3, "x", 2.5, None, ()),
]


def said(value):
    return pickle.dumps(value, 4)[2:-1]


def named(module, name):
    return b"\x8c" + bytes([len(module)]) + module.encode() + b"\x8c" + bytes([len(name)]) + name.encode() + b"\x93"


programs = {}
for module, name in sorted(NAMES | OTHERS):
    for n, given in enumerate(shapes):
        programs[module, name, n] = named(module, name) + said(given) + b"R"
        programs[module, name, n, "new"] = named(module, name) + said(given) + b"\x81"
        programs[module, name, n, "partial"] = named("functools", "partial") + named(module, name) + b"\x85R" + said(given) + b"R"
places = {f"{base.__module__}.{base.__qualname__}": n for n, kind in enumerate(kinds) for base in kind.__mro__}
for of, names in METHODS.items():
    module, _, kind = of.rpartition(".")
    if of in places:
        target = named("eddy.state.state_graph", "hub") + said((places[of],)) + b"R"
    else:
        target = named(module, kind) + b")\x81"
    for name in names.split():
        bound = named("eddy.state.state_graph", "method") + target + said(name) + b"\x86R"
        for n, given in enumerate(shapes):
            programs[of, name, n] = bound + said(given) + b"R"
        # with other objects of the engine as arguments
        for n in range(0, len(hubs), 1 + len(hubs) // 20):
            programs[of, name, "hub", n] = bound + named("eddy.state.state_graph", "hub") + said((n,)) + b"R\x85R"

seen, at = [], [None]
WATCHED = ("socket.", "open", "subprocess.", "os.", "shutil.", "ctypes.dlopen", "urllib.", "pty.", "ftplib.", "http.")


def audit(event, given):
    if at[0] is not None and event.startswith(WATCHED):
        seen.append((at[0], event, repr(given)[:80]))


sys.addaudithook(audit)
refused = 0
for about, code in programs.items():
    reader = GraphReader(b"\x80\x04" + code + b".", [], [])
    reader._made["hub"] = hubs.__getitem__
    at[0] = about
    try:
        reader.load()
    except NotAllowed:
        refused += 1
    except Exception:
        pass
    at[0] = None
print(len(programs), refused, len(seen), seen[:10], os.path.exists(path))
"""


def test_whatever_a_state_calls_opens_no_socket_and_no_file_and_starts_no_process() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", _ATTACK], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    n_programs, refused, n_seen, rest = run.stdout.split(" ", 3)
    assert int(n_programs) > 3_000 and int(n_seen) == 0, rest
    assert rest.strip() == "[] False"
    # classes of hubs are made by number, never called
    assert int(refused) >= 3 * len([kind for kind in NAMES if kind[1] in {hub.__name__ for hub in HUBS}])
