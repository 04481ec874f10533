"""A tree of operators as one-time SQL for DuckDB that gives its answer at many points at once.

A point `p_` is a moment: after event `e_`, at the time `tau_` from that event up to the next, in commit `seq_`. Every relation
is a common table expression with `p_` before its columns, every stream one with `e_`, the event that emitted the row.
The leaves are the rows each stream took, with `e_`, `t_`, `start_`, `seq_` and `position_`, and the versions of tables:

    stream [RANGE w]        e_ <= the point's and tau_ < t_ + w
    [ROWS n]                the first n by position_ backwards, of those with e_ <= the point's (of their key)
    [RANGE w SLIDE s]       B - w <= t_ and start_ < B, B = tau_ down to a multiple of s
    keyed                   and the point is before the next row or retraction of its key, tau_ before its end
    ISTREAM (q)             q after each event EXCEPT ALL q after the event before; DSTREAM the other way round
    RSTREAM (q)             q at the close of each instant at which it differs from the close before, or of each boundary

Everything above the leaves is DuckDB's own SQL; operators know nothing of the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.reference.binding import Opening
from tests.reference.lives import UNBOUNDED
from tests.reference.operators import (
    Aggregate,
    Combined,
    Distinct,
    Grouped,
    Item,
    Named,
    Select,
    Slide,
    ToStream,
    Tree,
    slides,
)

#: Stands for "never" on either side of all times, commits and events.
NEVER = 2**62


def _quoted(columns: Sequence[str], alias: str = "") -> str:
    prefix = f"{alias}." if alias else ""
    return ", ".join(f'{prefix}"{column}"' for column in columns)


class Questions:
    """The common table expressions of one question; `table` gives the DuckDB name of a stream or table.

    `points`, the name of what is asked for, and `events` are tables; `last` is the last event that matters.
    """

    def __init__(self, table: Callable[[str], str], events: str, last: int) -> None:
        self._table = table
        self._events = events
        self._last = last
        self._made: dict[tuple[object, ...], str] = {}
        self._texts: list[str] = []

    def text(self, final: str) -> str:
        return f"WITH {', '.join(self._texts)} {final}"

    def _add(self, key: tuple[object, ...], text: Callable[[], str]) -> str:
        if key not in self._made:
            made = text()  # first: what it uses stands before it
            self._made[key] = f"q{len(self._texts)}_"
            self._texts.append(f"{self._made[key]} AS ({made})")
        return self._made[key]

    # -- points ------------------------------------------------------------------------------------------------------

    def _after_events(self, opening: Opening) -> str:
        where = f"number_ BETWEEN {opening.event} AND {self._last}"
        text = f"SELECT number_ AS p_, number_ AS e_, time_ AS tau_, seq_ FROM {self._events} WHERE {where}"
        return self._add(("events", id(opening)), lambda: text)

    def _closes(self, opening: Opening) -> str:
        """The opening, and the close of each instant after it; `next_` is the close that follows."""
        where = f"number_ <= {self._last} AND (number_ = {opening.event} OR (closes_ AND number_ > {opening.event}))"
        text = "SELECT number_ AS p_, number_ AS e_, time_ AS tau_, seq_, lead(number_) OVER (ORDER BY number_) AS next_"
        return self._add(("closes", id(opening)), lambda: f"{text} FROM {self._events} WHERE {where}")

    # -- relations ---------------------------------------------------------------------------------------------------

    def relation(self, tree: Tree, opening: Opening, points: str) -> str:
        """The name of a table with the answer at each point."""
        return self._add(("relation", id(tree), id(opening), points), lambda: self._relation(tree, opening, points))

    def _relation(self, tree: Tree, opening: Opening, points: str) -> str:
        match tree:
            case Select():
                outputs = ", ".join(f'{node.duck} AS "{name}"' for name, node in tree.outputs)
                return f"SELECT at_.p_, {outputs} {self._from_where(tree, opening, points)}"
            case Grouped():
                return self._grouped(tree, opening, points)
            case Distinct(child):
                return f"SELECT DISTINCT * FROM {self.relation(child, opening, points)}"
            case Combined(word, all, left, right):
                sides = [self.relation(side, opening, points) for side in (left, right)]
                return f" {word.upper()}{' ALL' if all else ''} ".join(f"SELECT * FROM {side}" for side in sides)
            case Named(name):
                other = opening.reads[name]
                return f"SELECT * FROM {self.relation(other.tree, other, points)}"
        raise ValueError(f"no relation: {tree}")

    def _from_where(self, tree: Select | Grouped, opening: Opening, points: str) -> str:
        sources = [f"{points} AS at_"]
        links = [f"({tree.where.duck})"] if tree.where else []
        streams = [item.alias for item in tree.items if item.window is not None]
        for item in tree.items:
            if item.is_table:
                sources.append(f"{self._table(str(item.source))} AS {item.alias}")
                seq = f"greatest({', '.join(f'{alias}.at_' for alias in streams)})" if streams else "at_.seq_"
                retroactive = f"{item.alias}.retroactive_"
                links += [_current(item.alias, f"CASE WHEN {retroactive} THEN at_.seq_ ELSE {seq} END")]
                continue
            if item.window is not None:
                name = self._windowed(item, opening, points)
            else:
                assert not isinstance(item.source, str)
                name = self.relation(item.source, opening, points)
            sources.append(f"{name} AS {item.alias}")
            links.append(f"{item.alias}.p_ = at_.p_")
        return f"FROM {', '.join(sources)} WHERE {' AND '.join(links) or 'TRUE'}"

    def _windowed(self, item: Item, opening: Opening, points: str) -> str:
        return self._add(("item", id(item), id(opening), points), lambda: self._contents(item, opening, points))

    def _contents(self, item: Item, opening: Opening, points: str) -> str:
        """What a window holds at each point: `ord_` is the order of arrival, `at_` the commit it counts for."""
        columns = [column for column in item.columns if column not in ("window_start", "window_end")]
        if isinstance(item.source, str):
            first = opening.first[id(item)]
            at = f"greatest(seq_, {opening.seq}) AS at_"
            listed = f"{_quoted(columns)}, t_, start_, e_, position_ AS ord_, {at}, until_, gone_"
            rows = f"SELECT {listed} FROM {self._table(item.source)} WHERE position_ >= {first}"
        else:
            listed = f"{_quoted(columns, 's')}, time_ AS t_, time_ AS start_, s.e_, s.e_ AS ord_, seq_ AS at_"
            of = f"{self.stream(item.source, opening)} AS s JOIN {self._events} ON number_ = s.e_"
            rows = f"SELECT {listed}, {NEVER} AS until_, {NEVER} AS gone_ FROM {of} WHERE s.e_ > {opening.event}"
        window = item.window
        alive = "here_.tau_ < until_ AND here_.e_ < gone_"
        if isinstance(window, Slide):
            boundary = f"(here_.tau_ - (here_.tau_ % {window.slide} + {window.slide}) % {window.slide})"
            bounds = f", make_timestamp({boundary} - {window.width}) AS window_start, make_timestamp({boundary}) AS window_end"
            inside = f"t_ >= {boundary} - {window.width} AND start_ < {boundary} AND {alive}"
            return f"SELECT here_.p_, s_.*{bounds} FROM {points} AS here_, ({rows}) AS s_ WHERE s_.e_ <= here_.e_ AND {inside}"
        assert window is not None
        inside = alive + ("" if window.width == UNBOUNDED else f" AND here_.tau_ < t_ + {int(window.width)}")
        rank = ""
        if window.rows is not None:
            keys = ", ".join(["here_.p_", *(f'"{column}"' for column in window.partition)])
            rank = f", row_number() OVER (PARTITION BY {keys} ORDER BY ord_ DESC) <= {window.rows} AS newest_"
        came = (
            f"SELECT here_.p_, ({inside}) AS inside_, s_.*{rank} FROM {points} AS here_, ({rows}) AS s_ WHERE s_.e_ <= here_.e_"
        )
        return f"SELECT * FROM ({came}) WHERE inside_{' AND newest_' if rank else ''}"

    def _grouped(self, tree: Grouped, opening: Opening, points: str) -> str:
        listed = [f"{key.duck} AS k{i}" for i, key in enumerate(tree.keys)]
        for i, made in enumerate(tree.aggregates):
            listed.append(f"{made.argument.duck if made.argument else 1} AS x{i}")
            listed.append(f"{made.where.duck if made.where else 'TRUE'} AS f{i}")
        ordered = len(tree.items) == 1 and tree.items[0].window is not None
        listed += [f"{tree.items[0].alias}.ord_" if ordered else "0 AS ord_", "TRUE AS here_"]
        rows = f"SELECT at_.p_, {', '.join(listed)} {self._from_where(tree, opening, points)}"
        keys = [f"k{i}" for i in range(len(tree.keys))]
        aggregates = [f"{_call(made, i)} AS a{i}" for i, made in enumerate(tree.aggregates)]
        if tree.scalar:
            source = f"{points} AS all_ LEFT JOIN ({rows}) AS r_ ON r_.p_ = all_.p_"
            groups = f"SELECT all_.p_, {', '.join(aggregates)} FROM {source} GROUP BY all_.p_"
        else:
            groups = f"SELECT p_, {', '.join(keys + aggregates)} FROM ({rows}) GROUP BY {', '.join(['p_', *keys])}"
        outputs = ", ".join(f'{node.duck} AS "{name}"' for name, node in tree.outputs)
        return f"SELECT p_, {outputs} FROM ({groups}) WHERE {tree.having.duck if tree.having else 'TRUE'}"

    # -- streams -----------------------------------------------------------------------------------------------------

    def stream(self, tree: Tree, opening: Opening) -> str:
        """The name of a table with all that a stream emitted."""
        return self._add(("stream", id(tree), id(opening)), lambda: self._stream(tree, opening))

    def _stream(self, tree: Tree, opening: Opening) -> str:
        match tree:
            case Select():
                return self._unwindowed(tree, opening)
            case ToStream("rstream", child):
                return self._at_instants(child, opening)
            case ToStream(word, child):
                answers = self.relation(child, opening, self._after_events(opening))
                columns = _quoted(list(tree.columns))
                after = f"SELECT p_ AS e_, {columns} FROM {answers} WHERE p_ > {opening.event}"
                before = f"SELECT p_ + 1 AS e_, {columns} FROM {answers} WHERE p_ < {self._last}"
                return f"{after} EXCEPT ALL {before}" if word == "istream" else f"{before} EXCEPT ALL {after}"
            case Named(name):
                other = opening.reads[name]
                return f"SELECT * FROM {self.stream(other.tree, other)}"
        raise ValueError(f"no stream: {tree}")

    def _unwindowed(self, tree: Select, opening: Opening) -> str:
        """Each row once, beside tables as they were when it came."""
        (item,) = [item for item in tree.items if item.is_stream]
        links = [f"({tree.where.duck})"] if tree.where else []
        if isinstance(item.source, str):
            rows = f"(SELECT * FROM {self._table(item.source)} WHERE position_ >= {opening.first[id(item)]} AND until_ > start_)"
        else:
            of = f"{self.stream(item.source, opening)} AS s JOIN {self._events} ON number_ = s.e_"
            rows = f"(SELECT s.*, seq_ FROM {of} WHERE s.e_ > {opening.event})"
        sources = [f"{rows} AS {item.alias}"]
        for other in tree.items:
            if other is not item:
                sources.append(f"{self._table(str(other.source))} AS {other.alias}")
                links.append(_current(other.alias, f"{item.alias}.seq_"))
        outputs = ", ".join(f'{node.duck} AS "{name}"' for name, node in tree.outputs)
        return f"SELECT {item.alias}.e_, {outputs} FROM {', '.join(sources)} WHERE {' AND '.join(links) or 'TRUE'}"

    def _at_instants(self, child: Tree, opening: Opening) -> str:
        closes = self._closes(opening)
        answers = self.relation(child, opening, closes)
        columns = list(child.columns)
        sliding = slides(child)
        if sliding:
            met = " OR ".join(f"tau_ % {slide} = 0" for slide in sliding)
            opened = f"(SELECT time_ FROM {self._events} WHERE number_ = {opening.event})"
            speaks = f"SELECT p_ FROM {closes} WHERE p_ > {opening.event} AND tau_ > {opened} AND ({met})"
        else:
            after = f"SELECT p_, {_quoted(columns)} FROM {answers} WHERE p_ > {opening.event}"
            before = f"SELECT next_ AS p_, {_quoted(columns)} FROM {answers} JOIN {closes} USING (p_) WHERE next_ IS NOT NULL"
            speaks = f"SELECT p_ FROM (({after} EXCEPT ALL {before}) UNION ALL ({before} EXCEPT ALL {after}))"
        return f"SELECT p_ AS e_, {_quoted(columns)} FROM {answers} WHERE p_ IN ({speaks})"


def _current(alias: str, seq: str) -> str:
    return f"{alias}.opened_ <= {seq} AND {seq} < {alias}.closed_"


def _call(made: Aggregate, i: int) -> str:
    inside = f"DISTINCT x{i}" if made.distinct else f"x{i}"
    if made.kind in ("first", "last"):
        inside += " ORDER BY ord_"
    word = {"stddev": "stddev_samp", "variance": "var_samp"}.get(made.kind, made.kind)
    call = f"{word}({inside}) FILTER (WHERE here_ AND f{i})"
    return f"CAST({call} AS BIGINT)" if made.kind == "sum" and made.type == "int" else call
