"""The naive model of each case of a merged stream."""

from __future__ import annotations

from tests.reference.merge_model import MergeModel, Options


def model_of(options: Options, case: str) -> MergeModel:
    """The model of a case."""
    assert case == "R3"
    return MergeModel(options)
