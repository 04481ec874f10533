"""Load on a real server over loopback: its requests, their sender, and the server process."""
