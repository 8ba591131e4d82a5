"""What a check reports of a file: each finding once, however many variants have it."""

from __future__ import annotations

from dataclasses import dataclass

from generator.checks.rule import Edit, Rule
from generator.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of a rule in a file.

    ``variants`` of ``of_variants`` jobs of the file have it; ``example`` is the suffix of the one
    that ``message`` speaks of. ``reason`` is why it is suppressed, None where it is not.
    """

    rule: Rule
    source: str
    line: int
    path: str
    message: str
    hint: str = ""
    variants: int = 1
    of_variants: int = 1
    example: str = ""
    edit: Edit | None = None
    reason: str | None = None
    is_suppressed_in_source: bool = False

    @property
    def share(self) -> str:
        """``61 of 64 variants``; empty for a file that is one job."""
        if self.of_variants == 1:
            return ""
        return f"{self.variants} of {self.of_variants} variants"

    @property
    def text(self) -> str:
        """The message with what it holds for."""
        if not self.share:
            return self.message
        example = f", such as {self.example}" if self.example else ""
        return f"{self.message} [{self.share}{example}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A run: findings by file and line, those suppressed apart, and what could not be checked.

    ``without_memory`` are files whose memory rules had nothing to go by in some job.
    """

    findings: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    skipped: tuple[str, ...]
    files: int
    variants: int
    without_memory: tuple[str, ...] = ()

    def count(self, severity: str) -> int:
        """Findings of a severity."""
        return sum(each.rule.severity == severity for each in self.findings)
