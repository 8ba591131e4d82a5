"""Stands in for srt-slurm's orchestrator: checks what its job script would have prepared.

It insists on the folder, the files and the environment, runs one step where there is a Slurm, and
leaves a result for every concurrency, except for what STUB_FAILS names.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import yaml


def refuse(message: str) -> None:
    """End as the orchestrator does on a fatal error."""
    sys.exit(f"stub orchestrator: {message}")


def main() -> None:
    """Check, run, leave results."""
    output = pathlib.Path(os.environ["SRTCTL_OUTPUT_DIR"])
    config = checked_config(output)
    if os.environ.get("STUB_SLEEPS"):
        signal.signal(signal.SIGTERM, lambda *_: end_in_order(output))
        leave_result(output, os.environ["STUB_SLEEPS"], completed=1)
        (output / "ready").touch()
        time.sleep(100)
    if "SLURM_CONF" in os.environ:
        step = ["srun", "--overlap", "--nodes=1", "--ntasks=1", "--container-image=x", "true"]
        subprocess.run(step, check=True)
    loads = str(config["benchmark"]["concurrencies"]).split("x")
    for load in loads:
        if load not in os.environ.get("STUB_FAILS", "").split(","):
            leave_result(output, load, completed=int(load != os.environ.get("STUB_EMPTY")))
    sys.stdout.write(f"ran {' '.join(loads)}\n")


def end_in_order(output: pathlib.Path) -> None:
    """What the orchestrator does on SIGTERM, once its servers have ended."""
    (output / "in_order").touch()
    sys.exit(0)


def leave_result(output: pathlib.Path, load: str, *, completed: int) -> None:
    """Write what sa-bench would, as far as anyone looks at it here."""
    folder = output / "logs" / "sa-bench_isl_8192_osl_1024"
    folder.mkdir(exist_ok=True)
    file = folder / f"results_concurrency_{load}_gpus_16_ctx_8_gen_8.json"
    file.write_text(json.dumps({"completed": completed}))


def checked_config(output: pathlib.Path) -> dict[str, Any]:
    """The config, when everything around it is as it must be."""
    config_file = pathlib.Path(sys.argv[1])
    checkout = pathlib.Path(os.environ["SRTCTL_SOURCE_DIR"])
    job_id = os.environ["SLURM_JOB_ID"]
    if config_file != output / "config.yaml" or pathlib.Path.cwd() != checkout:
        refuse("wrong config.yaml or folder")
    if not (output / "logs").is_dir() or not os.environ["SLURM_NODELIST"]:
        refuse("no logs folder, or no nodes")
    if os.environ.get("SRTSLURM_CONFIG") != str(checkout / "srtslurm.yaml"):
        refuse("no SRTSLURM_CONFIG")
    config = yaml.safe_load(config_file.read_text())
    metadata = json.loads((output / f"{job_id}.json").read_text())
    if metadata["job_id"] != job_id or metadata["resources"]["gpus_per_decode"] is None:
        refuse("wrong metadata")
    for name, value in (config.get("environment") or {}).items():
        if os.environ.get(name) != value:
            refuse(f"{name} is not in the environment")
    return dict(config)


if __name__ == "__main__":
    main()
