"""`python -m experiments.bench`, started by `eddy bench`."""

from __future__ import annotations

import sys

try:
    from experiments.bench.command import main
except KeyboardInterrupt:
    # Ctrl-C while numba is being imported is no reason for a page of text
    sys.exit(130)

main()
