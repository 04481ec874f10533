"""Questions about a running engine: explain, trace, statistics.

`trace.py` finds the leaves of a query (`trace_leaves.py`), tries their conditions on one row (`trace_subject.py`), asks whether
the row was ever there (`trace_lives.py`) and for which partner it waits (`join_trace.py`), and tells what stands above
(`trace_above.py`). Nothing here changes anything (decision 27).
"""
