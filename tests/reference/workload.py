"""Generators of rows, conditions, projections and queries, all from one `random.Random`.

Every expression is made three times at once, so that no parser stands between the model and the engine:

    sql    the text for the engine, with :parameters
    duck   the same for DuckDB: parameters written out, TRY or NULLIF around what may fail, DOUBLE for float; None where DuckDB's
           meaning differs from ours (int against float is exact here, by double there)
    fn     a Python callable over a row (over one row per FROM item in a join), with None for NULL and three-valued logic

Constants come from the same small pools as the values of rows, so that conditions hit, miss and touch boundaries.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.reference.lives import UNBOUNDED, Window
from tests.reference.matching import Meaning, over_one
from tests.reference.oracle import Question
from tests.reference.values import EPOCH, Row, Value

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
MS = 1_000

#: Columns of every generated stream but its time column `ts`.
COLUMNS = {"id": "int", "n": "int", "x": "float", "s": "string", "ok": "bool", "at": "timestamp[us]"}

INTS = [0, 1, 2, 3, 4, 5, -1, -7, 10, 2**53 + 1, INT_MIN, INT_MAX]
FLOATS = [0.0, -0.0, 1.0, 1.5, 2.5, -3.25, 4.0, 1e300, 5e-324, math.inf, -math.inf, math.nan, 2.0**53, 2.0**63]
STRINGS = ["", "a", "b", "ab", "aB", "abc", "a%", "a_c", "it's", "zz", "\u00e9", "\u65e5\u672c", "\U0001f600", "a\\b", "A"]
INSTANTS = [0, 1, 1_000, 5_000, -1, 1_700_000_000_000_000, 1_700_000_000_000_001, 86_400_000_000]
POOLS: dict[str, list[Any]] = {"int": INTS, "float": FLOATS, "string": STRINGS, "bool": [False, True], "timestamp": INSTANTS}


@dataclass(frozen=True)
class Node:
    """An expression in its three forms; `type` is a column type, `params` the values of the :parameters in `sql`."""

    type: str
    sql: str
    duck: str | None
    fn: Callable[[Any], Any]
    params: dict[str, Any] = field(default_factory=dict)
    #: what an AND holds, those inside each other as one; empty for anything else
    conjuncts: tuple[Node, ...] = ()


def combine(type: str, form: str, parts: list[Node], fn: Callable[..., Any], duck: str | None = None) -> Node:
    """A node over parts: `form` has one {} per part, `duck` likewise (the same form if None), `fn` takes their values."""
    functions = [part.fn for part in parts]
    ducks = [part.duck for part in parts]
    text = None if None in ducks else (duck or form).format(*ducks)
    params = {name: value for part in parts for name, value in part.params.items()}
    conjuncts = tuple(each for part in parts for each in part.conjuncts or (part,)) if fn is kleene_and else ()
    sql = form.format(*(part.sql for part in parts))
    return Node(type, sql, text, lambda row: fn(*[f(row) for f in functions]), params, conjuncts)


# -- three-valued logic and values -----------------------------------------------------------------------------------


def kleene_and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def kleene_or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def kleene_not(value: bool | None) -> bool | None:
    return None if value is None else not value


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def order_key(value: Any) -> tuple[int, Any]:
    """SQL's order: NaN is one value above all numbers."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def compare(op: str, a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        a, b = order_key(a), order_key(b)
    return bool(OPERATORS[op](a, b))


def contained(value: Any, *items: Any) -> bool | None:
    return kleene_or(*(compare("=", value, item) for item in items))


def like(value: str | None, pattern: str) -> bool | None:
    if value is None:
        return None
    parts = {"%": ".*", "_": "."}
    return re.fullmatch("".join(parts.get(c, re.escape(c)) for c in pattern), value, re.DOTALL) is not None


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """+ - * / % with NULL for what cannot be computed; `/` is float, int results outside 64 bits are NULL."""
    if a is None or b is None:
        return None
    if op == "/":
        return None if b == 0 else float(a) / float(b)
    if op == "%":
        return None if b == 0 else int(math.copysign(1, a)) * (abs(a) % abs(b))
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    result = a + b if op == "+" else a - b if op == "-" else a * b
    return None if isinstance(result, int) and not INT_MIN <= result <= INT_MAX else result


# -- rows ------------------------------------------------------------------------------------------------------------


def random_value(rng: random.Random, declared: str) -> Any:
    """A value of a column type: mostly from the front of its pool, so that values repeat; sometimes NULL."""
    if rng.random() < 0.12:
        return None
    pool = POOLS[declared.split("[")[0]]
    return rng.choice(pool[:5]) if rng.random() < 0.6 else rng.choice(pool)


def random_times(rng: random.Random, n: int, center: int, unit: int) -> list[int]:
    """Times around `center`, in multiples of `unit` us: in order, tied, shuffled, late, or spread over many windows."""
    shape = rng.choice(["tied", "close", "close", "shuffled", "late", "wide"])
    spread = {"tied": 0, "close": 5, "shuffled": 8, "late": 10, "wide": rng.choice([60, 2_000])}[shape] * MS
    times = [center + rng.randint(-spread if shape == "late" else -spread // 8, spread) for _ in range(n)]
    if shape in ("close", "wide"):
        times.sort()
    return [time // unit * unit for time in times]


def random_rows(rng: random.Random, n: int, times: list[int] | None) -> list[Row]:
    """Rows in canonical values; few distinct ones when the draw says so, so that netting has work."""
    distinct = rng.choice([2, n, n]) or 1
    made = [{c: random_value(rng, declared) for c, declared in COLUMNS.items()} for _ in range(min(distinct, n))]
    rows = [dict(rng.choice(made)) if distinct < n else dict(made[i]) for i in range(n)]
    for row, time in zip(rows, times or [], strict=False):
        row["ts"] = time
    return rows


# -- constants and expressions ---------------------------------------------------------------------------------------


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def instant_text(micros: int) -> str:
    return (EPOCH + dt.timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M:%S.%f")


def to_datetime(micros: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=micros)


class Expressions:
    """Random typed expressions over one stream's columns; one object per query, as it numbers the parameters."""

    def __init__(self, rng: random.Random, columns: dict[str, str], instants: list[int], use_params: bool) -> None:
        self.rng = rng
        self.columns = {name: declared.split("[")[0] for name, declared in columns.items()}
        self.instants = instants
        self.use_params = use_params
        self._n_params = 0

    def refer(self, name: str) -> Node:
        """The column of that name."""
        return Node(self.columns[name], name, f'"{name}"', lambda row: row[name])

    def column(self, type: str) -> Node:
        return self.refer(self.rng.choice([name for name, declared in self.columns.items() if declared == type]))

    def constant(self, type: str, value: Any = None) -> Node:
        """A literal or parameter; floats without a plain literal are always parameters."""
        if value is None:
            value = self.rng.choice(INSTANTS + self.instants) if type == "timestamp" else None
            while value is None:
                value = random_value(self.rng, type)
        sql, duck = _literal(type, value)
        given = to_datetime(value) if type == "timestamp" else value
        if sql is None or (self.use_params and self.rng.random() < 0.4):
            name = f"p{self._n_params}"
            self._n_params += 1
            return Node(type, f":{name}", duck, lambda row: value, {name: given})
        return Node(type, sql, duck, lambda row: value)

    def scalar(self, type: str) -> Node:
        """A column, or now and then a small expression of that type."""
        if self.rng.random() < 0.75:
            return self.column(type)
        makers: dict[str, list[Callable[[], Node]]] = {
            "int": [
                self.int_arithmetic,
                self.int_arithmetic,
                lambda: self.case("int"),
                lambda: self.coalesce("int"),
                self.length,
            ],
            "float": [self.float_arithmetic, self.division, lambda: self.case("float"), lambda: self.coalesce("float")],
            "string": [self.concatenation, lambda: self.case("string"), lambda: self.coalesce("string")],
            "bool": [lambda: self.coalesce("bool")],
            "timestamp": [lambda: self.coalesce("timestamp"), lambda: self.case("timestamp")],
        }
        return self.rng.choice(makers[type])()

    def int_arithmetic(self) -> Node:
        op = self.rng.choice(["+", "-", "*", "%"])
        right = self.constant("int", self.rng.choice([2, 3, 7])) if op == "%" or self.rng.random() < 0.4 else self.column("int")
        form = f"({{}} {op} {{}})"
        return combine("int", form, [self.column("int"), right], lambda a, b: arithmetic(op, a, b), f"TRY{form}")

    def float_arithmetic(self) -> Node:
        op = self.rng.choice(["+", "-", "*"])
        left = self.column("float")
        if op == "*":
            right = self.constant("float", self.rng.choice([0.5, 2.0, -1.0]))
        else:
            right = self.rng.choice([self.column("float"), self.constant("float", 1.5)])
        return combine("float", f"({{}} {op} {{}})", [left, right], lambda a, b: arithmetic(op, a, b))

    def division(self) -> Node:
        left, right = self.column("int"), self.column(self.rng.choice(["int", "float"]))
        return combine("float", "({} / {})", [left, right], lambda a, b: arithmetic("/", a, b), "({} / NULLIF({}, 0))")

    def concatenation(self) -> Node:
        parts = [self.column("string"), self.rng.choice([self.column("string"), self.constant("string", "b")])]
        return combine("string", "({} || {})", parts, lambda a, b: None if a is None or b is None else a + b)

    def length(self) -> Node:
        return combine("int", "LENGTH({})", [self.column("string")], lambda a: None if a is None else len(a))

    def coalesce(self, type: str) -> Node:
        return combine(type, "COALESCE({}, {})", [self.column(type), self.constant(type)], lambda a, b: b if a is None else a)

    def case(self, type: str) -> Node:
        parts = [self.comparison(), self.column(type), self.constant(type)]
        form = "CASE WHEN {} THEN {} ELSE {} END"
        if self.rng.random() < 0.3:
            return combine(type, form.replace("ELSE {} ", ""), parts[:2], lambda p, a: a if p is True else None)
        return combine(type, form, parts, lambda p, a, b: a if p is True else b)

    # -- conditions --------------------------------------------------------------------------------------------------

    def comparison(self) -> Node:
        """column OP constant, on every type; int also against fractions."""
        op = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        type = self.rng.choice(["int", "int", "float", "string", "bool", "timestamp"])
        if type == "int" and self.rng.random() < 0.15:
            value = self.rng.choice([0.5, 1.5, 2.5, -0.5])
            right = Node("float", repr(value), repr(value), lambda row: value)
        else:
            right = self.constant(type)
        sides = [self.column(type), right]
        if self.rng.random() < 0.15:
            return combine("bool", f"{{1}} {op} {{0}}", sides, lambda a, b: compare(op, b, a))
        return combine("bool", f"{{}} {op} {{}}", sides, lambda a, b: compare(op, a, b))

    def atom(self) -> Node:
        rng = self.rng
        makers = [
            (8, self.comparison), (2, self.equal_id), (3, self.between), (3, self.member), (2, self.null_test), (2, self.pattern),
            (2, self.two_columns), (2, self.computed), (1, self.int_against_float), (1, self.fixed),
            (1, lambda: self.column("bool")),
        ]  # fmt: skip
        return rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()

    def equal_id(self) -> Node:
        return combine("bool", "{} = {}", [self.refer("id"), self.constant("int")], lambda a, b: compare("=", a, b))

    def between(self) -> Node:
        type = self.rng.choice(["int", "float", "string", "timestamp"])
        low, high = self.constant(type), self.constant(type)
        word = self.rng.choice(["BETWEEN", "BETWEEN", "NOT BETWEEN"])

        def test(a: Any, b: Any, c: Any) -> bool | None:
            inside = kleene_and(compare(">=", a, b), compare("<=", a, c))
            return inside if word == "BETWEEN" else kleene_not(inside)

        return combine("bool", f"{{}} {word} {{}} AND {{}}", [self.scalar(type), low, high], test)

    def member(self) -> Node:
        type = self.rng.choice(["int", "int", "float", "string", "timestamp", "bool"])
        items = [self.constant(type) for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < 0.15:
            items.append(Node(type, "NULL", "NULL", lambda row: None))
        negated = self.rng.random() < 0.3
        form = f"{{}} {'NOT IN' if negated else 'IN'} ({', '.join(['{}'] * len(items))})"
        return combine(
            "bool", form, [self.column(type), *items], lambda a, *b: kleene_not(contained(a, *b)) if negated else contained(a, *b)
        )

    def null_test(self) -> Node:
        part = self.scalar(self.rng.choice(["int", "float", "string", "bool", "timestamp"]))
        if self.rng.random() < 0.5:
            return combine("bool", "{} IS NULL", [part], lambda a: a is None)
        return combine("bool", "{} IS NOT NULL", [part], lambda a: a is not None)

    def pattern(self) -> Node:
        text = self.rng.choice(["a%", "%b%", "_", "a_c", "", "%", "ab", "a\\b", "%'%", "__%"])
        negated = self.rng.random() < 0.25
        form = f"{{}} {'NOT LIKE' if negated else 'LIKE'} {quote(text)}"
        return combine("bool", form, [self.scalar("string")], lambda a: kleene_not(like(a, text)) if negated else like(a, text))

    def two_columns(self) -> Node:
        type = self.rng.choice(["int", "int", "timestamp", "float", "string"])
        op = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        return combine("bool", f"{{}} {op} {{}}", [self.column(type), self.column(type)], lambda a, b: compare(op, a, b))

    def computed(self) -> Node:
        type = self.rng.choice(["int", "int", "float", "string"])
        op = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        return combine("bool", f"{{}} {op} {{}}", [self.scalar(type), self.constant(type)], lambda a, b: compare(op, a, b))

    def int_against_float(self) -> Node:
        op = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        made = combine("bool", f"{{}} {op} {{}}", [self.column("int"), self.column("float")], lambda a, b: compare(op, a, b))
        return Node(made.type, made.sql, None, made.fn, made.params)

    def crowd(self) -> Node:
        """A condition as thousands of users have it: a key and one or two bounds, no two of them quite the same."""
        kind = self.rng.choice(["key", "key", "key", "bounds", "either"])
        parts = [self.equal_id() if kind == "key" else self.comparison()]
        parts += [self.comparison() for _ in range(self.rng.choice([0, 1, 1, 2]))]
        word = "OR" if kind == "either" else "AND"
        form = f" {word} ".join(["{}"] * len(parts))
        return combine("bool", form, parts, kleene_or if kind == "either" else kleene_and)

    def fixed(self) -> Node:
        value = self.rng.random() < 0.6
        sql = self.rng.choice(["TRUE", "1 = 1", "NOT FALSE"] if value else ["FALSE", "1 > 2"])
        return Node("bool", sql, sql, lambda row: value)

    def condition(self, depth: int) -> Node:
        """Nested AND, OR, NOT over atoms, `depth` levels deep."""
        if depth == 0 or self.rng.random() < 0.2:
            return self.atom()
        kind = self.rng.choice(["and", "and", "or", "or", "not"])
        if kind == "not":
            return combine("bool", "NOT ({})", [self.condition(depth - 1)], kleene_not)
        parts = [self.condition(depth - 1) for _ in range(self.rng.choice([2, 2, 3]))]
        form = f" {kind.upper()} ".join(["({})"] * len(parts))
        return combine("bool", form, parts, kleene_and if kind == "and" else kleene_or)


def _literal(type: str, value: Any) -> tuple[str | None, str]:
    """The text of a constant for the engine (None: only as a parameter) and for DuckDB."""
    if type == "string":
        return quote(value), quote(value)
    if type == "bool":
        return str(value).upper(), str(value).upper()
    if type == "timestamp":
        text = f"TIMESTAMP {quote(instant_text(value))}"
        return text, text
    if type == "int":
        return str(value), f"CAST('{value}' AS BIGINT)"
    plain = repr(value) if math.isfinite(value) and 1e-4 < abs(value) < 1e15 else None
    return plain, f"CAST('{value!r}' AS DOUBLE)"


# -- queries ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """A query in all its forms: for the engine, for DuckDB and for the model."""

    sql: str
    #: for DuckDB; None where it would give another meaning
    question: Question | None
    params: dict[str, Any]
    meaning: Meaning
    names: list[str]
    types: list[str]
    #: whether it gives a stream
    is_stream: bool

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sql!r}, params={self.params!r})"


@dataclass(frozen=True, repr=False)
class QuerySpec(Spec):
    """A query over one stream."""

    stream: str
    #: the window as written
    window: str

    def with_window(self, window: str, width: Window | float | None) -> QuerySpec:
        """The same query over another window, or one of that width."""
        old, new = (f"FROM {self.stream}{' ' + text if text else ''}" for text in (self.window, window))
        inputs = (replace(self.meaning.inputs[0], window=_window(width)),)
        meaning = replace(self.meaning, inputs=inputs)
        return replace(self, sql=self.sql.replace(old, new, 1), window=window, meaning=meaning, is_stream=width is None)


def _window(width: Window | float | None) -> Window | None:
    return width if width is None or isinstance(width, Window) else Window(width)


WINDOWS: list[tuple[str, float | None]] = [
    ("", None),
    ("[NOW]", 1),
    ("[RANGE UNBOUNDED]", UNBOUNDED),
    ("[RANGE 1 MICROSECOND]", 1),
    ("[RANGE 2 MICROSECONDS]", 2),
    ("[RANGE 1 MILLISECOND]", MS),
    ("[RANGE 5 MILLISECONDS]", 5 * MS),
    ("[RANGE 20 MILLISECONDS]", 20 * MS),
    ("[RANGE 5 MILLISECONDS]", 5 * MS),
    ("[RANGE 20 MILLISECONDS]", 20 * MS),
    ("[RANGE 300 MILLISECONDS]", 300 * MS),
    ("[RANGE 1 SECOND]", 1_000 * MS),
    ("[RANGE 2 MINUTES]", 120_000 * MS),
]


def random_query(
    rng: random.Random,
    stream: str,
    columns: dict[str, str],
    instants: list[int],
    depth: int | None = None,
    crowd: bool = False,
) -> QuerySpec:
    """A select-project-filter query over one stream; `instants` are times worth comparing with."""
    made = Expressions(rng, columns, instants, use_params=rng.random() < 0.5)
    window, width = rng.choice(WINDOWS)
    condition = None
    if crowd:
        condition = made.crowd()
    elif rng.random() > 0.12:
        condition = made.condition(rng.choice([0, 0, 0, 1, 1, 2, 3]) if depth is None else depth)
    outputs = _random_outputs(rng, made, columns)
    star = outputs is None
    chosen = outputs or [
        (name, Node(declared.split("[")[0], name, f'"{name}"', _getter(name))) for name, declared in columns.items()
    ]
    listed = "*" if star else ", ".join(node.sql if node.sql == name else f"{node.sql} AS {name}" for name, node in chosen)
    params = dict(condition.params) if condition else {}
    for _, node in chosen:
        params.update(node.params)
    where = f" WHERE {condition.sql}" if condition else ""
    return QuerySpec(
        sql=f"SELECT {listed} FROM {stream}{' ' + window if window else ''}{where}",
        question=ask(["source_"], [node for _, node in chosen], [condition] if condition else []),
        params=params,
        meaning=over_one(
            stream, _window(width), condition.fn if condition else lambda row: True, outputs_of([node for _, node in chosen])
        ),
        names=[name for name, _ in chosen],
        types=[node.type for _, node in chosen],
        is_stream=width is None,
        stream=stream,
        window=window,
    )


def ask(aliases: Sequence[str], outputs: Sequence[Node], conditions: Sequence[Node]) -> Question | None:
    """The query for DuckDB; None where some part of it means something else there."""
    listed = [node.duck for node in outputs if node.duck is not None]
    wanted = [f"({node.duck})" for node in conditions if node.duck is not None]
    if len(listed) < len(outputs) or len(wanted) < len(conditions):
        return None
    return Question(tuple(aliases), tuple(listed), " AND ".join(wanted) or "TRUE")


def outputs_of(nodes: Sequence[Node]) -> Callable[[Any], Value]:
    """The values of the nodes, as a function of what each of them takes."""
    functions = [node.fn for node in nodes]
    return lambda given: tuple(fn(given) for fn in functions)


def _getter(name: str) -> Callable[[Row], Any]:
    return lambda row: row[name]


def _random_outputs(rng: random.Random, made: Expressions, columns: dict[str, str]) -> list[tuple[str, Node]] | None:
    """Named output columns, or None for `*`."""
    kind = rng.choice(["*", "columns", "columns", "one", "expressions"])
    if kind == "*":
        return None
    if kind == "one":
        node = made.column(rng.choice(["bool", "int", "string"]))
        return [(node.sql, node)]
    if kind == "columns":
        names = rng.sample(list(columns), rng.randint(1, len(columns)))
        return [(name, Node(columns[name].split("[")[0], name, f'"{name}"', _getter(name))) for name in names]
    types = [rng.choice(["int", "float", "string", "bool", "timestamp"]) for _ in range(rng.randint(1, 3))]
    return [(f"e{i}", rng.choice([made.scalar, made.column, made.constant])(type)) for i, type in enumerate(types)]
