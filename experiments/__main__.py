"""`python -m experiments`, started by `eddy experiment`."""

from __future__ import annotations

import sys

try:
    from experiments.command import main
except KeyboardInterrupt:
    # Ctrl-C while numba is being imported is no reason for a page of text
    sys.exit(130)

main()
