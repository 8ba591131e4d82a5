"""What was measured: one record for every recipe and concurrency, and the file that keeps them."""
