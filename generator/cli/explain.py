"""pdrecipe explain: a rule of pdrecipe check, or all of them."""

from __future__ import annotations

import click

from generator.checks.guide import explanation, overview, page
from generator.checks.registry import RULES, rules_by_id
from generator.cli.output import echo, table
from generator.wording import did_you_mean


@click.command()
@click.argument("rule", required=False)
@click.option("--page", "as_page", is_flag=True, help="All rules as the Markdown page of the docs.")
def explain(*, rule: str | None, as_page: bool) -> None:
    """Explain RULE of pdrecipe check, by its id or name; without it list all rules."""
    if as_page:
        click.echo(page(), nl=False)
    elif rule is None:
        echo(table(("id", "name", "severity", ""), list(overview())))
    else:
        known = {**rules_by_id(), **{each.name: each for each in RULES}}
        found = known.get(rule.upper()) or known.get(rule.lower())
        if found is None:
            near = did_you_mean(rule, known) or "pdrecipe explain lists all"
            raise click.UsageError(f"there is no rule {rule} ({near})")
        echo(explanation(found).rstrip())
