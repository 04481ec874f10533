"""Expressions and predicates, and their evaluation over vectors."""
