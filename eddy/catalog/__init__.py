"""Streams, tables and queries by name, and the plans of query texts."""
