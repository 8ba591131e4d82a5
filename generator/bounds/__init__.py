"""The least the work of an engine takes: seconds of prefill and decode at published peaks."""
