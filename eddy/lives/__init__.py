"""The rows of a stream in a window, and the rows that have just left it.

The clock ends rows by ranges of positions. `early_ends.py` has what else ends rows of one input: newer rows in `[ROWS n]`, own
ends, replaced keys, retractions. `window_rows.py` puts both together, now or after a commit that is still logged.
"""
