"""The eddy: batches of rows routed through modules, and lists of the rows that each query got."""
