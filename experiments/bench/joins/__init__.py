"""Joins of stocks and articles by symbol: the workload, the bare SteM, a Python loop, NiagaraCQ's plans, and the engine.

join_workload.py streams, queries, pushes for ever
matches.py       the results of every contestant, in one form that can be compared
kernels.py       build, walk, copy
stem.py          both sides of a symmetric hash join, shared by the bare kernel and PullUp
bare_join.py     the bare SteM: matches, their query bits by region code, row lists
prototype.py     the kernels of the prototypes, against which the bars were set: query bits with every stored row
dict_loop.py     dicts of deques in plain Python
selections.py    the queries' conditions on a quote: constants in order, or functions that spin
niagara_plans.py NiagaraCQ's PushDown and PullUp
join_driver.py   the engine, by its public API
join_peers.py    lines of the engine beside the Python loop and the plans
"""
