"""The outside of the engine: HTTP service, console and command line."""
