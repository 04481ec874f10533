"""The operators, one a file: the algorithms of the papers as printed, with the errata of semantics.md corrected."""
