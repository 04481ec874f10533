"""What every part of the engine may use: descriptions, plans, results, the log of commits, marks of checking and changing."""
