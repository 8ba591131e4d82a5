"""From points to curves, the frontier over all of them, and what it reaches."""
