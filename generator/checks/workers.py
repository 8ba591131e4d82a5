"""One role of a job as the checks need it: its workers, parallel sizes and limits as numbers.

Each engine spells its sizes in its own way; a value that is no whole number counts as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.normal_form import NormalForm, default_value

_TENSOR = ("tensor-parallel-size", "tp-size", "tp")
_PIPELINE = ("pipeline-parallel-size", "pp-size", "pp")
_DATA = ("data-parallel-size", "dp-size", "dp")
_EXPERT = ("expert-parallel-size", "ep-size", "ep", "moe-expert-parallel-size")
PARALLEL_SIZES = (*_TENSOR, *_PIPELINE, *_DATA, *_EXPERT)
_SPECULATIVE_TOKENS = ("speculative-config.num-speculative-tokens", "spec-tokens")
_SPECULATIVE_METHOD = ("speculative-config.method", "spec-method")
_MOST_TOKENS = {
    "vllm": ("max-num-batched-tokens",),
    "trtllm": ("max-num-tokens", "build-config.max-num-tokens"),
}
_LONGEST = {
    "vllm": ("max-model-len",),
    "sglang": ("context-length",),
    "trtllm": ("max-seq-len", "build-config.max-seq-len"),
}
_MOST_SEQUENCES = {
    "vllm": ("max-num-seqs",),
    "trtllm": ("max-batch-size", "build-config.max-batch-size"),
}


def whole(value: Any) -> int | None:
    """A value as a whole number, digits in quotes included; None for anything else."""
    if isinstance(value, str) and value.isdecimal() and value.isascii():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The workers of one role.

    ``gpus`` are one worker's, by srt-slurm's default where ``is_gpus_written`` is false. ``nodes``
    is None where they are not said, and where decode is colocated.
    """

    role: str
    engine: str
    nodes: int | None
    is_colocated: bool
    workers: int | None
    gpus: int | None
    is_gpus_written: bool
    flags: Mapping[str, Any]

    def flag(self, *names: str) -> tuple[str, Any] | None:
        """The first of several flags that is set, with its value; null is not set."""
        for name in names:
            if self.flags.get(name) is not None:
                return name, self.flags[name]
        return None

    def number(self, *names: str) -> int | None:
        """The first of several flags that is set, as a whole number."""
        found = self.flag(*names)
        return None if found is None else whole(found[1])

    def switch(self, name: str) -> bool | None:
        """A boolean flag; its ``no-`` form counts as its opposite, None where neither is set."""
        for spelled, meaning in ((name, True), (f"no-{name}", False)):
            value = self.flags.get(spelled)
            if isinstance(value, str) and value.lower() in ("true", "false"):
                value = value.lower() == "true"
            if isinstance(value, bool):
                return value is meaning
        return None

    @property
    def tensor(self) -> int | None:
        return self._size(_TENSOR)

    @property
    def pipeline(self) -> int | None:
        return self._size(_PIPELINE)

    @property
    def data(self) -> int | None:
        return self._size(_DATA)

    @property
    def expert(self) -> int | None:
        return self._size(_EXPERT)

    @property
    def tensor_flag(self) -> str:
        """The flag that sets the tensor size, as it is spelled here."""
        return self._spelled(_TENSOR)

    @property
    def expert_flag(self) -> str:
        return self._spelled(_EXPERT)

    @property
    def is_data_parallel(self) -> bool:
        """Whether a data-parallel size is written, which is how srt-slurm decides its launch."""
        return self.flag(*_DATA) is not None

    @property
    def data_ranks(self) -> int | None:
        """Engines that take GPUs of their own: SGLang's attention ranks share the tensor's."""
        if self.engine == "trtllm" or (
            self.engine == "sglang" and self.switch("enable-dp-attention")
        ):
            return 1
        return self.data

    @property
    def ranks(self) -> int | None:
        """GPUs that the parallel sizes take; None where one of them is no number."""
        sizes = (self.tensor, self.pipeline, self.data_ranks)
        if None in sizes:
            return None
        product = 1
        for size in sizes:
            product *= size or 1
        return product

    @property
    def ranks_text(self) -> str:
        """The product that gives ``ranks``."""
        text = f"TP{self.tensor} x PP{self.pipeline}"
        if self.engine == "vllm" or (self.data_ranks or 1) > 1:
            text += f" x DP{self.data_ranks}"
        return text

    @property
    def speculative_tokens(self) -> int:
        """Draft tokens of a step; 0 without speculation."""
        return self.number(*_SPECULATIVE_TOKENS) or 0

    @property
    def speculative_flag(self) -> str:
        return self._spelled(_SPECULATIVE_TOKENS)

    @property
    def is_multi_token_prediction(self) -> bool:
        """Whether the model's own draft layers speculate."""
        method = self.flag(*_SPECULATIVE_METHOD)
        return method is not None and "mtp" in str(method[1]).lower()

    @property
    def step_tokens(self) -> int:
        """Tokens of one decode step of one sequence."""
        return 1 + self.speculative_tokens

    @property
    def step_text(self) -> str:
        return f"(1 + {self.speculative_tokens})"

    @property
    def max_num_seqs(self) -> int | None:
        return self.number(*_MOST_SEQUENCES.get(self.engine, ()))

    @property
    def max_num_seqs_flag(self) -> str:
        return self._spelled(_MOST_SEQUENCES.get(self.engine, ("max-num-seqs",)))

    @property
    def token_budget(self) -> int | None:
        """Most tokens of one scheduler step, where written."""
        return self.number(*_MOST_TOKENS.get(self.engine, ()))

    @property
    def token_budget_flag(self) -> str:
        return self._spelled(_MOST_TOKENS.get(self.engine, ("max-num-batched-tokens",)))

    @property
    def longest_request(self) -> int | None:
        """The longest request in tokens, where written."""
        return self.number(*_LONGEST.get(self.engine, ()))

    @property
    def longest_request_flag(self) -> str:
        return self._spelled(_LONGEST.get(self.engine, ("max-model-len",)))

    def _size(self, names: tuple[str, ...]) -> int | None:
        found = self.flag(*names)
        size = 1 if found is None else whole(found[1])
        return size if size is None or size > 0 else None

    def _spelled(self, names: tuple[str, ...]) -> str:
        found = self.flag(*names)
        return names[0] if found is None else found[0]


def read_workers(form: NormalForm) -> tuple[Workers, ...]:
    """The roles of a job that has workers or flags for them."""
    return tuple(_read(form, role) for role in form.roles)


def _read(form: NormalForm, role: str) -> Workers:
    nodes = form.get("roles", role, "nodes")
    gpus = form.get("roles", role, "gpus")
    return Workers(
        role=role,
        engine=form.engine_of(role),
        nodes=whole(nodes),
        is_colocated=nodes == "colocate",
        workers=whole(form.get("roles", role, "workers")),
        gpus=whole(default_value(form, ("roles", role, "gpus")) if gpus is None else gpus),
        is_gpus_written=gpus is not None,
        flags=form.args(role),
    )
