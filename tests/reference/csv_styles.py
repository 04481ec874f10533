"""Small files in the styles in which people have them: made here, after real ones.

weather.csv    hours in four columns, NA for what was not measured
air.csv        the same, with dots in its names
conn.log       a connection log: tabs, no names, seconds with a fraction, `-`
stock.csv      semicolons, decimal commas, dates of the day first
trips.csv      local times, not in order
flights.csv    T and F, a country NA
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

ROWS = 200


def _or_na(draw: random.Random, share: float, value: object) -> str:
    return "NA" if draw.random() < share else str(value)


def _weather(draw: random.Random) -> Iterator[str]:
    yield "origin,year,month,day,hour,temp,wind_dir,wind_gust,pressure"
    for n in range(ROWS):
        at = datetime(2013, 1, 1) + timedelta(hours=n)
        gust, pressure = _or_na(draw, 0.8, round(draw.uniform(15, 60), 5)), _or_na(draw, 0.1, round(draw.gauss(1012, 8), 1))
        direction = _or_na(draw, 0.2, 10 * draw.randrange(37))
        yield f"EWR,{at.year},{at.month},{at.day},{at.hour},{draw.gauss(39, 6):.2f},{direction},{gust},{pressure}"


def _air(draw: random.Random) -> Iterator[str]:
    yield '"No","year","month","day","hour","PM2.5","PM10","TEMP","wd","station"'
    for n in range(ROWS):
        at = datetime(2013, 3, 1) + timedelta(hours=n)
        fine = _or_na(draw, 0.1, draw.randrange(3, 300))
        hour = f"{at.year},{at.month},{at.day},{at.hour}"
        yield f'{n + 1},{hour},{fine},{draw.randrange(3, 400)},{draw.gauss(2, 4):.1f},"NNW","Aotizhong"'


def _conn(draw: random.Random) -> Iterator[str]:
    for n in range(ROWS):
        seconds = 1_331_901_000 + n / 4 + draw.randrange(1_000_000) / 4e6
        duration = draw.choice(["-", f"{draw.expovariate(1):.6f}"])
        state = draw.choice(["SF", "S0", "REJ"])
        cells = [
            f"{seconds:.6f}", f"C{draw.getrandbits(60):x}", "192.168.202.79", draw.randrange(1024, 65536), "192.168.229.251", 80,
            "tcp",
            draw.choice(["http", "-"]), duration, draw.choice(["-", "T", "F"]), state,
        ]  # fmt: skip
        yield "\t".join(map(str, cells))


def _stock(draw: random.Random) -> Iterator[str]:
    yield "Datum;Symbol;Kurs;Volumen"
    for n in range(ROWS):
        at = datetime(2024, 1, 2) + timedelta(days=n)
        yield f"{at:%d.%m.%Y};SAP;{draw.gauss(140, 9):.2f};{draw.randrange(10_000)}".replace(".", ",", 3).replace(",", ".", 2)


def _trips(draw: random.Random) -> Iterator[str]:
    yield "pickup,dropoff,passengers,distance,payment type"
    for _ in range(ROWS):
        at = datetime(2024, 3, 9) + timedelta(seconds=draw.randrange(3 * 86_400))
        end = at + timedelta(seconds=draw.randrange(3600))
        yield f'{at:%Y-%m-%d %H:%M:%S},{end:%Y-%m-%d %H:%M:%S},{draw.randrange(1, 6)},{draw.uniform(0, 9):.2f},"card, or cash"'


def _flights(draw: random.Random) -> Iterator[str]:
    yield "time,flight,country,delayed,minutes"
    for n in range(ROWS):
        at = datetime(2024, 5, 1) + timedelta(minutes=7 * n)
        late = draw.random() < 0.3
        country, minutes = draw.choice(["NA", "DE", "", "BR"]), draw.randrange(90) if late else "NA"
        yield f"{at:%Y-%m-%dT%H:%M:%S}Z,UA{draw.randrange(2000)},{country},{'T' if late else 'F'},{minutes}"


STYLES: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "weather.csv": _weather, "air.csv": _air, "conn.log": _conn, "stock.csv": _stock, "trips.csv": _trips,
    "flights.csv": _flights,
}  # fmt: skip


def styled(name: str, seed: int = 0) -> bytes:
    """A file in the style that a name stands for."""
    return "".join(line + "\n" for line in STYLES[name](random.Random(f"{name} {seed}"))).encode()
