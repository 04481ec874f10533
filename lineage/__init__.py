"""What every part of the engine shares: errors, types and schemas, batches, lineage, slots, bit kernels.

This package imports nothing of ours. Everything else may import it.
"""
