"""The aggregates of group-by, each kept so that rows may come and go in any order."""
