"""The cases of a merge, from the simplest to the one that takes anything.

r0.py .. r4.py    a case each
case_merge.py     what all share: inputs, counters, the shell of a push; header.py: the numbers that kernels read and write
ordered.py        what R0 to R2 share: the newest start says it all
node_merge.py     what R3 and R4 share: a node for each event that is not over; events.py: their loop over elements
nodes.py          nodes and the table that finds them; copies.py: the copies of an event in R4; lookup.py: looking up only
points.py         what a stable point does to nodes; due.py: when it does; pending.py: those that give out something then
inputs.py         the inputs, their points and counts; policies.py: when the output says what it knows
outcomes.py       what became of an element that an input pushed; merged.py: what a push gives
"""
