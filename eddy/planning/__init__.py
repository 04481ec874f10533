"""Choices between equivalent plans: forms, expiry, join orders, and the counts they rest on."""
