"""Which responses of a trace met their latency limits, and how much work that was."""
