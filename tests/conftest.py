"""Kernels are compiled once, before any test calls one directly.

A kernel that is called before `ensure` would compile itself into the cache under a stamp that does not know the other files
with kernels, and would be used there after one of them has changed.
"""

from __future__ import annotations

from eddy.compile import ensure

ensure()
