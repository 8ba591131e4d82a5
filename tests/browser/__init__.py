"""A real browser that looks at pages of ours: Debian's Chromium, without a window."""
