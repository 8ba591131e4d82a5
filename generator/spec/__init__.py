"""The spec that people write: its sections, and the rules that size and place what it names."""
