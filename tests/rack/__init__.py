"""A real Slurm cluster on loopback: virtual GB300 nodes for tests of submission and its faults."""
