"""Virtual time: when the elements of each input arrive, and a merge that takes them then.

    sent         a source gives an element every 1 / rate seconds
    arrived(i)   = max(sent(i), arrived(i - 1) + pause(i)): elements wait behind each other, and a pause before one holds up all
                 behind it; what has piled up then comes at the channel's own speed, a spike

Nothing here looks at a clock, so the same seed gives the same figures on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from experiments.lmerge.generator import take
from lmerge.streams.elements import ElementBatch

Given = TypeVar("Given")


def sent(n: int, per_second: float) -> np.ndarray:
    """Return the times at which a steady source gives its elements, microseconds."""
    return np.arange(n) * 1e6 / per_second


def arrived(sent_us: np.ndarray, pauses_us: np.ndarray) -> np.ndarray:
    """Return the times at which elements arrive through a channel that pauses before each.

    >>> arrived(np.array([0.0, 10, 20, 30]), np.array([1.0, 25, 1, 1])).tolist()
    [0.0, 25.0, 26.0, 30.0]
    """
    paused = np.cumsum(pauses_us)
    found: np.ndarray = paused + np.maximum.accumulate(sent_us - paused)
    return found


def play(
    push: Callable[[int, ElementBatch], Given], streams: Sequence[ElementBatch], times: Sequence[np.ndarray], step_us: float
) -> Iterator[tuple[int, int, Given]]:
    """Push what arrives in each step of virtual time; yields the step, the input, and what the push gave."""
    n_steps = int(max(at[-1] for at in times) // step_us) + 1
    edges = np.arange(1, n_steps + 1) * step_us
    cuts = [np.append(0, np.searchsorted(at, edges)) for at in times]
    for step in range(n_steps):
        for number, (stream, cut) in enumerate(zip(streams, cuts)):
            if cut[step] < cut[step + 1]:
                yield step, number, push(number, take(stream, slice(cut[step], cut[step + 1])))


def per_second(times_us: np.ndarray, bin_us: float, n_bins: int) -> np.ndarray:
    """Return the rate in each bin of what happens at some times."""
    counts = np.bincount((times_us // bin_us).astype(np.int64), minlength=n_bins)[:n_bins]
    return counts * 1e6 / bin_us
