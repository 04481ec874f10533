"""Load on a real server over loopback: who sends, who listens, and what is measured."""
