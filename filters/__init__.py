"""Everything that decides whether a row belongs to a query: expressions, predicates, grouped filters, predicate modules."""
