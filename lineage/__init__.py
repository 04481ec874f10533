"""The base of every package: errors, types and schemas, batches, lineage, slots, bit kernels.

This package imports nothing of ours. Everything else may import it.

    rows in     `ingest.py` turns what a caller gave into columns of 64-bit cells (`schema.py`); `dictionary.py` numbers strings
    a CSV       `csv_form.py` says how one is written, `csv_rows.py` splits it, `csv_cells.py` alone says what a cell means
                (decision 28)
    kernels     every numba kernel is declared with its signature by `kernels.py`; it takes arrays and numbers, and holds no
                state
    state       `growth.py` lets arrays follow what is alive, `numbers.py` hands out and takes back small numbers, `hash_table.py`
                finds them by hash inside kernels
"""
