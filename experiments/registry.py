"""All experiments by name, paper after paper."""

from __future__ import annotations

from experiments import cacq, lmerge
from experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = cacq.EXPERIMENTS | lmerge.EXPERIMENTS
