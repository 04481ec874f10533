"""Workloads on Spark: generate and clean datasets, replay them, run the engine over them."""
