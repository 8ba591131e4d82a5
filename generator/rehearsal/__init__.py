"""A recipe's deployment on a small scale: what to start, how to load it, what came of it."""
