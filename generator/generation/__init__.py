"""Recipe files: rendered, read back, and compared with those that are there."""
