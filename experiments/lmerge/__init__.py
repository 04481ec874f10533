"""The LMerge paper's experiments, one file a question, over its own stream generator; `EXPERIMENTS` has them in its order."""

from __future__ import annotations

from experiments.experiment import Experiment
from experiments.lmerge import (
    merge_bursts,
    merge_chatter,
    merge_cleanse,
    merge_congestion,
    merge_inputs,
    merge_lag,
    merge_stables,
)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (merge_inputs, merge_chatter, merge_lag, merge_stables, merge_cleanse, merge_bursts, merge_congestion)
}
