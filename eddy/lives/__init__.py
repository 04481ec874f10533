"""Which rows of a stream are in a window, and which have just left it."""
