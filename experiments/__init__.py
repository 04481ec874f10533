"""Measurements: benchmarks against bare kernels, and the papers' figures. Imported by nothing else."""
