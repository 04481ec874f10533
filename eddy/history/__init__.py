"""Rows that are kept for the log and for later queries, and how a new query is shown them."""
