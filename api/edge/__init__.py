"""The door of the service: tokens, limits of requests, connections, errors, metrics."""
