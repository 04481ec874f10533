"""State: the rows of a stream, stored once for every query, and the indexes that hang on them.

A row is stored once (`row_store.py`), and enters all indexes of its stream (`indexes.py`) in the same step.

    equality    `hash_index.py`: `key_table.py` leads from a key (`keys.py`) to its newest row, `links.py` from a row to the
                older ones of its key; `chain_changes.py` builds, `chain_walk.py` probes
    ranges      `sorted_index.py`: positions by key, in `sorted_runs.py`
    columns     `derived.py`: expressions computed once a row. `row_ends.py`: when a row leaves `[ROWS n]`. `own_ends.py`: when
                a row of a keyed stream ends by itself
    tables      `table.py`: versions, each with the commits that opened and closed it
    reading     `frame.py` for conditions and answers, `gathering.py` by position in kernels

A probe has a lower and an upper bound of positions, and gives its pairs in parts.
"""
