"""What can be asked about a running engine: explain, trace, statistics."""
