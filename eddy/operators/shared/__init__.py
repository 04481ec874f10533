"""Aggregates that queries share: the members of a group, its sums over one stream and window, and what each shows of them."""
