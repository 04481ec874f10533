"""LMerge: one logical stream out of physically different presentations of it (the LMerge paper).

    elements.py       what a stream is made of: inserts, adjusts and stable points, as columns
    table.py          the temporal table that elements reconstitute, and how much of it is frozen
    conditions.py     when an output may still follow its inputs: C1-C3, and the counts of R4
    merge.py          one protocol for all cases; r0.py .. r4.py are the cases
    outcomes.py       what became of an element that an input pushed
    properties.py     which case the properties of the inputs allow
    cleanse.py        an input put in order, so that a simpler case can take it
    changes.py        signed changes as elements, and back

Payloads are 64-bit codes: equal payloads have equal codes, and who owns a merge keeps the rows behind them.
"""
