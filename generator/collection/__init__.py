"""From what runs leave behind to validated points: `pdrecipe collect`."""
