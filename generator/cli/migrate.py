"""pdrecipe migrate: a v1 recipe as layout v2, with the proof that it means the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from generator.cli.output import echo, talk
from generator.documents import read_document
from generator.files import keep_inputs, write_text_atomically
from generator.migration.migration import Migration, migrate_document
from generator.wording import shown


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Write the file in place, whole or not at all.")
@click.option("--out", type=click.Path(path_type=Path), help="File to write instead.")
def migrate(*, file: Path, write: bool, out: Path | None) -> None:
    """Rewrite FILE from srt-slurm layout v1 to `schema: 2`, with its comments and order.

    The result is read back and every value of every job is compared; a file that cannot be proved
    to mean the same is refused. Keys that layout 2 lacks stay as comments and are named. Prints
    the recipe, or with --write or --out only the proof.
    """
    if write and out is not None:
        raise click.UsageError("give --write or --out, not both")
    if out is not None:
        keep_inputs(out, file)
    migration = migrate_document(read_document(file))
    target = file if write else out
    if target is None:
        echo(migration.text.removesuffix("\n"))
        _prove(migration, talk)
        return
    write_text_atomically(target, migration.text)
    echo(f"{target}: schema 2")
    _prove(migration, echo)


def _prove(migration: Migration, say: Callable[[str], None]) -> None:
    jobs = f" of {migration.jobs} jobs" if migration.jobs > 1 else ""
    say(f"{migration.compared:,} values{jobs} compared, 0 differ.")
    for path, value in migration.left_out:
        say(f"schema 2 has no key for {path}: {shown(value)} (it stays as a comment)")
