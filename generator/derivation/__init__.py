"""From a spec to recipes: flags by rule, roles paired, every number with its arithmetic."""
