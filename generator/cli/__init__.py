"""The command line: parse, one library call, one view."""

from generator.cli.main import main

__all__ = ["main"]
