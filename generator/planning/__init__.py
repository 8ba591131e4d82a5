"""Which deployments are worth a GPU: bounds, predictions, and the sweep that would tell."""
