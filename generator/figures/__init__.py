"""What a chart says, and how it is drawn."""
