"""One page that tells a study from its model to its frontier, every figure with its file."""
