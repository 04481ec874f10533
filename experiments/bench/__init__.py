"""`eddy bench`: the engine against bare kernels, the paper's filter, other libraries, and the bars of `docs/performance.md`.

Every case drives the engine by its public API only. Contestants take turns in one process and thread CPU time is
measured, so a busy machine slows all of them alike and the ratios hold. Results are compared before they are timed.
"""
