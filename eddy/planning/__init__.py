"""Choices between equivalent plans: forms, expiry, join orders, and the counts they rest on.

`plan_choice.py` takes the cheapest form of a tree and, with `strategies.py`, how each edge's readers learn of ends, by what
flows (`flows.py`, from counts of running operators) and what it costs (`windows/measured_costs.py`). No clock is asked, so a
replay chooses alike (decision 16).
"""
