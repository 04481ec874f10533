"""The commit: one call that changes answers, from the rows it takes to the end of the log, and the cap on memory."""
