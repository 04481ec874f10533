"""State of window operators: rows, values, ends, and the calendars that order them."""
