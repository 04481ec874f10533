"""Three gateways that send the same readings, each in its own order, some twice, some not at all; what a merge makes of them."""

from __future__ import annotations

import random
from typing import Any

GATEWAYS = ("gw1", "gw2", "gw3")
COLUMNS = {"sensor": "int", "temp": "float", "ts": "timestamp"}
LATENESS = 300
END = 100_000
QUERIES = {
    "all": "SELECT sensor, temp, ts FROM {} [RANGE 1 HOUR]",
    "groups": "SELECT sensor, COUNT(*) AS n, MAX(temp) AS most FROM {} [RANGE 2 SECONDS] GROUP BY sensor",
    "closed": "SELECT window_end, COUNT(*) AS n FROM TUMBLE({}, 1 SECOND) GROUP BY window_end",
}
Row = dict[str, Any]


def readings(n: int) -> list[Row]:
    return [{"sensor": i % 7, "temp": float(i), "ts": 1000 + 10 * i} for i in range(n)]


def presented(rows: list[Row], chance: random.Random) -> list[Row]:
    """The readings as one gateway sends them: 5 % missing, 10 % twice, 20 % out of order, none later than it may be."""
    sent = [row for row in rows if chance.random() > 0.05]
    sent += [row for row in sent if chance.random() < 0.1]
    behind = [(row["ts"] + (chance.randrange(250) if chance.random() < 0.2 else 0), n) for n, row in enumerate(sent)]
    return [sent[n] for _, n in sorted(behind)]


class Gateways:
    """What the merge must make of the calls: the point, and for each event who gave it in time and who decided."""

    def __init__(self) -> None:
        self.point = 0
        self.given: dict[str, set[int]] = {of: set() for of in GATEWAYS}
        self.in_time: set[int] = set()
        self.decided: set[int] = set()
        self.largest = dict.fromkeys(GATEWAYS, 0)

    def take(self, of: str, rows: list[Row]) -> tuple[int, int, int]:
        """Rows that count, that came again, and that came too late."""
        counts = [0, 0, 0]
        for row in rows:
            ts = row["ts"]
            late, again = ts < self.point, ts in self.given[of]
            counts[2 if late else 1 if again else 0] += 1
            if not late:
                self.given[of].add(ts)
                self.in_time.add(ts)
        self.largest[of] = max(self.largest[of], *(row["ts"] for row in rows))
        self.say(of, self.largest[of] - LATENESS)
        return counts[0], counts[1], counts[2]

    def say(self, of: str, point: int) -> None:
        if point > self.point:
            self.decided |= {ts for ts in self.given[of] if self.point <= ts < point}
            self.point = point
