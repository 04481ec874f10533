"""Grouped filters: one index per attribute that serves the predicates of every query."""
