"""CACQ's experiments, one file a question; `EXPERIMENTS` has them in the order of the paper."""

from __future__ import annotations

from experiments.cacq import routing
from experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in (routing,)}
