"""Programs in the place of Dynamo and AIPerf: they listen, find each other and write exports.

They stand where ``pdrecipe rehearse --setup`` puts the real ones, so that the command starts them
by itself. What they do beside that is in a file ``behaviour.json`` next to them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from generator.rehearsal_host.environments import environment_plans, mark_path, mark_text
from tests.run_outputs import aiperf

_DYNAMO = '''\
#!{python}
import json, os, pathlib, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

words = sys.argv[1:]
behaviour = json.loads(pathlib.Path(__file__).with_name("behaviour.json").read_text())
registry = pathlib.Path(os.environ["DYN_FILE_KV"])
is_frontend = "dynamo.frontend" in words
name = "frontend" if is_frontend else "decode" if "decode" in words else "prefill"
port = words[words.index("--http-port") + 1] if is_frontend else os.environ["DYN_SYSTEM_PORT"]
METRICS = """\\
dynamo_component_inflight_requests{{}} 0
vllm:num_requests_running{{}} 0
vllm:num_requests_waiting{{}} 0
vllm:num_preemptions_total{{}} 0
vllm:kv_cache_usage_perc{{}} 0.5
"""


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        workers = [{{"endpoint": "generate", "instance_id": each}} for each in os.listdir(registry)]
        answers = {{
            "/health": json.dumps({{"instances": workers}}),
            "/v1/models": json.dumps({{"data": [{{"id": "rehearsal"}}]}}),
            "/metrics": METRICS,
        }}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answers[self.path].encode())

    def log_message(self, *_):
        pass


def die():
    while not pathlib.Path(behaviour["dies_when"]).exists():
        time.sleep(0.05)
    print("no blocks are left", flush=True)
    os._exit(7)


if behaviour.get("dies") == name:
    threading.Thread(target=die, daemon=True).start()
if not is_frontend:
    (registry / port).touch()
ThreadingHTTPServer(("127.0.0.1", int(port)), Answer).serve_forever()
'''

_AIPERF = """\
#!{python}
import json, pathlib, sys, time

behaviour = json.loads(pathlib.Path(__file__).with_name("behaviour.json").read_text())
option = dict(zip(sys.argv[2:], sys.argv[3:]))
pathlib.Path(behaviour["driven"]).open("a").write(option["--concurrency"] + "\\n")
time.sleep(behaviour.get("seconds", 0))
report = json.loads(pathlib.Path(__file__).with_name("export.json").read_text())
report["input_config"]["phases"][1]["concurrency"] = int(option["--concurrency"])
folder = pathlib.Path(option["--artifact-dir"])
folder.mkdir(parents=True)
(folder / "profile_export_aiperf.json").write_text(json.dumps(report))
"""


def stub_serving(cache: Path, **behaviour: Any) -> Path:
    """Fill a cache folder as a finished set-up would; returns the file that notes each load."""
    driven = cache / "driven"
    behaviour = {"driven": str(driven), "dies_when": str(driven), **behaviour}
    for home, command, text in (("dynamo", "python", _DYNAMO), ("aiperf", "aiperf", _AIPERF)):
        programs = cache / home / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        (programs / "python").touch()
        (programs / command).write_text(text.format(python=sys.executable), encoding="utf-8")
        (programs / command).chmod(0o755)
        (programs / "behaviour.json").write_text(json.dumps(behaviour), encoding="utf-8")
    (cache / "aiperf/bin/export.json").write_text(json.dumps(aiperf()), encoding="utf-8")
    for plan in environment_plans():
        mark_path(plan, cache).write_text(mark_text(plan), encoding="utf-8")
    return driven
