"""Merged streams: rows of several inputs become the rows of one stream (semantics 36).

    merge_intake.py   the intake of a merged stream: rows of an input in, rows that enter and rows taken back out
    merge_inputs.py   the inputs by name: their points, promises and counts
    event_codes.py    a number for what makes two rows one event
    event_rows.py     one copy of the row of every event that is alive
    planned_ends.py   rows that end earlier than they said, until the clock is there
    cases.py          which case of LMerge declared properties allow

How events are merged is in `lmerge/`, which knows numbers alone.
"""
