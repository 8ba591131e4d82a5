"""A start-up log, what it implies, and how it compares with the engine it is of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from generator.calibration.account import LoggedAccount, binding_account, logged_accounts
from generator.calibration.blocks import (
    LoggedBlocks,
    TokensMeaning,
    logged_blocks,
    meaning_without_model,
)
from generator.calibration.comparison import Compared, compare
from generator.calibration.findings import Evidence, Finding, find
from generator.calibration.subject import Subject
from generator.startup_log import StartupLog


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequests:
    """Requests of one length that the log's blocks hold; an endpoint is all its data ranks."""

    tokens: int
    blocks_per_request: int
    per_rank: Fraction
    per_endpoint: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Everything a log gives. ``account`` is the GPU's that binds, ``blocks`` by data rank.

    Without a subject nothing is compared, and the log alone says what its tokens mean.
    """

    log: StartupLog
    subject: Subject | None
    accounts: tuple[LoggedAccount, ...]
    account: LoggedAccount | None
    blocks: tuple[LoggedBlocks, ...]
    meaning: TokensMeaning | None
    requests: tuple[LoggedRequests, ...]
    compared: tuple[Compared, ...]
    findings: tuple[Finding, ...]


def calibration_of(log: StartupLog, subject: Subject | None) -> Calibration:
    """Work out what a log implies and compare it with the prediction for its engine."""
    accounts = logged_accounts(log)
    account = binding_account(accounts)
    blocks = _blocks(log, subject)
    binding = min(blocks, key=lambda rank: rank.counts[:1] or (0,), default=None)
    compared = compare(log, account, binding, subject) if subject else ()
    return Calibration(
        log=log,
        subject=subject,
        accounts=accounts,
        account=account,
        blocks=blocks,
        meaning=_meaning(blocks) if subject else meaning_without_model(log),
        requests=_requests(binding, subject),
        compared=compared,
        findings=find(
            Evidence(log=log, account=account, blocks=binding, compared=compared, subject=subject)
        ),
    )


def _blocks(log: StartupLog, subject: Subject | None) -> tuple[LoggedBlocks, ...]:
    if subject is None:
        return ()
    engine = subject.engine
    return logged_blocks(log, engine.kv_cache, engine.resolved.max_model_len)


def _meaning(blocks: tuple[LoggedBlocks, ...]) -> TokensMeaning | None:
    return next((rank.meaning for rank in blocks if rank.meaning is not None), None)


def _requests(blocks: LoggedBlocks | None, subject: Subject | None) -> tuple[LoggedRequests, ...]:
    """Requests of max-model-len and of the load's length, by the fewest blocks that fit the log."""
    if blocks is None or subject is None or not blocks.counts:
        return ()
    engine, workload = subject.engine, subject.workload
    lengths = dict.fromkeys(
        [engine.resolved.max_model_len, *([workload.request_tokens] if workload else [])]
    )
    return tuple(
        LoggedRequests(
            tokens=tokens,
            blocks_per_request=needed,
            per_rank=Fraction(blocks.counts[0], needed),
            per_endpoint=Fraction(blocks.counts[0], needed) * engine.pool.layout.data,
        )
        for tokens in lengths
        for needed in (engine.kv_cache.blocks_per_request(tokens),)
    )
