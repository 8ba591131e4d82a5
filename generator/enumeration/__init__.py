"""Every engine that a plan can choose: what it is sized for, and why one is refused."""
