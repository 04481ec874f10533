"""State buffers: the live rows that an operator keeps, arranged so that its due rows are found cheaply.

One row at a time and plain Python: these are the structures of the update-patterns paper (section 5.3.2), counted, not fast.
All have the protocol of `experiments/papers/buffers/row_buffer.py`; they differ in the rows that an insertion, a scheduled end
and a premature end touch:

    buffer      insert              scheduled ends                 premature end    for an edge that is
    fifo        1                   those due                      scan             weakest: rows end as they came
    calendar    1, or 1/2 partition those due, and one partition   one partition    weak: ends are known, in another order
    hash        1                   scan                           1                strict: nearly every end is told
    list        1                   scan                           scan             any: what the papers compare with
    array       1                   scan of the groups             1                the latest result of each group

`touched` counts the rows a buffer has looked at for its own upkeep; looking up rows by key is counted by the operator.
"""

from experiments.papers.buffers.calendar import CalendarBuffer
from experiments.papers.buffers.element import Element, Values
from experiments.papers.buffers.fifo import FifoBuffer
from experiments.papers.buffers.group_array import GroupArray
from experiments.papers.buffers.hashed import HashBuffer
from experiments.papers.buffers.row_buffer import Key, RowBuffer
from experiments.papers.buffers.scanned import ListBuffer
from experiments.papers.buffers.shared import SharedBuffer

__all__ = [
    "CalendarBuffer", "Element", "FifoBuffer", "GroupArray", "HashBuffer", "Key", "ListBuffer", "RowBuffer",
    "SharedBuffer", "Values",
]  # fmt: skip
