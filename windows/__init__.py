"""Windows of queries: the rows that a window holds at a time, and the operators above windows."""
