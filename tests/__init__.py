"""Tests; a package so that `tests.reference` and other helpers import the same way everywhere."""
