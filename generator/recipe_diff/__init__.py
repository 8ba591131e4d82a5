"""What a change of recipes means: what differs, what it moves, and how a review shows it."""
