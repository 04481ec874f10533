"""What every part of the service may use: limits, settings, refusals, JSON."""
