"""State: the rows of a stream, stored once for every query, and the indexes that hang on them."""
