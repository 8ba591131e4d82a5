"""One decode step at its bound, beside the memory it needs."""
