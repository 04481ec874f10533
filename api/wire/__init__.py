"""Bodies of requests and answers: formats of rows, formats of results, and the models of control calls."""
