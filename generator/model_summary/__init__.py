"""What a model is made of, and what each doubling of TP changes."""
