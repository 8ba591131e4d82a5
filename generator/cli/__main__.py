"""``python -m generator.cli``: the command for an interpreter that has it, without its script."""

from generator.cli import main

main()
