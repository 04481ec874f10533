"""Operators above the eddy: templates of running queries, and aggregates that queries share.

From the start of a query to its end:

    start     each block of the tree is a hidden query of the shared eddy, its *core* (`core.py`). Queries that differ in
              constants and conditions have one key (`template_key.py`) and are seats of one `template.py`; for the first of
              them `stages.py` picks an operator for each node above, and the buffer in which ends are looked for. Equal nodes
              are one stage
    commit    `templates.py` asks the root of each template for its delta; stages ask those below, each once. The recipient nets
              the root's delta, `seat_rows.py` cuts it up by seat, for listeners and for the log of the template
    rebuild   `replanning.py` decides again every 256 commits; other operators are built over the same cores between two commits
    sharing   queries that group the same stream and window by the same keys are one group (`shared/`)
"""
