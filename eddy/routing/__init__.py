"""Routing policies: which module a batch visits next.

One protocol, `eddy/routing/base.py`; `make(name, seed)` gives a policy by the names of the contract.
"""

from __future__ import annotations

from eddy.routing.base import Policy
from eddy.routing.fixed import FixedPolicy
from eddy.routing.greedy import GreedyPolicy
from eddy.routing.lottery import BackpressurePolicy, LotteryPolicy, RandomPolicy
from lineage.errors import EddyError, did_you_mean

NAMES = ["auto", "random", "lottery", "backpressure", "greedy", "fixed:<module,...>"]


def make(name: str, seed: int) -> Policy:
    """A policy by name; raises on an unknown one."""
    if not isinstance(name, str):
        raise EddyError(f"{name!r} is not a policy", code="unknown_policy", hint=f"there are: {', '.join(NAMES)}")
    if name.startswith("fixed:"):
        return FixedPolicy([part.strip() for part in name[len("fixed:") :].split(",") if part.strip()])
    match name:
        case "auto" | "greedy":
            return GreedyPolicy(name)
        case "random":
            return RandomPolicy(seed)
        case "lottery":
            return LotteryPolicy(seed)
        case "backpressure":
            return BackpressurePolicy(seed)
    raise EddyError(f'unknown policy "{name}"', code="unknown_policy", hint=did_you_mean(name, NAMES))
