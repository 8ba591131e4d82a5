"""A spec of twenty lines that renders one recipe, edits of it, and the commands run on it."""

from __future__ import annotations

import shutil
from pathlib import Path

from click.testing import CliRunner, Result

from generator.cli import main

SPEC = """\
pdrecipe: 1
name: tiny-{file}
output: recipes
model: {config: model, path: "hf:org/model", container: image, precision: NVFP4}
cluster: {gpu: gb300, gpus_per_node: 4, nodes: 18}
engine:
  type: vllm
  version: 0.26.0
  args: {kv-cache-dtype: fp8, no-enable-prefix-caching: true, language-model-only: true}
workload: {isl: 8192, osl: 1024}
benchmark: {type: sa-bench}
sizing:
  headroom_sequences: 16
  decode:
    max-model-len: 10240
    max-num-seqs: ceil(concurrency / ranks) + headroom_sequences
groups:
  - name: only
    decode: 1xTEP8
    deployments:
      - {file: a, prefill: 1xTEP8, concurrencies: [4]}
"""

MODEL = "recipes/models/qwen3.8-2.4t-a95b-nvfp4"

Edit = tuple[str, str]


def edited(*edits: Edit, text: str = SPEC) -> str:
    """The spec with each first text replaced by the second; every edit must find its place."""
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


def spec_folder(folder: Path, repository: Path, text: str = SPEC) -> Path:
    """A folder with ``spec.yaml`` and the committed Qwen3.8 model folder as ``model``."""
    shutil.copytree(repository / MODEL, folder / "model")
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    return folder


def run(*arguments: str) -> Result:
    """The command in this process; an exception that is no exit fails the test by itself."""
    return CliRunner(catch_exceptions=False).invoke(main, list(arguments))
