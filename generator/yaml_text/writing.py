"""Whole YAML documents that every reader reads back as they were."""

from __future__ import annotations

from typing import Any

import yaml

_WIDTH_CHARACTERS = 1_000_000  # never fold: some readers take a folded blank for two


def quoted_yaml(data: Any) -> str:
    """Plain data as YAML, keys in their order.

    Every text is quoted: YAML 1.1 and 1.2 disagree on which plain ones are numbers.
    """
    return yaml.dump(
        data,
        Dumper=_QuotingDumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH_CHARACTERS,
    )


class _QuotingDumper(yaml.SafeDumper):
    """Quotes what is text, and writes out again what occurs twice."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


_QuotingDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)
