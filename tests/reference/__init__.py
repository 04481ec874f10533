"""Slow twins, generators and the driver that compares them with the engine; nothing here is fast."""
