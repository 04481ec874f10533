"""The demo of a new service: a simulated building full of sensors, and queries over it."""
