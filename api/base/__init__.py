"""Limits, settings, refusals, JSON, logs and timings: modules that every part of the service may import."""
