"""Joins over several inputs: shared groups of queries, and the walk from one input to the next.

Queries that join the same inputs in the same way are a group: `joiner.py` has each group find what began in a commit, once for
all its queries. `walk.py` starts from one input and adds the others through the indexes, in the order that the policy chose,
checking each edge as soon as its inputs are there. A match is then a row of a virtual stream, and filters over matches
(`eddy/matching/match_filters.py`) say which queries want it (decision 9).

Tables: a *frozen* one counts as it was when the last of the stream rows came, so a walk drops the versions that did not count
then. A *live* one counts as it is, so a change of it begins and ends matches with rows that are alive.
"""
