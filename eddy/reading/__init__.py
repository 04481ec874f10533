"""Readers and feeds: answers and changes of queries, derived from stored rows and the log.

A query without operators keeps no results: its answer, and its changes in a logged commit, are derived from the row store.
Positions follow from times, matches from stored cells and outcomes. Readers give that to callers, feeds to the operators of
other queries.
"""
