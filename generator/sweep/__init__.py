"""A sweep: which points it has, what was submitted for them, and what became of each."""
