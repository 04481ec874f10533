"""Columns of values: vectors, comparisons, casts, intervals."""
