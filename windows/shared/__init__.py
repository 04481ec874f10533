"""Aggregates of many queries over one stream, kept together.

Queries that differ in one interval on one attribute are differences of sums by region (`region_sums.py`, `extremes.py`);
queries that are new, or ask for more, have sums of their own (`pair_sums.py`, `pair_extremes.py`). `planes.py` says which
integers a sum is made of, `measures.py` what a query shows of them. Only what a reader was shown is kept (`shown.py`; decision
13).
"""
