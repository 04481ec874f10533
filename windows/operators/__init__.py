"""Window operators: each takes the changes of its inputs and returns its own.

    `stream_merge.py`    LMERGE of streams: each row once, as soon as one gives it
    `relation_merge.py`  LMERGE of relations: the rows of the input that decides
    `select.py`          condition and columns, no state
    `union.py`           UNION ALL, no state
    `set_operation.py`   EXCEPT, INTERSECT, UNION, DISTINCT: one kernel over counts of values
    `distinct.py`        DISTINCT where ends are known: two ends a value (delta-star)
    `intersect.py`       INTERSECT where ends are known: three ends a value
    `group_by.py`        GROUP BY and scalar aggregates (`windows/aggregates`)
    `join.py`            the join of windows: one list of rows a key and side (`join_keys.py`, `pair_walk.py`)
    `frozen_join.py`     the join with a table as it was: a row looks it up once, when it comes (`versions.py`)
    `slide.py`           windows in steps: rows are shown at boundaries
    `window.py`          windows over the rows of a stream that an operator makes
    `to_stream.py`       ISTREAM, DSTREAM, RSTREAM
    `recipient.py`       the answer, and the net changes of commits or instants

Rows carry their scheduled ends; an end that was not scheduled travels as a negative row. Kernels walk the arrivals and ends of
a commit as one list of events. Operators above each other keep one copy of each value (decision 15).
"""
