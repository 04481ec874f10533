"""How a service is set up: flags of `eddy serve`, or `EDDY_*` in the environment; a flag wins."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from api.limits import Limits


@dataclass(frozen=True, slots=True)
class Settings:
    """What `eddy serve` was told."""

    host: str = "127.0.0.1"
    port: int = 8000
    #: None: nothing is kept
    data: Path | None = None
    #: keep the definitions of the data directory and nothing else
    discard_state: bool = False
    policy: str = "auto"
    expiry: str = "auto"
    limits: Limits = field(default_factory=Limits)
