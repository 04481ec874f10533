"""Operators above the eddy: the trees of running queries, and operators that queries share."""
