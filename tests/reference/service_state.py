"""The state of a service as bytes, so that a test can say: this call has changed nothing."""

from __future__ import annotations

from api.core.holdings import Holdings


def state_of(holdings: Holdings) -> list[bytes]:
    """All that a service holds, as it is in a snapshot.

    Left out is what follows from the rest: output columns that queries may share, and what is left of the state cap until the
    bytes are counted again.
    """
    engine = holdings.engine
    for source in engine._catalog.inputs():
        source._shared_outputs.clear()
    engine._cap._left = 0
    return [bytes(part) for part in holdings.dump()]
