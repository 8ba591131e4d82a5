"""Checks of recipes: rules, what they look at, and how their findings are reported."""
