"""The memory account of each GPU as a log has it: its terms, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from generator.startup_log import Process, RankReadings, Reading, StartupLog
from generator.units import GIB

# Four terms printed to 0.01 GiB each may miss the total by half of that apiece, and more.
ROUNDING_BYTES = 3 * GIB // 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """An amount of memory with the lines it comes from."""

    size_bytes: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAccount:
    """One GPU's account; None is what the log does not let us know.

    ``graph_reserved`` is what the engine took off the KV cache for graphs, 0 where it took none;
    ``graph_estimate`` is what it printed either way.
    """

    process: Process
    total: Figure | None = None
    cuda_context: Figure | None = None
    requested: Figure | None = None
    weights: Figure | None = None
    non_torch: Figure | None = None
    peak_activation: Figure | None = None
    graph_estimate: Figure | None = None
    graph_reserved: Figure | None = None
    graph_used: Figure | None = None
    kv_cache: Figure | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Terms that a measured profile needs and this account lacks."""
        needed = {
            "total": self.total,
            "cuda_context": self.cuda_context,
            "weights": self.weights,
            "non_torch": self.non_torch,
            "peak_activation": self.peak_activation,
            "graph_reserved": self.graph_reserved,
            "kv_cache": self.kv_cache,
        }
        return tuple(name for name, figure in needed.items() if figure is None)

    @property
    def gap_bytes(self) -> int | None:
        """Requested less every term and the KV cache: what rounding left, if the account closes."""
        terms = (
            self.weights,
            self.non_torch,
            self.peak_activation,
            self.graph_reserved,
            self.kv_cache,
        )
        if self.requested is None or any(term is None for term in terms):
            return None
        return self.requested.size_bytes - sum(term.size_bytes for term in terms if term)

    @property
    def places(self) -> tuple[str, ...]:
        """Every line that the account comes from."""
        figures = (getattr(self, field.name) for field in fields(self))
        found = (figure.places for figure in figures if isinstance(figure, Figure))
        return tuple(dict.fromkeys(place for places in found for place in places))


def logged_accounts(log: StartupLog) -> tuple[LoggedAccount, ...]:
    """The account of every process that holds a GPU."""
    return tuple(
        _account(rank)
        for rank in log.ranks
        if rank.weights_bytes or rank.effective_kv_cache_bytes or rank.has_budget
    )


def binding_account(accounts: Iterable[LoggedAccount]) -> LoggedAccount | None:
    """The account that decides the blocks: the least KV cache, else the first there is."""
    known = list(accounts)
    with_kv_cache = [account for account in known if account.kv_cache is not None]
    if with_kv_cache:
        return min(
            with_kv_cache,
            key=lambda account: account.kv_cache.size_bytes if account.kv_cache else 0,
        )
    return known[0] if known else None


def _account(rank: RankReadings) -> LoggedAccount:
    reserved = _graph_reserved(rank)
    return LoggedAccount(
        process=rank.process,
        total=_figure(rank.total_bytes),
        cuda_context=_difference(rank.total_bytes, rank.free_bytes),
        requested=_figure(rank.requested_bytes),
        weights=_figure(rank.weights_bytes),
        non_torch=_figure(rank.non_torch_bytes)
        or _difference(rank.consumed_bytes, rank.weights_bytes),
        peak_activation=_peak_activation(rank, reserved),
        graph_estimate=_figure(rank.graph_estimate_bytes),
        graph_reserved=reserved,
        graph_used=_figure(rank.graph_used_bytes),
        kv_cache=_figure(rank.effective_kv_cache_bytes),
    )


def _figure(reading: Reading[int] | None) -> Figure | None:
    return None if reading is None else Figure(size_bytes=reading.value, places=(reading.place,))


def _difference(whole: Reading[int] | None, part: Reading[int] | None) -> Figure | None:
    if whole is None or part is None:
        return None
    places = dict.fromkeys((whole.place, part.place))
    return Figure(size_bytes=whole.value - part.value, places=tuple(places))


def _peak_activation(rank: RankReadings, reserved: Figure | None) -> Figure | None:
    """The peak without graphs; newer budget lines add what they reserve for them."""
    if rank.peak_activation_bytes is not None:
        return _figure(rank.peak_activation_bytes)
    peak = rank.peak_with_graphs_bytes
    if peak is None or reserved is None:
        return None
    places = dict.fromkeys((peak.place, *reserved.places))
    return Figure(size_bytes=peak.value - reserved.size_bytes, places=tuple(places))


def _graph_reserved(rank: RankReadings) -> Figure | None:
    """What the engine took off the KV cache for graphs.

    It says so in a line of its own; else the older budget line closes with it or without it, and
    the newer one is of releases that take it. Nothing is taken where graphs took nothing.
    """
    estimate, used = rank.graph_estimate_bytes, rank.graph_used_bytes
    told, remainder = rank.is_estimate_subtracted, _remainder(rank)
    if estimate is not None and told is not None:
        places = (estimate.place, told.place)
        return Figure(size_bytes=estimate.value if told.value else 0, places=places)
    if estimate is not None and rank.peak_with_graphs_bytes is not None:
        return _figure(estimate)
    if remainder is not None:
        return _of_remainder(remainder, estimate)
    return _figure(used) if estimate is None and used is not None and not used.value else None


def _of_remainder(remainder: Reading[int], estimate: Reading[int] | None) -> Figure | None:
    """The estimate, or nothing, whichever the budget line leaves room for."""
    if abs(remainder.value) <= ROUNDING_BYTES:
        return Figure(size_bytes=0, places=(remainder.place,))
    if estimate is not None and abs(remainder.value - estimate.value) <= ROUNDING_BYTES:
        return _figure(estimate)
    return None


def _remainder(rank: RankReadings) -> Reading[int] | None:
    """Requested less all terms of the older budget line and the KV cache: the graphs' share."""
    requested = rank.requested_bytes
    terms = (
        rank.weights_bytes,
        rank.non_torch_bytes,
        rank.peak_activation_bytes,
        rank.kv_cache_bytes,
    )
    if requested is None or any(term is None for term in terms):
        return None
    return requested.with_value(requested.value - sum(term.value for term in terms if term))
