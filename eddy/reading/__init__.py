"""What a query reads: its answer and its changes, from stored rows and the log."""
