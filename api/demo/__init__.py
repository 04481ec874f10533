"""A building full of sensors, and questions about it: what a new service shows by itself."""
