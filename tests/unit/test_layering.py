"""Who may import whom, between packages and inside them, and what the engine may never ask its surroundings.

Every `import` of every package is read from the syntax tree, also those inside functions and under TYPE_CHECKING: an
arrow that is only drawn lazily is an arrow all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

_BELOW_EDDY = {"lineage", "filters", "stems", "windows", "lmerge", "queries"}

#: The "may import" column of the folder table in `docs/architecture.md`; a package may always import itself.
MAY_IMPORT: dict[str, set[str]] = {
    "lineage": set(),
    "filters": {"lineage"},
    "stems": {"lineage", "filters"},
    "windows": {"lineage", "filters", "stems"},
    "lmerge": {"lineage"},
    "queries": {"lineage", "filters", "windows"},
    "eddy": _BELOW_EDDY,
    # of eddy only what loads without the engine
    "eddy.client": {"lineage", "eddy.base.description"},
    "storage": {"lineage"},
    "api": {"eddy", "queries", "storage"},
    "pipeline": {"lineage", "eddy", "queries", "storage"},
    "experiments": _BELOW_EDDY | {"eddy", "storage", "api", "pipeline"},
}
OURS = {*MAY_IMPORT, "tests"}

#: The order inside packages, low to high: a module imports from its own item and from those before it. An item is a folder, a
#: module, or modules that belong together; every folder and module of the package is in one.
ORDER: dict[str, list[str]] = {
    "filters": ["values", "expressions", "index"],
    "windows": ["spec", "delta", "patterns", "costs", "measured_costs", "state", "aggregates", "operators", "shared"],
    "lmerge": ["streams", "cases", "merge"],
    "eddy": [
        *("base", "client", "routing", "streams", "merges", "lives", "history", "query changes", "catalog", "matching", "joins"),
        *("reading", "planning", "operators", "commit", "inspect", "engine lifecycle merge_elements merging preparing"),
        *("state", "csv"),
    ],
    "api": [
        *("base", "arrow", "wire", "core", "experiment_runs", "demo", "edge", "routes", "opening", "app", "server"),
        *("commands", "cli"),
    ],
}

#: Modules that import each other in a circle, at most.
MAX_CYCLE = 8

#: Foreign modules only these packages may know.
ONLY_IN = {
    "pyspark": {"pipeline"},
    "fastapi": {"api"},
    "starlette": {"api"},
    "uvicorn": {"api"},
    "asyncio": {"api", "eddy.client", "experiments"},
    "httpx": {"api", "eddy.client", "experiments"},
}

#: These run from a seed and a log of calls: clock and random numbers come in as arguments.
DETERMINISTIC = ("lineage", "filters", "stems", "windows", "lmerge", "queries", "eddy")

#: Files that may measure how long work takes; no answer depends on it.
COST_CLOCKS = {"perf_counter_ns", "thread_time_ns"}
COST_CLOCK_FILES = (
    "lineage/kernels.py",
    "eddy/engine.py",
    "eddy/matching/eddy.py",
    "eddy/commit/committer.py",
    "eddy/joins/walk.py",
    "eddy/joins/join_group.py",
    "eddy/routing/*.py",
)

#: The default of `Engine(clock=None)`.
WALL_CLOCK_FILES = ("eddy/engine.py",)

#: Random generators made from a seed are fine; the hidden global ones are not.
SEEDED = {"random": {"Random"}, "numpy.random": {"Generator", "PCG64", "SeedSequence", "BitGenerator", "default_rng"}}


class Facts(NamedTuple):
    """What a text imports and reads; of names their dotted form."""

    imports: list[ast.Import | ast.ImportFrom]
    #: modules that a call imports
    called: list[tuple[int, str]]
    read: list[tuple[int, str]]
    #: functions that are called without arguments
    bare: list[tuple[int, str]]


@cache
def facts(source: str) -> Facts:
    """Those of a text, with their lines; several tests read the same files, and none holds their syntax trees."""
    found = Facts([], [], [], [])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.imports.append(node)
        elif isinstance(node, (ast.Attribute, ast.Name)):
            if isinstance(node.ctx, ast.Load) and (name := _dotted(node)):
                found.read.append((node.lineno, name))
        elif isinstance(node, ast.Call):
            name, first = _dotted(node.func), node.args[0] if node.args else None
            if name in ("__import__", "import_module", "importlib.import_module"):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.called.append((node.lineno, first.value))
            elif first is None and not node.keywords:
                found.bare.append((node.lineno, name))
    return found


def python_files(package: str) -> list[Path]:
    """The files of a package, but not those of a part of it that has a line of its own in the table."""
    folder = ROOT.joinpath(*package.split("."))
    apart = [ROOT.joinpath(*name.split(".")) for name in MAY_IMPORT if name.startswith(f"{package}.")]
    return sorted(
        path
        for path in folder.rglob("*.py")
        if "__pycache__" not in path.parts and not any(path.is_relative_to(other) for other in apart)
    )


def imported_modules(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that is imported, wherever the statement stands."""
    for node in facts(source).imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        else:
            yield node.lineno, f"{package}.{node.module or ''}" if node.level else node.module or ""
    yield from facts(source).called


def wrong_arrows(source: str, package: str) -> list[str]:
    found = []
    for line, module in imported_modules(source, package):
        top = module.split(".")[0]
        if top in OURS and not _allowed(module, package):
            found.append(f"line {line}: {package} may not import {module}")
        if top in ONLY_IN and package not in ONLY_IN[top]:
            found.append(f"line {line}: only {', '.join(sorted(ONLY_IN[top]))} may import {module}")
    return found


def _allowed(module: str, package: str) -> bool:
    """Whether a package may import one of our modules; a part with a line of its own is not its package's."""
    home = max((name for name in MAY_IMPORT if _within(module, name)), key=len, default="")
    return home == package or any(_within(module, name) for name in MAY_IMPORT[package])


def _within(module: str, name: str) -> bool:
    return f"{module}.".startswith(f"{name}.")


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def arrows_up(source: str, file: str) -> list[str]:
    """Imports of a file that point to a later item of its own package."""
    package, name = file.removesuffix(".py").split("/")[:2]
    own = _place(package, name)
    return [
        f"line {line}: {file} imports {module} above it"
        for line, module in module_names(source)
        if module.startswith(f"{package}.") and _place(package, module.split(".")[1]) > own
    ]


def _place(package: str, name: str) -> int:
    """The place of a folder or module in the order of its package; what a package shows comes last."""
    return next((place for place, item in enumerate(ORDER[package]) if name in item.split()), len(ORDER[package]))


def module_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that is imported from one of our packages, module or member."""
    for node in facts(source).imports:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def import_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """The modules that each module imports, of modules and their texts by full name."""
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        names = [name for _, name in module_names(source)]
        graph[module] = {name if name in sources else name.rpartition(".")[0] for name in names} & (sources.keys() - {module})
    return graph


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The largest sets of modules that each import one another, directly or not."""
    reached: dict[str, set[str]] = {}
    for module in graph:
        seen, to_do = set(), [module]
        while to_do:
            new = graph[to_do.pop()] - seen
            seen |= new
            to_do += new
        reached[module] = seen
    found: list[set[str]] = []
    for module in graph:
        circle = {other for other in reached[module] if module in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def _aliases(source: str) -> dict[str, str]:
    """Local name -> full name, for what the file imports."""
    names: dict[str, str] = {}
    for node in facts(source).imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
        elif node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _banned(name: str, file: str) -> bool:
    """Whether the full name reads a clock or a random source that `file` may not read."""
    module, _, attribute = name.rpartition(".")
    if module == "time":
        if attribute in COST_CLOCKS:
            return not any(fnmatch(file, pattern) for pattern in COST_CLOCK_FILES)
        if attribute == "time_ns":
            return file not in WALL_CLOCK_FILES
        return True
    if module in SEEDED:
        return attribute not in SEEDED[module]
    if name in ("os.urandom", "uuid.uuid1", "uuid.uuid4") or module == "secrets":
        return True
    return attribute in ("now", "utcnow", "today") and module in ("datetime.datetime", "datetime.date", "datetime", "date")


def hidden_inputs(source: str, file: str) -> list[str]:
    """Uses of the wall clock, of cost clocks outside their files, and of global random numbers."""
    names = _aliases(source)
    found = []
    for line, name in facts(source).read:
        head, _, rest = name.partition(".")
        if head in names:
            full = names[head] + (f".{rest}" if rest else "")
            if _banned(full, file):
                found.append(f"line {line}: {full}")
    for line, name in facts(source).bare:
        head, _, rest = name.partition(".")
        full = names.get(head, head) + (f".{rest}" if rest else "")
        if full in ("random.Random", "numpy.random.default_rng", "numpy.random.PCG64", "numpy.random.SeedSequence"):
            found.append(f"line {line}: {full}() without a seed")
    return sorted(set(found))


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_a_package_imports_only_what_the_folder_table_allows(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)} {fault}" for path in python_files(package) for fault in wrong_arrows(path.read_text(), package)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", sorted(ORDER))
def test_no_import_points_up_inside_a_package(package: str) -> None:
    files = [path for path in (ROOT / package).rglob("*.py") if "__pycache__" not in path.parts]
    names = {path.relative_to(ROOT / package).parts[0].removesuffix(".py") for path in files} - {"__init__"}
    assert names == {name for item in ORDER[package] for name in item.split()}
    found = [fault for path in files for fault in arrows_up(path.read_text(), path.relative_to(ROOT).as_posix())]
    assert not found, "\n".join(found)


def test_few_modules_import_each_other_in_a_circle() -> None:
    sources = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text()
        for package in MAY_IMPORT
        for path in python_files(package)
    }
    graph = import_graph(sources)
    assert sum(map(len, graph.values())) > len(sources)
    found = [sorted(circle) for circle in cycles(graph) if len(circle) > MAX_CYCLE]
    assert not found, found


@pytest.mark.parametrize("package", DETERMINISTIC)
def test_the_engine_reads_no_clock_and_no_global_random_numbers(package: str) -> None:
    found = []
    for path in python_files(package):
        file = path.relative_to(ROOT).as_posix()
        found += [f"{file} {fault}" for fault in hidden_inputs(path.read_text(), file)]
    assert not found, "\n".join(found)


def test_every_folder_with_code_is_in_the_table() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders <= OURS, f"not in MAY_IMPORT: {sorted(folders - OURS)}"
    assert "lineage" in folders and python_files("lineage")


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("lineage", "import filters"),
        ("lineage", "def f():\n    from stems.row_store import RowStore"),
        ("stems", "from windows import spec"),
        ("windows", "import queries.bound"),
        ("queries", "from stems import stem"),
        ("api", "import lineage.errors"),
        ("eddy", "import asyncio"),
        ("eddy", "import importlib\nimportlib.import_module('api.cli')"),
        ("eddy", "from tests import reference"),
        ("eddy", "import experiments"),
        ("experiments", "import tests"),
        ("eddy", "import pyspark.sql"),
        ("eddy", "import httpx"),
        ("eddy", "from eddy.client import Client"),
        ("eddy.client", "from eddy import Engine"),
        ("eddy.client", "import eddy.query"),
        ("eddy.client", "from api.wire.bodies import ARROW"),
        ("queries", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from eddy import Engine"),
    ],
)
def test_a_wrong_arrow_is_found(package: str, source: str) -> None:
    assert len(wrong_arrows(source, package)) == 1


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("lineage", "import numpy as np\nfrom lineage.schema import Schema\nfrom . import errors\nfrom .schema import Type"),
        ("stems", "from filters.index.grouped import GroupedFilter"),
        ("api", "import asyncio, fastapi\nfrom eddy import Engine"),
        ("api", "from eddy.client import Client"),
        (
            "eddy.client",
            "import httpx\nfrom eddy.client import calls\nfrom eddy.base.description import Stream\nimport lineage.errors",
        ),
        ("pipeline", "import pyspark"),
        ("experiments", "import api, eddy, lineage"),
    ],
)
def test_a_right_arrow_is_not(package: str, source: str) -> None:
    assert wrong_arrows(source, package) == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("eddy/streams/legs.py", "from eddy.query import Query"),
        ("eddy/streams/legs.py", "def f():\n    import eddy.matching.commit"),
        ("eddy/query.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from eddy import engine"),
        ("eddy/engine.py", "from eddy.state.dump import dump"),
        ("filters/values/vector.py", "from filters import index"),
        ("api/base/limits.py", "import api.cli"),
        ("api/routes/socket.py", "from api import VERSION"),
    ],
)
def test_an_arrow_that_points_up_is_found(file: str, source: str) -> None:
    assert len(arrows_up(source, file)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("eddy/engine.py", "from eddy.lifecycle import Lifecycle\nfrom eddy.base.plans import Plan\nimport lineage.errors"),
        ("eddy/streams/legs.py", "from eddy.streams import source\nfrom eddy.routing.base import Ledger"),
        ("eddy/__init__.py", "from eddy.state.dump import dump"),
    ],
)
def test_an_arrow_that_points_down_is_not(file: str, source: str) -> None:
    assert arrows_up(source, file) == []


def test_a_circle_of_modules_is_found() -> None:
    sources = {
        "eddy": "",
        "eddy.a": "def f():\n    from eddy import b",
        "eddy.b": "from eddy.c import something\nimport numpy",
        "eddy.c": "if TYPE_CHECKING:\n    import eddy.a",
        "eddy.d": "from eddy.a import f",
    }
    assert cycles(import_graph(sources)) == [{"eddy.a", "eddy.b", "eddy.c"}]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("eddy/inspect/trace.py", "import time\ntime.time()"),
        ("eddy/inspect/trace.py", "import time\ntime.perf_counter_ns()"),
        ("eddy/router.py", "from time import time_ns\ntime_ns()"),
        ("eddy/router.py", "import time as clock\nf = clock.monotonic"),
        ("filters/index/grouped.py", "import random\nrandom.random()"),
        ("filters/index/grouped.py", "from random import shuffle\nshuffle(x)"),
        ("filters/index/grouped.py", "import random\nrandom.Random()"),
        ("filters/index/grouped.py", "import numpy as np\nnp.random.rand(3)"),
        ("filters/index/grouped.py", "import numpy as np\nnp.random.default_rng()"),
        ("lineage/times.py", "from datetime import datetime\ndatetime.now()"),
        ("lineage/times.py", "import datetime as dt\ndt.datetime.utcnow()"),
        ("lineage/times.py", "from datetime import date\ndate.today()"),
        ("eddy/engine.py", "import uuid\nuuid.uuid4()"),
        ("eddy/engine.py", "import os\nos.urandom(8)"),
    ],
)
def test_a_hidden_input_is_found(file: str, source: str) -> None:
    assert len(hidden_inputs(source, file)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("eddy/engine.py", "import time\ntime.time_ns(), time.perf_counter_ns()"),
        ("eddy/routing/lottery.py", "import time\ntime.thread_time_ns()"),
        ("eddy/tickets.py", "import random\nrandom.Random(7).random()"),
        (
            "eddy/tickets.py",
            "import numpy as np\nrng = np.random.default_rng(seed=1)\nrng.random()\ndef f(g: np.random.Generator): ...",
        ),
        ("lineage/times.py", "from datetime import datetime\ndatetime.fromisoformat(x)"),
        ("windows/spec.py", "row.time\nwindow.now\nself.random.random()\ntime = 3\ntime + 1"),
    ],
)
def test_an_open_input_is_not(file: str, source: str) -> None:
    assert hidden_inputs(source, file) == []
