"""Aggregates of many queries over one stream, kept together (decision 13).

    sums of (query, group)  =  sums by region below the query's upper bound  -  below its lower bound       region path
                            =  a record of its own                                                       pair path

    rows -> row vectors (`planes.py`) -> region_sums, pair_sums -> measures (`run_measures.py`) -> changed cells (`shown.py`)
                                         extremes, pair_extremes

Queries that differ in one interval on one attribute are differences of sums by region (`region_sums.py`, `extremes.py`);
queries that are new, or ask for more, have sums of their own (`pair_sums.py`, `pair_extremes.py`). `planes.py` says which
integers a sum is made of, `measures.py` turns them into values, `shown.py` keeps the measures last shown to each reader.
"""
