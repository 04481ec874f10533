"""The state of an engine as bytes, and back.

The objects themselves are the state: a pickle that may name only what `state_names.py` lists, with the arrays taken out and
copied beside it (`state_arrays.py`). A class whose attributes hold an address, scratch memory or something of the caller says
in `__getstate__` what of it is state. Whoever adds, renames or takes away an attribute counts `LAYOUT` up (decision 18).
"""
