"""The checks in front of the routes: tokens, limits of requests, connections, errors, metrics.

A connection is bounded before there is a request (`connections.py`); rows for which there is no room are refused by the head of
their request (`room.py`, decision 24). Every other request passes `guard.py`: its id, Host and Origin, token and role, rate,
and its body.
"""
