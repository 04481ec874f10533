"""Aggregates of many queries over one stream, kept together."""
