"""Bodies and messages of the service: reading, checking and writing them."""
