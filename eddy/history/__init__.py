"""Rows kept for the log and for later queries, and the matching of stored rows for a new query.

Rows that neither a window nor the log needs (`needed_rows.py`) are forgotten, unless `keep` holds them. The log is bounded in
rows and in bytes, and a stream that only operators read has none (decision 30). A query with history starts in a commit of its
own, which `recall.py` prepares: region ids, outcomes and indexes of the stored rows (decision 10).
"""
