"""Words of SQL that the language does not have, and the error message for each.

*Later* words are planned (contract 4); *never* words are not. Both are refused by name with the code
`not_supported`: a word that is not understood must never pass for a column or an alias.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RefusedWord:
    """Why a word is refused."""

    what: str
    planned: bool
    hint: str = ""

    @property
    def fact(self) -> str:
        return f"{self.what} is not supported yet" if self.planned else f"{self.what} is not part of the language"

    @property
    def advice(self) -> str:
        return self.hint or ("it comes with a later version" if self.planned else "")


def later(what: str, hint: str = "") -> RefusedWord:
    return RefusedWord(what, True, hint)


def never(what: str, hint: str = "") -> RefusedWord:
    return RefusedWord(what, False, hint)


SUBQUERY = later("a sub-query outside FROM")
IN_QUERY = later("IN (query)", "list the values: x IN (1, 2, 3)")
PARENTHESES_IN_FROM = never(
    "a parenthesis in FROM without a query", "joins are read from left to right: a JOIN b ON .. JOIN c ON .."
)
COLUMN_LIST = never("a list of column names", "name the columns inside the query: expr AS name")
RECURSIVE = never("WITH RECURSIVE")
DISTINCT_ON = never("DISTINCT ON", "SELECT DISTINCT takes whole rows; or GROUP BY with FIRST or LAST")
GROUP_BY_ALL = never("GROUP BY ALL", "list the keys: GROUP BY a, b")
BY_NAME = never("BY NAME", "columns are matched by their place: list them in the same order")
MANY_STATEMENTS = never("more than one statement", "submit each query on its own")
ARRAYS = never("an array or subscript")
USING = never("USING", "name the columns: a JOIN b ON a.x = b.x")
_SAMPLE = never("TABLESAMPLE")
#: What makes a stream of a relation.
STREAM_OPERATORS = ("ISTREAM", "DSTREAM", "RSTREAM")
_STREAM_OPERATORS = {
    word: never(f"{word} inside a SELECT", f"it stands around a query: {word} (SELECT ...)") for word in STREAM_OPERATORS
}
_WINDOW_FUNCTION = never("OVER", "a window stands behind the stream: FROM s [RANGE 5 MINUTES]")

#: What may not begin a statement. Any other word than SELECT is a syntax error.
STATEMENTS = {
    "FROM": never("FROM before SELECT", "write SELECT ... FROM ..."),
    "VALUES": never("VALUES"),
} | {
    word: never(f"{word} (DDL, DML)", "only SELECT; streams are made by create_stream and fed by push")
    for word in (
        "CREATE DROP ALTER INSERT UPDATE DELETE MERGE TRUNCATE COPY EXPLAIN DESCRIBE SHOW SET PRAGMA USE ATTACH DETACH GRANT "
        "REVOKE BEGIN COMMIT ROLLBACK CALL EXECUTE PREPARE LOAD INSTALL EXPORT IMPORT COMMENT ANALYZE VACUUM SUMMARIZE REPLACE"
    ).split()
}

#: Words that begin a clause of the language: never an alias unless behind AS.
CLAUSE_WORDS = frozenset(("GROUP", "GROUP BY", "HAVING", "UNION", "EXCEPT", "INTERSECT", "WITH"))

#: Words that begin a clause or follow an operand.
CLAUSES = {
    "ORDER": later("ORDER BY"),
    "ORDER BY": later("ORDER BY"),
    "LIMIT": later("LIMIT"),
    "OFFSET": never("OFFSET"),
    "FETCH": later("FETCH"),
    "MINUS": never("MINUS", "write EXCEPT"),
    "LEFT": later("LEFT JOIN"),
    "RIGHT": later("RIGHT JOIN"),
    "FULL": later("FULL JOIN"),
    "OUTER": never("OUTER JOIN", "write a JOIN b ON a.x = b.x, which keeps matching rows only"),
    "CROSS": never("CROSS JOIN", "write a comma: FROM a [RANGE 5 MINUTES], b [RANGE 5 MINUTES]"),
    "NATURAL": never("NATURAL JOIN", "name the columns: a JOIN b ON a.x = b.x"),
    "ASOF": later("ASOF JOIN"),
    "SEMI": never("SEMI JOIN"),
    "ANTI": never("ANTI JOIN"),
    "POSITIONAL": never("POSITIONAL JOIN"),
    "LATERAL": never("LATERAL"),
    "ON": never("ON without JOIN"),
    "USING": never("USING"),
    "WINDOW": never("WINDOW", "a window stands behind the stream: FROM s [RANGE 5 MINUTES]"),
    "QUALIFY": never("QUALIFY"),
    "TABLESAMPLE": _SAMPLE,
    "SAMPLE": _SAMPLE,
    "PIVOT": never("PIVOT"),
    "UNPIVOT": never("UNPIVOT"),
    "MATCH_RECOGNIZE": never("MATCH_RECOGNIZE"),
    "OVER": _WINDOW_FUNCTION,
    "FILTER": never("FILTER behind what is no aggregate", "SUM(x) FILTER (WHERE y > 0)"),
    "WITHIN": never("WITHIN GROUP"),
    "FOR": never("FOR"),
    "INTO": never("INTO"),
    "SLIDE": never("SLIDE outside a window", "write [RANGE 5 MINUTES SLIDE 1 MINUTE]"),
    "CLUSTER BY": never("CLUSTER BY"),
    "DISTRIBUTE BY": never("DISTRIBUTE BY"),
    "CONNECT BY": never("CONNECT BY"),
    "PARTITION BY": never("PARTITION BY outside a window", "write [PARTITION BY key ROWS 10]"),
    "ILIKE": never("ILIKE", "LOWER(a) LIKE 'x%'"),
    "GLOB": never("GLOB", "use LIKE with % and _"),
    "SIMILAR TO": never("SIMILAR TO", "use LIKE with % and _"),
    "REGEXP": never("REGEXP", "use LIKE, or register a Python function"),
    "RLIKE": never("RLIKE", "use LIKE, or register a Python function"),
    "COLLATE": never("COLLATE", "texts compare by code point"),
    "AT": never("AT TIME ZONE", "all times are UTC"),
    "ISNULL": never("ISNULL", "write IS NULL"),
    "NOTNULL": never("NOTNULL", "write IS NOT NULL"),
    "EXCLUDE": never("EXCLUDE", "list the columns you want"),
    "REPLACE": never("REPLACE after *", "list the columns you want"),
    "DIV": never("DIV", "FLOOR(a / b)"),
}

_CLOCKS = "CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIME LOCALTIMESTAMP"
_CLOCK_HINT = "there is no current time in a continuous query: use a window"

#: Words in the place of an operand.
OPERANDS = {
    "DISTINCT": never("DISTINCT here", "write SELECT DISTINCT, or COUNT(DISTINCT x)"),
    "ALL": never("ALL"),
    "EXISTS": later("EXISTS"),
    "SELECT": SUBQUERY,
    "WITH": SUBQUERY,
    "VALUES": SUBQUERY,
} | {word: never(word, _CLOCK_HINT) for word in _CLOCKS.split()}

AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "VARIANCE", "MEDIAN", "FIRST", "LAST")
_OTHER_AGGREGATES = "STDDEV_SAMP STDDEV_POP VAR_SAMP VAR_POP MEAN ANY_VALUE BOOL_AND BOOL_OR MODE ARG_MIN ARG_MAX STRING_AGG CORR"
_NESTED = "ARRAY_AGG LIST LIST_VALUE STRUCT_PACK ROW MAP UNNEST ARRAY STRUCT JSON JSON_EXTRACT LIST_FILTER LIST_TRANSFORM"
_SETS_OF_KEYS = "GROUPING SETS,ROLLUP,CUBE,GROUPING,GROUPING_ID"
_RANKS = "DENSE_RANK NTILE FIRST_VALUE LAST_VALUE NTH_VALUE PERCENT_RANK CUME_DIST"

#: Windows written as functions in FROM, and how.
SLIDE_FUNCTIONS = {
    "TUMBLE": "TUMBLE(stream, 5 MINUTES)",
    "HOP": "HOP(stream, 1 MINUTE, 5 MINUTES)",
}

#: Function names. A registered function cannot have one of these names either.
FUNCTIONS = (
    {word: never(f"the aggregate {word}", f"there are: {' '.join(AGGREGATES)}") for word in _OTHER_AGGREGATES.split()}
    | {word: later(word) for word in ("QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "APPROX_QUANTILE", "PERCENTILE_CONT")}
    | {"SESSION": later("SESSION")}
    | {word: later(word, "write EXTRACT(hour FROM ts)") for word in ("DATE_PART", "DATEPART")}
    | {word: never(f"{word} outside FROM", f"FROM {usage}") for word, usage in SLIDE_FUNCTIONS.items()}
    | {word: never(word, "submit one query for each set of keys") for word in _SETS_OF_KEYS.split(",")}
    | _STREAM_OPERATORS
    | {word: never(f"{word} (nested types)") for word in _NESTED.split()}
    | {word: never(f"the window function {word}", _WINDOW_FUNCTION.hint) for word in _RANKS.split()}
    | {word: later(f"the window function {word}") for word in ("LAG", "LEAD", "ROW_NUMBER", "RANK")}
    | {word: never(f"{word}()", _CLOCK_HINT) for word in (_CLOCKS + " NOW TODAY GETDATE GET_CURRENT_TIMESTAMP").split()}
    | {"EXISTS": OPERANDS["EXISTS"]}
    | {word: later(f"{word} (query)") for word in ("ANY", "SOME", "ALL")}
    | {word: never(f"{word}()", "a random value has no exact answer") for word in ("RANDOM", "RAND", "UUID", "GEN_RANDOM_UUID")}
)

#: Table functions in FROM.
SOURCES = {"SESSION": later("SESSION"), "LATERAL": CLAUSES["LATERAL"]}

#: Words in the brackets of a window that `queries/windows.py` does not read.
WINDOWS = {
    "SESSION": later("a SESSION window", "it comes with a later version; [RANGE 5 MINUTES] works now"),
    **{word: never(f"{word} in the brackets of a window", f"FROM {usage}") for word, usage in SLIDE_FUNCTIONS.items()},
}

#: Operator symbols.
SYMBOLS = {
    "//": never("//", "FLOOR(a / b)"),
    "**": never("**", "POWER(a, b)"),
    "^": never("^", "POWER(a, b)"),
    "->": never("-> (lambdas, nested types)"),
    "->>": never("->> (nested types)"),
    "=>": never("=> (named arguments)"),
    ":=": never(":="),
    "<=>": never("<=>", "a = b OR (a IS NULL AND b IS NULL)"),
    "?": never("?", "name the parameter: :name"),
    "$": never("$", "name the parameter: :name"),
    "@": never("@"),
    "!": never("!", "write NOT"),
    "~": never("~", "use LIKE"),
    "&": never("&"),
    "|": never("|", "|| joins texts"),
    "#": never("#"),
    "\\": never("\\"),
}
