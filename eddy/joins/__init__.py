"""Joins over several inputs: shared groups of queries, and the walk from one input to the next."""
