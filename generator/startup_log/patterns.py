"""vLLM's start-up lines, one pattern for each wording, from 0.10 to 0.33.

Read from vLLM's source at 0.19.1, 0.26.0 and 0.33.0 (v1/worker/gpu_worker.py,
v1/worker/gpu_model_runner.py, v1/core/kv_cache_utils.py, platforms/interface.py) and from public
logs. Groups are fields of RankReadings, or flags where a pattern is of the settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from generator.startup_log.readings import GraphGroup, Process
from generator.units import parse_bytes

# As many digits as such a figure can have: a number cut together by a broken log is none.
_DECIMAL = r"-?\d{1,9}(?:\.\d{1,9})?"
_WHOLE = r"\d[\d,]{0,18}"
_SIZE = r"[1-9]\d{0,8}"
_FORMS = {
    "bytes": _DECIMAL,
    "percent": _DECIMAL,
    "utilization": r"[01](?:\.\d{1,9})?",
    "concurrency": r"\d{1,9}\.\d\d",
    "len": rf"(?:{_SIZE}|[1-9]\d{{0,2}}(?:,\d{{3}}){{1,2}})",
    "block_tokens": _SIZE,
    "num_blocks": rf"{_SIZE}\b",
    "longest_request_tokens": rf"{_SIZE}\b",
}


def _pattern(template: str) -> re.Pattern[str]:
    """A pattern whose ``<name_bytes>`` and the like become named groups of the right form."""

    def group(match: re.Match[str]) -> str:
        name = match[1]
        form = _FORMS.get(name) or _FORMS.get(name.rpartition("_")[2], _WHOLE)
        return f"(?P<{name}>{form})"

    return re.compile(re.sub(r"<(\w+)>", group, template))


RANK_PATTERNS: tuple[re.Pattern[str], ...] = (
    _pattern(r"Model loading took <weights_bytes> GiB"),
    _pattern(r"Setting attention block size to <block_tokens> tokens to ensure that attention"),
    _pattern(r"Padding mamba page size by <padding_percent>%"),
    re.compile(r"Profiling CUDA graph memory: (?P<graph_groups>\w+=\d{1,9} \(largest=\d{1,9}\).*)"),
    _pattern(r"Estimated CUDA graph memory: <graph_estimate_bytes> GiB total"),
    re.compile(r"CUDA graph memory profiling is (?P<is_estimate_subtracted>enabled|disabled)"),
    # 0.19: off, and to become the default.
    re.compile(r"CUDA graph memory profiling (?P<is_estimate_subtracted>will be) enabled"),
    _pattern(r"Available KV cache memory: <kv_cache_bytes> GiB"),
    _pattern(r"reserved <kv_cache_as_given_bytes> GiB memory for KV Cache as specified"),
    _pattern(r"KV cache memory reduced to <kv_cache_reduced_bytes> GiB"),
    _pattern(r"GPU KV cache size: <kv_cache_tokens> tokens"),
    _pattern(r"Maximum concurrency for <max_model_len> tokens per request: <concurrency>x"),
    _pattern(r"Overriding num_gpu_blocks=\d+ with num_gpu_blocks_override=<num_blocks>"),
    _pattern(r"Graph capturing finished in \d+ secs?, took <graph_used_bytes> GiB"),
    _pattern(
        r"CUDA graph pool memory: <graph_used_bytes> GiB \(actual\),"
        r" <graph_estimate_bytes> GiB \(estimated\)"
    ),
    _pattern(r"Free memory on device(?: \S+)? \(<free_bytes>/<total_bytes> GiB\) on startup"),
    _pattern(
        r"[Dd]esired GPU memory utilization (?:is )?"
        r"\(<gpu_memory_utilization>, <requested_bytes> GiB\)"
    ),
    _pattern(
        r"Actual usage is <weights_bytes> GiB for weight, <peak_activation_bytes> GiB for peak"
        r" activation, <non_torch_bytes> GiB for non-torch memory, and <graph_used_bytes> GiB"
    ),
    _pattern(
        r"Actual usage is <consumed_bytes> GiB for consumed memory \(weights \+ non-torch\),"
        r" <peak_with_graphs_bytes> GiB for peak activation, and <graph_used_bytes> GiB"
    ),
    re.compile(
        r"`--kv-cache-memory=(?P<suggested_kv_cache_bytes>\d{1,15})` \([^)]*\) to fit into"
        r" requested memory"
    ),
    _pattern(r"Current kv cache memory in use is <kv_cache_bytes> GiB"),
    _pattern(
        r"max seq len \(<refused_tokens>\), \(<needed_bytes> GiB KV cache is needed, which is"
        r" larger than the available KV cache memory \(<kv_cache_bytes> GiB\)"
    ),
    _pattern(r"the estimated maximum model length is <longest_request_tokens>"),
)

ENGINE_START = re.compile(r"Initializing an? (?:V1 )?LLM engine")
VERSION = re.compile(r"(?:LLM engine \(v|vLLM API server version v?)(?P<version>\d+\.\d+[^\s)]*)")
ARGUMENTS = re.compile(r"non-default args: (?P<arguments>.+)")
MODEL = re.compile(r"with config: model='(?P<model>[^']+)'")
CAPTURE_SIZES = re.compile(
    rf"['\"]cudagraph_capture_sizes['\"]: ?\[(?P<sizes>{_SIZE}(?:, ?{_SIZE})*|)\]"
)

# What the front end makes of its flags, before any engine starts.
_FRONT_SETTINGS = (
    re.compile(rf"Using max model len (?P<max_model_len>{_SIZE})\b"),
    re.compile(rf"enabled with max_num_batched_tokens=(?P<max_num_batched_tokens>{_SIZE})\b"),
)
# Settings as the engine resolved them; a later line counts more.
_ENGINE_SETTINGS = (
    re.compile(rf"\bmax_seq_len=(?P<max_model_len>{_SIZE})\b"),
    re.compile(rf"\btensor_parallel_size=(?P<tensor_parallel_size>{_SIZE})\b"),
    re.compile(rf"\bpipeline_parallel_size=(?P<pipeline_parallel_size>{_SIZE})\b"),
    re.compile(rf"\bdata_parallel_size=(?P<data_parallel_size>{_SIZE})\b"),
    re.compile(rf"\bdecode_context_parallel_size=(?P<decode_context_parallel_size>{_SIZE})\b"),
    re.compile(r"\bkv_cache_dtype=(?P<kv_cache_dtype>[a-z]\w*)"),
    re.compile(r"\benable_prefix_caching=(?P<enable_prefix_caching>True|False)"),
    re.compile(r"\bspeculative_config=(?P<num_speculative_tokens>None)\b"),
    re.compile(r"\bnum_spec_tokens=(?P<num_speculative_tokens>\d{1,3})\b"),
    re.compile(rf"'max_cudagraph_capture_size': (?P<max_cudagraph_capture_size>{_SIZE})\b"),
    re.compile(r"'cudagraph_mode': <CUDAGraphMode\.(?P<cudagraph_mode>[A-Z_]+)"),
    re.compile(r"setting cudagraph_mode=(?P<cudagraph_mode>[A-Z_]+)"),
)
# Flags the user gave, in the line that repeats them, by what their values look like.
_ARGUMENTS = (
    re.compile(
        r"'(?P<flag>max_model_len|max_num_seqs|max_num_batched_tokens|block_size"
        r"|tensor_parallel_size|pipeline_parallel_size|data_parallel_size"
        rf"|decode_context_parallel_size|max_cudagraph_capture_size)': (?P<value>{_SIZE})\b"
    ),
    re.compile(r"'(?P<flag>num_speculative_tokens)': (?P<value>\d{1,3})\b"),
    re.compile(r"'(?P<flag>kv_cache_memory_bytes)': (?P<value>[1-9]\d{0,14})\b"),
    re.compile(r"'(?P<flag>gpu_memory_utilization)': (?P<value>[01]\.\d{1,9})"),
    re.compile(
        r"'(?P<flag>enable_prefix_caching|enable_expert_parallel|language_model_only)'"
        r": (?P<value>True|False)"
    ),
    re.compile(
        r"'(?P<flag>kv_cache_dtype|mamba_ssm_cache_dtype|mamba_cache_dtype|all2all_backend)'"
        r": '(?P<value>[a-z]\w*)'"
    ),
    re.compile(r"'(?P<flag>cudagraph_mode)': (?:'|<CUDAGraphMode\.)(?P<value>[A-Za-z_]+)"),
)
_TAG = re.compile(r"\((?P<tag>[A-Za-z]\w*) pid=(?P<pid>\d+)")
_RANK = re.compile(r"_(DP|PP|TP|EP)(\d+)")
_GRAPH_GROUP = re.compile(r"(\w+)=(\d{1,9}) \(largest=(\d{1,9})\)")


def rank_values(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Every reading in a line: where it starts, and its values by field of RankReadings."""
    for pattern in RANK_PATTERNS:
        for match in pattern.finditer(text):
            yield (
                match.start(),
                {name: _value(name, found) for name, found in match.groupdict().items()},
            )


def engine_settings(text: str) -> Iterator[tuple[str, Any]]:
    """Settings in a line that describes the engine, by flag; ``num_speculative_tokens`` too."""
    return _matched(_ENGINE_SETTINGS, text)


def front_settings(text: str) -> Iterator[tuple[str, Any]]:
    """Settings in a line of the front end, by flag."""
    return _matched(_FRONT_SETTINGS, text)


def _matched(patterns: Iterable[re.Pattern[str]], text: str) -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        if match := pattern.search(text):
            for flag, found in match.groupdict().items():
                yield flag, _literal(found)


def arguments(text: str) -> Iterator[tuple[str, Any]]:
    """Flags in the line that repeats what the user gave."""
    for pattern in _ARGUMENTS:
        for match in pattern.finditer(text):
            yield match["flag"], _literal(match["value"])


def process_before(text: str, position: int) -> tuple[Process, str]:
    """The process whose tag stands last before a position, and its process id."""
    tags = list(_TAG.finditer(text, 0, position))
    if not tags:
        return Process(), ""
    tag, pid = tags[-1]["tag"], tags[-1]["pid"]
    # Ray tags all workers alike; only their ids tell them apart.
    return _process(f"{tag} {pid}" if tag.startswith("Ray") else tag), pid


def _process(tag: str) -> Process:
    """The ranks a tag such as ``Worker_DP1_TP0_EP4`` names."""
    ranks = {name: int(rank) for name, rank in _RANK.findall(tag)}
    return Process(
        tag=tag,
        data=ranks.get("DP"),
        pipeline=ranks.get("PP"),
        tensor=ranks.get("TP"),
        expert=ranks.get("EP"),
    )


def _literal(text: str) -> Any:
    """A value as Python prints it; nothing speculated is 0 tokens."""
    known: dict[str, Any] = {"True": True, "False": False, "None": 0}
    if text in known:
        return known[text]
    if text[0].isdecimal():
        return float(text) if "." in text else int(text)
    return text


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _bytes(text: str) -> int:
    """Bytes of a figure in GiB; vLLM prints a shrunken graph pool as negative."""
    size = parse_bytes(f"{text.removeprefix('-')} GiB")
    return -size if text.startswith("-") else size


def _graph_groups(text: str) -> tuple[GraphGroup, ...]:
    return tuple(
        GraphGroup(kind=kind, graphs=int(graphs), largest_tokens=int(largest))
        for kind, graphs, largest in _GRAPH_GROUP.findall(text)
    )


_CONVERT: Mapping[str, Callable[[str], Any]] = {
    "graph_groups": _graph_groups,
    "is_estimate_subtracted": lambda text: text == "enabled",
    "suggested_kv_cache_bytes": int,
    "padding_percent": float,
    "gpu_memory_utilization": float,
    "concurrency": float,
}


def _value(name: str, text: str) -> Any:
    if convert := _CONVERT.get(name):
        return convert(text)
    return _bytes(text) if name.endswith("_bytes") else _whole(text)
