"""Parallel layouts in the field's own notation: ``TEP8``, ``DEP16``, ``2xTP2DP4+EP``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.wording import shown

_ATOM = re.compile(r"(TEP|DEP|TP|PP|DP|DCP)([0-9]{1,6})(?![0-9])")
_POOL = re.compile(r"(?:(?P<workers>[0-9]{1,6})X)?(?P<layout>.+)", re.DOTALL)
_POOL_PREFIX = re.compile(r"\d+X")
_EXAMPLES = "write it like TEP8, DEP16, TP2DP4+EP, TP1PP6+EP or 2xTP2DP4+EP"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelLayout:
    """How one engine endpoint spreads over GPUs.

    With ``expert_parallel`` each routed expert lives whole on one of ``tensor * data`` ranks of a
    pipeline stage; without it every expert is split over all of them.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    decode_context: int = 1
    expert_parallel: bool = False

    @property
    def ranks(self) -> int:
        """GPUs of one endpoint. Decode context ranks are tensor ranks, not further GPUs."""
        return self.tensor * self.pipeline * self.data

    @property
    def replica_ranks(self) -> int:
        """GPUs that hold one copy of the non-expert weights: tensor x pipeline."""
        return self.tensor * self.pipeline

    @property
    def expert(self) -> int:
        """Expert parallel size: the ranks that share one stage's experts, 1 without EP."""
        return self.tensor * self.data if self.expert_parallel else 1

    @property
    def ranks_text(self) -> str:
        """The product that gives ``ranks``, e.g. ``TP2 x DP4``."""
        factors = [("TP", self.tensor), ("PP", self.pipeline), ("DP", self.data)]
        return " x ".join(f"{name}{size}" for name, size in factors if size > 1) or "TP1"

    @property
    def slug(self) -> str:
        """The layout in a file name, as the community spells it: ``tp2dep4``, ``tep8``."""
        if self.expert_parallel and self.data > 1 and "+" in str(self):
            return str(self).removesuffix("+EP").replace("DP", "DEP", 1).lower()
        return str(self).replace("+", "").lower()

    def __str__(self) -> str:
        only_tensor = self.data == self.pipeline == self.decode_context == 1
        only_data = self.tensor == self.pipeline == self.decode_context == 1
        if self.expert_parallel and only_tensor and self.tensor > 1:
            return f"TEP{self.tensor}"
        if self.expert_parallel and only_data and self.data > 1:
            return f"DEP{self.data}"
        sizes = [("PP", self.pipeline), ("DP", self.data), ("DCP", self.decode_context)]
        suffixes = "".join(f"{name}{size}" for name, size in sizes if size > 1)
        return f"TP{self.tensor}{suffixes}{'+EP' if self.expert_parallel else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPool:
    """Identical endpoints of one role: ``workers`` engines of one layout."""

    workers: int
    layout: ParallelLayout

    @property
    def gpus(self) -> int:
        return self.workers * self.layout.ranks

    @property
    def data_ranks(self) -> int:
        """Engines that schedule requests by themselves: workers x data parallel size."""
        return self.workers * self.layout.data

    @property
    def data_ranks_text(self) -> str:
        """The product that gives ``data_ranks``: ``4 DP``, or ``2 workers x 4 DP``."""
        ranks = f"{self.layout.data} DP"
        return ranks if self.workers == 1 else f"{self.workers} workers x {ranks}"

    def __str__(self) -> str:
        return f"{self.workers}x{self.layout}"


def parse_layout(text: str) -> ParallelLayout:
    """One layout without a worker count; raises InvalidInput with the part that is wrong."""
    upper = text.strip().upper()
    if _POOL_PREFIX.match(upper):
        raise _invalid(text, "it is one worker's layout and takes no worker count")
    body, plus, suffix = upper.partition("+")
    if plus and suffix != "EP":
        raise _invalid(text, f"only +EP may follow the sizes, not {shown(plus + suffix)}")
    sizes: dict[str, int] = {}
    position = 0
    while position < len(body):
        atom = _ATOM.match(body, position)
        if atom is None:
            raise _invalid(text, f"cannot read {shown(body[position:])}")
        for name, size in _expand(atom[1], int(atom[2])).items():
            if name in sizes:
                raise _invalid(text, f"{name} is given twice")
            sizes[name] = size
        position = atom.end()
    if not sizes:
        raise _invalid(text, "it has no sizes")
    if 0 in sizes.values():
        raise _invalid(text, "a parallel size must be at least 1")
    if plus and "EP" in sizes:
        raise _invalid(text, "+EP is already part of TEP and DEP")
    return ParallelLayout(
        tensor=sizes.get("TP", 1),
        pipeline=sizes.get("PP", 1),
        data=sizes.get("DP", 1),
        decode_context=sizes.get("DCP", 1),
        expert_parallel=bool(plus) or "EP" in sizes,
    )


def parse_pool(text: str) -> WorkerPool:
    """A worker count and a layout: ``2xTP2DP4+EP``; one worker where no count is given."""
    match = _POOL.fullmatch(text.strip().upper())
    if match is None:
        raise _invalid(text, "it is empty")
    workers = int(match["workers"] or 1)
    if workers == 0:
        raise _invalid(text, "the worker count must be at least 1")
    return WorkerPool(workers=workers, layout=parse_layout(match["layout"]))


def _expand(name: str, size: int) -> dict[str, int]:
    """``TEP8`` is TP8 with EP, ``DEP16`` is DP16 with EP."""
    return {f"{name[0]}P": size, "EP": 1} if name in ("TEP", "DEP") else {name: size}


def _invalid(text: str, reason: str) -> InvalidInput:
    return InvalidInput(Problem(message=f"layout {shown(text)}: {reason}", hint=_EXAMPLES))
