"""The spec a plan starts from: a user's own, or one composed for a model, a GPU and a workload."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from generator.architecture import ModelArchitecture
from generator.checks.known_models import is_known
from generator.documents import parse_document
from generator.enumeration.subject import ModelQuestion, Subject
from generator.errors import InvalidInput, Problem
from generator.estimation import sizing_basis
from generator.facts import Gpu, MeasuredProfile, engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.kv_cache.options import KvCacheOptions, cache_dtypes
from generator.spec.reader import load_spec, spec_from_document
from generator.yaml_text.scalars import dump_yaml_scalar

KV_CACHE_DTYPES = ("fp8", "auto")
_KV_CACHE_DTYPE = "kv-cache-dtype"
_ENGINE = "vllm"
_TEMPLATE_ROOM_TOKENS, _TEMPLATE_LEAST_TOKENS = 1024, 64
_LEAST_CHUNK, _LARGEST_CHUNK = 2048, 16384
_HUB_SEPARATOR = "--"
_PLACEHOLDER = (
    "  - {decode: 1xTP1, deployments: [{file: none, prefill: 1xTP1, concurrencies: [1]}]}",
)

T = TypeVar("T")


def subject_of_spec(path: Path, profiles: tuple[MeasuredProfile, ...] = ()) -> Subject:
    """A subject whose engines are sized by a spec; raises InvalidInput with all its problems.

    The spec's KV-cache dtype stays: it is a decision about accuracy.
    """
    spec = load_spec(path)
    basis = sizing_basis(spec, profiles)
    dtype = str(spec.engine.args["decode"].get(_KV_CACHE_DTYPE, "auto"))
    return Subject(
        specs={dtype: spec},
        architecture=basis.architecture,
        gpu=basis.gpu,
        defaults=basis.defaults,
        profiles=basis.profiles,
    )


def subject_of_model(
    question: ModelQuestion, profiles: tuple[MeasuredProfile, ...] = ()
) -> Subject:
    """A subject with a composed spec for each KV-cache dtype worth trying.

    Raises InvalidInput with everything that is wrong with the question.
    """
    accelerator, architecture = _answered(question)
    if question.nodes is None:
        question = replace(question, nodes=max(2, accelerator.nodes_per_nvlink_domain))
    specs = {
        dtype: spec_from_document(
            parse_document(
                composed_text(question, architecture, accelerator, dtype, _PLACEHOLDER, Path()),
                str(question.model),
            ),
            folder=Path(),
        )
        for dtype in _dtypes_worth_trying(architecture)
    }
    return Subject(
        specs=specs,
        architecture=architecture,
        gpu=accelerator,
        defaults=engine_defaults(_ENGINE, question.engine_version, accelerator),
        profiles=profiles,
        question=question,
    )


def _dtypes_worth_trying(architecture: ModelArchitecture) -> Iterator[str]:
    """Each once: ``auto`` is another name of what a checkpoint with a KV scheme of its own asks."""
    known: set[str] = set()
    for dtype in KV_CACHE_DTYPES:
        stored = cache_dtypes(architecture, KvCacheOptions(kv_cache_dtype=dtype)).kv_cache
        if stored not in known:
            known.add(stored)
            yield dtype


def _answered(question: ModelQuestion) -> tuple[Gpu, ModelArchitecture]:
    """The GPU and the model that a question names, or everything that is wrong with it."""
    problems = list(_number_problems(question))

    def found(find: Callable[[], T]) -> T | None:
        try:
            return find()
        except InvalidInput as error:
            problems.extend(error.problems)
            return None

    accelerator = found(lambda: gpu(question.gpu))
    architecture = found(lambda: load_architecture(question.model))
    if accelerator is not None:
        found(lambda: engine_defaults(_ENGINE, question.engine_version, accelerator))
        problems += _domain_problems(question, accelerator)
    if problems or accelerator is None or architecture is None:
        raise InvalidInput(problems)
    return accelerator, architecture


def _number_problems(question: ModelQuestion) -> Iterator[Problem]:
    for name, value in (
        ("--nodes", question.nodes),
        ("--isl", question.workload.isl),
        ("--osl", question.workload.osl),
    ):
        if value is not None and value < 1:
            yield Problem(message=f"{name} must be at least 1, got {value}")


def _domain_problems(question: ModelQuestion, accelerator: Gpu) -> Iterator[Problem]:
    domain = accelerator.nodes_per_nvlink_domain
    if question.nodes is not None and 1 < domain < question.nodes:
        yield Problem(
            message=(
                f"--nodes {question.nodes} are more than the {domain} of one NVLink domain of"
                f" {accelerator.name}"
            ),
            hint=f"a deployment stays inside one domain: write at most {domain}",
        )


def composed_text(
    question: ModelQuestion,
    architecture: ModelArchitecture,
    accelerator: Gpu,
    kv_cache_dtype: str,
    groups: Sequence[str],
    folder: Path,
) -> str:
    """A spec for a question, with these lines below ``groups:``; names are relative to ``folder``.

    Sizing rules are those of the published GB300 recipes, with a cap on the tokens of a chunk.
    """
    workload, version = question.workload, question.engine_version
    model = question.model.parent if question.model.is_file() else question.model
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", model.resolve().name).strip("-.").lower() or "model"
    repository = model.resolve().name.replace(_HUB_SEPARATOR, "/", 1)
    # What checks and rehearses a recipe finds the model by its path: in the catalogue, or there.
    path = f"hf:{repository}" if is_known(repository) else str(model.resolve())
    context = architecture.max_position_embeddings
    longest = min(workload.request_tokens + _TEMPLATE_ROOM_TOKENS, context)
    stored = architecture.quantization and architecture.quantization.linear_format
    precision = str(stored or architecture.dtype).upper()
    lines = [
        "pdrecipe: 1",
        f"name: {name}-{accelerator.name}-{{file}}",
        f"output: {name}-{accelerator.name}-{workload.isl}-{workload.osl}",
        "model:",
        f"  config: {dump_yaml_scalar(os.path.relpath(question.model, folder))}",
        f"  path: {dump_yaml_scalar(path)}",
        f"  container: vllm/vllm-openai:v{version.removeprefix('v')}",
        f"  precision: {precision}",
        f"cluster: {{gpu: {accelerator.name}, gpus_per_node: {accelerator.gpus_per_node},",
        f"  nodes: {question.nodes}}}",
        "engine:",
        "  type: vllm",
        f"  version: {dump_yaml_scalar(version)}",
        "  connector: null",
        *_engine_lines(architecture, kv_cache_dtype),
        "dynamo: {install: false}",
        f"workload: {{isl: {workload.isl}, osl: {workload.osl}}}",
        "benchmark:",
        "  type: sa-bench",
        "  req_rate: inf",
        *_template_lines(longest - workload.request_tokens),
        "  random_range_ratio: 1.0",
        "  num_prompts_mult: 8",
        "  num_warmup_mult: 1",
        "sizing:",
        "  headroom_sequences: 16",
        "  headroom_tokens: 16",
        "  prefill:",
        f"    max-model-len: {longest}",
        "    max-num-seqs: 32",
        f"    max-num-batched-tokens: min(max(2 * isl, {_LEAST_CHUNK}), {_LARGEST_CHUNK})",
        "  decode:",
        f"    max-model-len: {longest}",
        "    max-num-seqs: ceil(concurrency / ranks) + headroom_sequences",
        "    max-cudagraph-capture-size: max_num_seqs * (1 + mtp)",
        "    max-num-batched-tokens: max_cudagraph_capture_size + headroom_tokens",
        "groups:",
        *groups,
    ]
    return "".join(f"{line}\n" for line in lines)


def _engine_lines(architecture: ModelArchitecture, kv_cache_dtype: str) -> Iterator[str]:
    """Flags and environment of both roles: what the KV transfer needs, hybrids above all."""
    if architecture.is_hybrid:
        yield "  environment: {VLLM_SSM_CONV_STATE_LAYOUT: DS}"
    yield "  args:"
    yield "    kv-transfer-config: {kv_connector: NixlConnector, kv_role: kv_both,"
    yield "      kv_load_failure_policy: fail}"
    if architecture.is_hybrid:
        yield "    no-disable-hybrid-kv-cache-manager: true"
    if architecture.vision is not None:
        yield "    language-model-only: true"
    yield "    no-enable-prefix-caching: true"
    yield f"    kv-cache-dtype: {kv_cache_dtype}"
    yield "  prefill_args: {compilation-config: {cudagraph_mode: PIECEWISE}}"
    yield "  decode_args: {compilation-config: {cudagraph_mode: FULL_DECODE_ONLY}}"


def _template_lines(room_tokens: int) -> Iterator[str]:
    """Whether prompts go through the chat template, which adds tokens to them."""
    if room_tokens < _TEMPLATE_LEAST_TOKENS:
        yield "  use_chat_template: false"
