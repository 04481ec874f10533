"""CACQ's experiments, one file a question; `EXPERIMENTS` has them in the order of the paper, those on real data last."""

from __future__ import annotations

from experiments.cacq import functions, lab, news, niagara, queries, regret, routing, sources, tickets, width
from experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (width, queries, sources, routing, tickets, niagara, functions, regret, lab, news)
}
