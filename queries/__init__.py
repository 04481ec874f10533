"""From the text of a query to a bound query: guards, tokens, parser, binder."""
