"""The workloads, contestants, timing and report lines that the cases of `eddy bench` share."""
