"""Window operators: each takes the changes of its inputs and returns its own."""
