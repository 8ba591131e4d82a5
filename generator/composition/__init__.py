"""From phases measured alone to the deployments worth running: frontiers, rates, proposals."""
