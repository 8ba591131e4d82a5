"""YAML as text: its scalars, nodes with lines, entries with their comments."""
