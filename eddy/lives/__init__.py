"""Which rows of a stream are in a window, and which have just left it.

The clock ends rows by ranges of positions. `early_ends.py` has what else ends rows of one input: newer rows in `[ROWS n]`, own
ends, replaced keys, retractions. `window_rows.py` puts both together, now or after a commit that is still logged.
"""
