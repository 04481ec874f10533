"""The engine behind the service: one thread that executes calls, one that writes them to disk.

    `inbox.py`     bounded; a full one is told to the caller at once
    `core.py`      takes what waits as a group and carries it out on what the service holds (`holdings.py`)
    `watches.py`   reads the changes that somebody subscribed to, once for all; `parts.py` encodes them when the first reader asks
    `writer.py`    appends, syncs once, and only then releases: answers to callers, changes to the `hub.py`

A call (`calls.py`) is a kind, a header in JSON and the body as it came, with its clock: the journal holds calls, and a recovery
carries them out again by the same code (decision 20).
"""
