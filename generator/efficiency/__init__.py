"""What leads from a bound to a measurement: factors, and the points they are fitted to."""
