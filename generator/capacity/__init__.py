"""What an engine holds: the memory account, its capacity, and what other choices would cost."""
