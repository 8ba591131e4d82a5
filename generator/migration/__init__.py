"""Recipes from one layout to the other, comments kept and every job proven equal."""
