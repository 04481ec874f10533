"""The aggregates of group-by, each kept so that rows may come and go in any order.

Group-by turns the events of a commit into steps (`steps.py`), one for each row that begins or ends in its group. The state of
each aggregate walks them once and notes its value after every event that touched a group: `sums.py` exactly, without drift,
`extremes.py` over heaps that any row may leave, `chains.py` for FIRST and LAST, `distinct_counts.py`. Aggregates with the same
argument and FILTER share it (`operands.py`).
"""
