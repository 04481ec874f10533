"""Streams of elements, and what they mean.

elements.py      what a stream is made of: inserts, adjusts and stable points, as columns
table.py         the temporal table that elements reconstitute, and how much of it is frozen
conditions.py    when an output may still follow its inputs: C1-C3, and the counts of R4
properties.py    which case the properties of the inputs allow
cleanse.py       an input put in order, so that a simpler case can take it
"""
