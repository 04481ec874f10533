"""Places of `header`, the numbers of a merge that its kernels read and write.

all cases    the merge's point and leader, outputs written, what is lacking, policies; work, in all: places of tables and
             nodes looked at, nodes whose time had come, buckets passed
a stable     the new point, the phase it is in, the first of the nodes with something to give out; steps of the point, and
             how far they were
R0 to R2     the newest start, how many events of it are out, how many starts there were
R3, R4       nodes and the order of the last; nodes let go of; shifts of the two calendars
"""

from __future__ import annotations

(
    POINT_OUT, LEAD, N_OUT, LACKS, INSERTS, ADJUSTS, KEEP_ANY, LAG, NUMERATOR, DENOMINATOR, PROBED, LOOKED, DECIDED, PASSED,
    TARGET, PHASE, PENDING, N_MOVES, MOVED_BY, NEWEST, GIVEN, ROUND, N_LIVE, LAST_ORDER, N_FREED, SHIFT, START_SHIFT,
) = range(27)  # fmt: skip
N_HEADER = 27

#: What a kernel lacks: room for outputs, nodes, entries of bags, rows of R2.
ROOM, NODES, ENTRIES, ROWS = range(4)
