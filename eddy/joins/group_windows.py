"""The windows of the queries of a join group: what follows from them, until queries come or go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eddy.streams.legs import WindowClass
from lineage.bits import set_bit, slots_of

if TYPE_CHECKING:
    from eddy.joins.join_query import JoinQuery


@dataclass(slots=True)
class GroupWindows:
    """The extremes of the windows by input, and the classes of equal ones."""

    #: of the queries that it was derived from
    version: int = -1
    #: by input, the classes of the widest and of the narrowest window
    widest: list[WindowClass] = field(default_factory=list)
    narrowest: list[WindowClass] = field(default_factory=list)
    #: window widths by input, and the slots that have them
    classes: list[tuple[list[int], np.ndarray]] = field(default_factory=list)

    def derive(self, version: int, active: np.ndarray, widths: np.ndarray, members: Mapping[int, JoinQuery]) -> None:
        """Compute the windows anew if the group's queries have changed; `widths` are by input and slot."""
        if self.version == version:
            return
        self.version = version
        slots = slots_of(active)
        for of, choose in ((self.widest, np.argmax), (self.narrowest, np.argmin)):
            chosen = slots[choose(widths[:, slots], axis=1)].tolist()
            of[:] = [members[slot].legs[k].window for k, slot in enumerate(chosen)]
        vectors, which = np.unique(widths[:, slots].T, axis=0, return_inverse=True)
        self.classes = []
        for number, vector in enumerate(vectors.tolist()):
            mask = np.zeros_like(active)
            for slot in slots[which.ravel() == number].tolist():
                set_bit(mask, slot)
            self.classes.append((vector, mask))
