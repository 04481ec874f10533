"""State of window operators: rows, values, ends, and the calendars that order them.

`rows.py` turns a delta into events: rows have slots while they live, ids lead to slots, and a state buffer (`due.py`,
`calendar.py`) finds the rows whose end has come. `values.py` numbers the values that are alive; `coded.py` keeps rows by such a
number, `stored.py` with their cells (`cells.py`). `lineage/numbers.py` hands out slots, codes and ids; `lineage/growth.py` lets
arrays follow what is alive.
"""
