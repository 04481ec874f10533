"""The streams of `pipeline/stocks.py` in plain Python, one id at a time."""

from __future__ import annotations

import math
from typing import Any

from pipeline.stocks import DAY_US, HOT_US, MENTIONS, N_WORDS, OPEN_FOR_US, OPEN_US, Market
from tests.reference.drawing import Draws, rounded


def trade(market: Market, seed: int, number: int) -> dict[str, Any]:
    draws = Draws(seed)
    us, rank, bid, ask = _priced(market, draws, "trade", market.trades, number)
    return {
        "ts": us,
        "symbol": _word(seed, rank),
        "price": ask if draws.uniform("side", number) < 0.5 else bid,
        "size": _size(draws, "size", number),
        "exchange": "NQPZB"[math.floor(5 * draws.uniform("exchange", number))],
    }


def quote(market: Market, seed: int, number: int) -> dict[str, Any]:
    draws = Draws(seed)
    us, rank, bid, ask = _priced(market, draws, "quote", market.quotes, number)
    sizes = {"bid_size": _size(draws, "bid size", number), "ask_size": _size(draws, "ask size", number)}
    return {"ts": us, "symbol": _word(seed, rank), "bid": bid, "ask": ask, **sizes}


def article(market: Market, seed: int, number: int) -> dict[str, Any] | None:
    """A mention; None for a number that is not used."""
    draws = Draws(seed)
    article, mention = divmod(number, MENTIONS)
    if mention and draws.uniform("mention", number) >= 0.35:
        return None
    day, nth = divmod(article, market.articles)
    us = _midnight(market, day) + math.floor((nth + draws.uniform("article moment", article)) / market.articles * DAY_US)
    rank = _rank(market, draws, "mention", 0.0 if mention else 0.5, us // HOT_US + 1, number)
    return {
        "ts": us,
        "article": article,
        "symbol": _word(seed, rank),
        "source": ("wire", "daily", "blog", "post")[math.floor(4 * draws.uniform("source", article))],
        "tone": rounded(draws.noise("tone", article) / 3.5, 100),
        "words": 60 + math.floor(900 * draws.uniform("words", article) * draws.uniform("depth", article)),
    }


def _priced(market: Market, draws: Draws, kind: str, daily: int, number: int) -> tuple[int, int, float, float]:
    """Time, symbol, bid and ask."""
    day, nth = divmod(number, daily)
    part = (nth + draws.uniform(f"{kind} moment", number)) / daily
    if part < 0.15:
        bent = 0.04 * (part / 0.15) * (part / 0.15)
    elif part < 0.9:
        bent = 0.04 + (part - 0.15) * (0.92 / 0.75)
    else:
        bent = 0.96 + (part - 0.9) * 0.4
    us = _midnight(market, day) + OPEN_US + math.floor(bent * OPEN_FOR_US)
    rank = _rank(market, draws, kind, 0.2, us // HOT_US, number)
    value = draws.uniform("value", rank)
    swings = 0.02 * draws.noise("today", rank, us // DAY_US)
    for name, height, shortest, more in (("slow", 0.008, 1800, 5400), ("fast", 0.002, 120, 600)):
        period = shortest + more * draws.uniform(f"{name} period", rank)
        swings += height * math.sin(math.tau * (us % DAY_US / 1e6 / period + draws.uniform(f"{name} phase", rank)))
    middle = (5.0 + 400.0 * value * value * value) * (1.0 + swings)
    half = 0.005 + 0.0002 * middle
    return us, rank, math.floor((middle - half) * 100) / 100, math.ceil((middle + half) * 100) / 100


def _midnight(market: Market, day: int) -> int:
    return market.start_us + (day // 5 * 7 + day % 5) * DAY_US


def _rank(market: Market, draws: Draws, kind: str, share: float, block: int, number: int) -> int:
    if draws.uniform(f"{kind} hot", number) < share:
        return math.floor(market.symbols * draws.uniform("hot", block))
    return min(market.symbols, math.floor((market.symbols + 1.0) ** draws.uniform(f"{kind} symbol", number))) - 1


def _word(seed: int, rank: int) -> str:
    code = (rank * 7919 + seed) % N_WORDS
    return "".join(chr(65 + code // 26**place % 26) for place in (3, 2, 1, 0))


def _size(draws: Draws, purpose: str, number: int) -> int:
    return 100 * (1 + math.floor(0.25 / (draws.uniform(purpose, number) + 0.0025)))
