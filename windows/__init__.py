"""Windows: what is in a query's window at a time, and how answers change as it slides."""
