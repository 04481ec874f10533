"""A market of symbols: trades, quotes, and articles that name symbols.

A row is a pure function of (seed, number of the row), and times never go back as the numbers go up: a row's moment is its
number plus a draw, bent to the day's activity. So a chunk is a range of numbers, and nothing is sorted.

    trading day     Monday to Friday, 14:30 to 21:00 UTC; 15 % of the rows come in the first 4 % of it, thickest at the very
                    start, and 10 % in the last 4 %
    symbols         four letters; the n-th most traded has about 1/n of the first one's rows
    hot symbols     every five minutes one symbol draws a fifth of all trades and quotes on top of its own; half of the
                    articles name first the symbol that will be hot in the next five minutes
    prices          swing about a price of the day, in cents; trades are at the bid or the ask
    articles        around the clock on trading days; each has one to three mentions of a symbol, a row for each, all at one time

`tests/reference/stock_rows.py` is the twin in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lineage.errors import SchemaError
from pipeline.draft import Declared
from pipeline.hashing import Chance, rounded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRADES = Declared({"ts": "timestamp", "symbol": "string", "price": "float", "size": "int", "exchange": "string"}, time="ts")
QUOTES = Declared(
    {"ts": "timestamp", "symbol": "string", "bid": "float", "ask": "float", "bid_size": "int", "ask_size": "int"}, time="ts"
)
ARTICLES = Declared(
    {"ts": "timestamp", "article": "int", "symbol": "string", "source": "string", "tone": "float", "words": "int"}, time="ts"
)
STREAMS = {"trades": TRADES, "quotes": QUOTES, "articles": ARTICLES}

DAY_US = 86_400_000_000
OPEN_US = 52_200_000_000
OPEN_FOR_US = 23_400_000_000
HOT_US = 300_000_000
#: Words of four letters.
N_WORDS = 26**4
#: Rows of an article at most.
MENTIONS = 3
_SOURCES = "'wire', 'daily', 'blog', 'post'"
_TAU = "6.283185307179586D"


@dataclass(frozen=True, slots=True)
class Market:
    """Settings of a market; `trades`, `quotes` and `articles` are numbers a day, `start_us` is the midnight of a Monday."""

    symbols: int
    days: int
    trades: int
    quotes: int
    articles: int
    start_us: int

    def __post_init__(self) -> None:
        if (
            not 1 <= self.symbols <= N_WORDS
            or self.days < 1
            or min(self.trades, self.quotes, self.articles) < 0
            or self.start_us < 0
        ):
            raise SchemaError(
                "there is nothing to generate",
                hint=f"a market has 1 to {N_WORDS} symbols, one day or more, and begins in 1970 or later",
            )
        if self.start_us % DAY_US or (self.start_us // DAY_US + 3) % 7:
            raise SchemaError("a market begins on a Monday at midnight UTC")

    def n_ids(self, stream: str) -> int:
        """Numbers of rows; of articles some are not used."""
        daily = {"trades": self.trades, "quotes": self.quotes, "articles": self.articles * MENTIONS}[stream]
        return daily * self.days

    def n_chunks(self, stream: str, chunk_rows: int) -> int:
        return -(-self.n_ids(stream) // chunk_rows)


def stream_rows(spark: SparkSession, market: Market, seed: int, stream: str, chunk_rows: int) -> DataFrame:
    """A stream of the market: one partition for each chunk, each in the order of time."""
    n_chunks = max(1, market.n_chunks(stream, chunk_rows))
    ids = spark.range(0, n_chunks * chunk_rows, 1, n_chunks).where(f"id < {market.n_ids(stream)}L")
    make = {"trades": trade_rows, "quotes": quote_rows, "articles": article_rows}[stream]
    return make(ids, market, Chance(seed))


def trade_rows(ids: DataFrame, market: Market, chance: Chance) -> DataFrame:
    at_ask = f"{chance.uniform('side', 'id')} < 0.5D"
    return _priced(ids, market, chance, "trade", market.trades).selectExpr(
        "timestamp_micros(us) AS ts",
        f"{_word(chance)} AS symbol",
        f"IF({at_ask}, ask, bid) AS price",
        f"{_size(chance, 'size')} AS size",
        f"substr('NQPZB', CAST(1 + floor(5.0D * {chance.uniform('exchange', 'id')}) AS INT), 1) AS exchange",
    )


def quote_rows(ids: DataFrame, market: Market, chance: Chance) -> DataFrame:
    return _priced(ids, market, chance, "quote", market.quotes).selectExpr(
        "timestamp_micros(us) AS ts",
        f"{_word(chance)} AS symbol",
        "bid",
        "ask",
        f"{_size(chance, 'bid size')} AS bid_size",
        f"{_size(chance, 'ask size')} AS ask_size",
    )


def article_rows(ids: DataFrame, market: Market, chance: Chance) -> DataFrame:
    """An id is article x 3 + mention; the first mention is always there."""
    mentions = ids.selectExpr("id", f"id div {MENTIONS}L AS article", f"id % {MENTIONS}L AS mention").where(
        f"mention = 0L OR {chance.uniform('mention', 'id')} < 0.35D"
    )
    daily = max(1, market.articles)
    moment = f"(article % {daily}L + {chance.uniform('article moment', 'article')}) / {daily}.0D"
    return (
        mentions.selectExpr("*", f"{_midnight(market, f'(article div {daily}L)')} + floor({moment} * {DAY_US}.0D) AS us")
        .selectExpr("*", f"{_rank(chance, market, 'mention', 'IF(mention = 0L, 0.5D, 0.0D)', f'us div {HOT_US}L + 1L')} AS rank")
        .selectExpr(
            "timestamp_micros(us) AS ts",
            "article",
            f"{_word(chance)} AS symbol",
            f"elt(CAST(1 + floor({chance.uniform('source', 'article')} * 4.0D) AS INT), {_SOURCES}) AS source",
            f"{rounded(chance.noise('tone', 'article') + ' / 3.5D', 100)} AS tone",
            f"60L + floor(900.0D * {chance.uniform('words', 'article')} * {chance.uniform('depth', 'article')}) AS words",
        )
    )


def _priced(ids: DataFrame, market: Market, chance: Chance, kind: str, daily: int) -> DataFrame:
    """Rows of a trading day with symbol, bid and ask."""
    daily = max(1, daily)
    part = f"(id % {daily}L + {chance.uniform(f'{kind} moment', 'id')}) / {daily}.0D"
    return (
        ids.selectExpr("id", f"{part} AS part")
        .selectExpr(
            "*", f"{_midnight(market, f'(id div {daily}L)')} + {OPEN_US}L + floor({_bent('part')} * {OPEN_FOR_US}.0D) AS us"
        )
        .selectExpr("*", f"{_rank(chance, market, kind, '0.2D', f'us div {HOT_US}L')} AS rank")
        .selectExpr("*", f"{_middle(chance)} AS middle")
        .selectExpr("*", "0.005D + 0.0002D * middle AS half")
        .selectExpr("*", "floor((middle - half) * 100.0D) / 100.0D AS bid", "ceil((middle + half) * 100.0D) / 100.0D AS ask")
    )


def _midnight(market: Market, day: str) -> str:
    """The midnight before a trading day; weeks have five of them."""
    return f"{market.start_us}L + ({day} div 5L * 7L + {day} % 5L) * {DAY_US}L"


def _bent(part: str) -> str:
    """From the part of a day's rows to the part of its time: never decreasing, from 0 to 1."""
    opening = f"0.04D * ({part} / 0.15D) * ({part} / 0.15D)"
    middle = f"0.04D + ({part} - 0.15D) * {0.92 / 0.75}D"
    closing = f"0.96D + ({part} - 0.9D) * 0.4D"
    return f"CASE WHEN {part} < 0.15D THEN {opening} WHEN {part} < 0.9D THEN {middle} ELSE {closing} END"


def _rank(chance: Chance, market: Market, kind: str, share: str, block: str) -> str:
    """Which symbol: the hot one of the block for a share of the rows, else one by its place, the first from 0."""
    hot = f"CAST(floor({market.symbols}.0D * {chance.uniform('hot', block)}) AS BIGINT)"
    place = f"floor(pow({market.symbols + 1}.0D, {chance.uniform(f'{kind} symbol', 'id')}))"
    own = f"least({market.symbols}L, CAST({place} AS BIGINT)) - 1L"
    return f"IF({chance.uniform(f'{kind} hot', 'id')} < {share}, {hot}, {own})"


def _word(chance: Chance) -> str:
    """Four letters for a rank, different ones for different ranks: 7919 has no factor in common with 26."""
    code = f"((rank * 7919L + {chance.seed % N_WORDS}L) % {N_WORDS}L)"
    letters = ", ".join(f"char(65L + {code} div {26**place}L % 26L)" for place in (3, 2, 1, 0))
    return f"concat({letters})"


def _middle(chance: Chance) -> str:
    """The price between bid and ask."""
    value = chance.uniform("value", "rank")
    base = f"(5.0D + 400.0D * {value} * {value} * {value})"
    today = f"0.02D * {chance.noise('today', 'rank', f'us div {DAY_US}L')}"
    return f"{base} * (1.0D + {today} + {_swing(chance, 'slow', 0.008, 1800, 5400)} + {_swing(chance, 'fast', 0.002, 120, 600)})"


def _swing(chance: Chance, kind: str, height: float, shortest: int, more: int) -> str:
    period = f"({shortest}.0D + {more}.0D * {chance.uniform(f'{kind} period', 'rank')})"
    turns = f"(us % {DAY_US}L) / 1000000.0D / {period} + {chance.uniform(f'{kind} phase', 'rank')}"
    return f"{height}D * sin({_TAU} * ({turns}))"


def _size(chance: Chance, purpose: str) -> str:
    """Round lots, most of them one, now and then a hundred."""
    return f"100L * (1L + floor(0.25D / ({chance.uniform(purpose, 'id')} + 0.0025D)))"
