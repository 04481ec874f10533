"""Streams and tables inside the engine: rows, legs, modules, window classes, clocks."""
