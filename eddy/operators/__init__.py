"""Operators above the eddy: the trees of running queries, and operators that queries share.

From the start of a query to its end:

    start     each block of the tree is a hidden query of the shared eddy, its *core* (`core.py`); `stages.py` picks an operator
              for each node above, and the buffer in which ends are looked for. Equal nodes are one stage
    commit    `operations.py` asks the root of each query for its delta; stages ask those below, each once. The recipient nets
              the root's delta, `tree_query.py` keeps the changes for cursors
    rebuild   `replanning.py` decides again every 256 commits; other operators are built over the same cores between two commits
    sharing   queries that group the same stream and window by the same keys are one `shared_group.py`
"""
