"""Codes of texts in one step, for tests that need some."""

from __future__ import annotations

from collections.abc import Sequence

from filters.values.vector import Array
from lineage.dictionary import Dictionary


def encode_list(dictionary: Dictionary, values: Sequence[str | None]) -> Array:
    """The codes of texts, new ones for texts that are new."""
    return dictionary.commit(dictionary.prepare_list(values))
