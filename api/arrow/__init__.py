"""A reader of Arrow IPC that checks every number of the input before pyarrow sees it: tables, or an error."""
