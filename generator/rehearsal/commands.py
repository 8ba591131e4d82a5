"""The command lines of a rehearsal: Dynamo's frontend and mockers, and AIPerf.

Options as of ai-dynamo 1.6.1 and AIPerf 0.13.0. Everything runs in a closed network, so that ports
are always free there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from generator.rehearsal.plan import Load, MockEngines, RehearsalPlan

MODEL = "rehearsal"
MODEL_FOLDER = "./model"
"""The model below the folder that everything runs in: a path that every rehearsal shares."""

FRONTEND_PORT = 18000
_SYSTEM_PORT = 18100
_BOOTSTRAP_PORT = 19000
_SEED = 42
_NAMESPACE = "rehearsal"
# The mocker's own figure ignores the head size of the model folder; transfers are not judged.
_KV_BYTES_PER_TOKEN = 1024
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class MockWorker:
    """One mocker process: its name, its arguments and the port of its metrics."""

    name: str
    role: str
    argv: tuple[str, ...]
    system_port: int


def dynamo_environment(work: Path) -> dict[str, str]:
    """What frontend and mockers need to find each other without etcd and NATS, on loopback."""
    return {
        "DYN_DISCOVERY_BACKEND": "file",
        "DYN_FILE_KV": str(work / "discovery"),
        "DYN_REQUEST_PLANE": "tcp",
        "DYN_EVENT_PLANE": "zmq",
        "DYN_NAMESPACE": _NAMESPACE,
        "DYN_TCP_RPC_HOST": _LOOPBACK,
        "DYN_TCP_RESPONSE_STREAM_HOST": _LOOPBACK,
        "DYN_EVENT_PLANE_HOST": _LOOPBACK,
        "DYN_SYSTEM_HOST": _LOOPBACK,
        "DYN_LOG": "warn",
        "DYN_SDK_DISABLE_ANSI_LOGGING": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        **private_folders(work),
    }


def private_folders(work: Path) -> dict[str, str]:
    """Homes of caches inside the run, so that nothing of it is left elsewhere."""
    return {"HOME": str(work / "home"), "TMPDIR": str(work / "tmp"), "DO_NOT_TRACK": "1"}


def frontend_argv(python: Path) -> tuple[str, ...]:
    """The frontend, which hands requests to workers and ranks in turn."""
    return (
        *(str(python), "-m", "dynamo.frontend"),
        *("--http-host", _LOOPBACK, "--http-port", str(FRONTEND_PORT)),
        *("--router-mode", "round-robin"),
    )


def mock_workers(plan: RehearsalPlan, python: Path, profile: Path | None) -> tuple[MockWorker, ...]:
    """All mockers; ``profile`` has step times for ``--planner-profile-data``."""
    found: list[MockWorker] = []
    for engines in plan.engines:
        for worker in range(engines.pool.workers):
            number = len(found)
            words = (
                *(str(python), "-m", "dynamo.mocker"),
                *_mocker_options(engines),
                *(("--planner-profile-data", str(profile)) if profile else ()),
                *_bootstrap(engines, number),
            )
            found.append(
                MockWorker(
                    name=f"{engines.pool.role}-{worker}",
                    role=engines.pool.role,
                    argv=words,
                    system_port=_SYSTEM_PORT + number,
                )
            )
    return tuple(found)


def _mocker_options(engines: MockEngines) -> Iterator[str]:
    options = {
        "model-path": MODEL_FOLDER,
        "model-name": MODEL,
        "disaggregation-mode": engines.pool.role,
        "data-parallel-size": engines.pool.data_ranks,
        "num-gpu-blocks-override": engines.num_gpu_blocks,
        "block-size": engines.block_tokens,
        "max-num-seqs": engines.max_num_seqs,
        "max-num-batched-tokens": engines.max_num_batched_tokens,
        "kv-bytes-per-token": _KV_BYTES_PER_TOKEN,
    }
    for name, value in options.items():
        yield from (f"--{name}", str(value))
    yield "--no-enable-prefix-caching"


def _bootstrap(engines: MockEngines, number: int) -> tuple[str, ...]:
    if engines.pool.role != "prefill":
        return ()
    return ("--bootstrap-ports", str(_BOOTSTRAP_PORT + number))


def aiperf_argv(plan: RehearsalPlan, load: Load, aiperf: Path, artifacts: Path) -> tuple[str, ...]:
    """AIPerf at one load: a warm-up of as many requests as are in flight, then the measured ones.

    Prompts are drawn by a fixed seed, so that every rehearsal sends the same sequence.
    """
    lengths = plan.lengths
    options = {
        "model": MODEL,
        "url": f"http://{_LOOPBACK}:{FRONTEND_PORT}",
        "endpoint-type": "chat",
        "tokenizer": MODEL_FOLDER,
        "concurrency": load.in_flight,
        "request-count": load.requests,
        "warmup-request-count": load.in_flight,
        "isl": lengths.isl,
        "isl-stddev": 0,
        "osl": lengths.osl,
        "osl-stddev": 0,
        "random-seed": _SEED,
        "artifact-dir": artifacts,
        "ui": "none",
        "workers-max": 1,
        "record-processors": 1,
    }
    words = [str(aiperf), "profile", "--streaming"]
    for name, value in options.items():
        words += [f"--{name}", str(value)]
    for extra in ("ignore_eos:true", f"min_tokens:{lengths.osl}"):
        words += ["--extra-inputs", extra]
    # What it would collect of servers is in the samples of the workers' gauges.
    return (*words, "--use-server-token-count", "--no-gpu-telemetry", "--no-server-metrics")
