"""Two sets of runs side by side, and whether they differ in one thing only."""
