"""What holds for every test.

Kernels are compiled once, before any test calls one directly: a kernel that is called before `ensure` would compile itself into
the cache under a stamp that does not know the other files with kernels, and would be used there after one of them has
changed.

Under CI hypothesis draws the same examples every time, so a submission is judged by its change and not by luck; elsewhere
it draws new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

from eddy.compile import ensure

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

ensure()
