"""The aggregates of GROUP BY: state by group, exact whatever the order in which rows come and go.

    aggregate of a group after an event  =  f(live rows of the group after that event)


    events of a commit  ->  steps (`steps.py`)  ->  state of each aggregate  ->  values at the readings

    `sums.py`             COUNT, SUM, AVG, VARIANCE, STDDEV: exact sums, without drift
    `extremes.py`         MIN, MAX, MEDIAN: heaps that any row may leave (`heaps.py`)
    `chains.py`           FIRST, LAST: lists by order of coming
    `distinct_counts.py`  COUNT(DISTINCT x): live rows of each (group, value)

A step is one row that begins or ends in its group; a reading is the state of a group after an event. Every state walks the steps
once. Aggregates with the same argument and FILTER share their columns (`operands.py`).
"""
