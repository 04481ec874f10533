"""Streams and tables inside the engine: rows, legs, modules, window classes, clocks.

    `source.py`         a stream: its row store, its legs, the modules that test its rows, its window classes
    `timeline.py`       the clock of several streams: order, lateness, what is released
    `expiry.py`         how far each window length has moved
    `table_source.py`   a table: the same over versions. `marks.py` notes how far streams were when it changed
    `retractions.py`    keys that are taken back; they wait in the order of the stream, like rows
    `stored.py`         which rows a later query may see

A leg is a condition and a window (`legs.py`). It has a slot: a bit in every batch, or, if it fixes a key that many others fix,
a place in a candidate index. Queries with the same leg share it; `outputs.py` leads from slots to queries.
"""
