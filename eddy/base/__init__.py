"""The base of the engine, for all its parts: descriptions, plans, results, the log of commits, marks on errors."""
