"""The engine behind the service: one thread that runs calls, one that writes them."""
