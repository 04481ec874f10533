"""The state of an engine as bytes, and back."""
