"""The routes of the REST interface, one file a noun."""
