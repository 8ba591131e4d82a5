"""Chromium without a window: found, installed where that is allowed, and asked to look at pages.

A page is served on this machine's loopback and shown in frames of the widths asked for; what the
frames measure comes back, with every line the console printed and every file that was asked for.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_TIMEOUT_S = 120
_ANSWER = re.compile(r'<pre id="answer">(.*?)</pre>', re.DOTALL)
_LOOKER = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<pre id="answer"></pre>
<script>
const widths = {widths}, answer = {{}};
let left = widths.length;
for (const width of widths) {{
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${{width}}px;height:800px;border:0`;
  frame.onload = () => {{
    const page = frame.contentDocument, root = page.documentElement;
    const label = (each) => each.id || each.className.baseVal || each.className || each.tagName;
    const inScroller = (each) => each.closest(".table, .drawing, pre");
    answer[width] = {{
      page: root.scrollWidth,
      wide: [...page.body.querySelectorAll("*")].filter(each => !inScroller(each)
        && each.getBoundingClientRect().right > width + 1).map(label),
      headings: [...page.querySelectorAll("h1, h2, h3")].map(each => each.tagName),
      figures: [...page.querySelectorAll("svg[role=img]")].map(each =>
        page.getElementById(each.getAttribute("aria-labelledby").split(" ")[1]).textContent),
      broken: [...page.querySelectorAll("a[href^='#']")].map(each => each.getAttribute("href"))
        .filter(each => !page.getElementById(each.slice(1))),
      alike: [...page.querySelectorAll("[role=region]")].map(each => each.ariaLabel)
        .filter((each, index, all) => all.indexOf(each) !== index),
      twice: [...page.querySelectorAll("[id]")].map(each => each.id)
        .filter((each, index, all) => all.indexOf(each) !== index),
    }};
    if (--left === 0) document.getElementById("answer").textContent = JSON.stringify(answer);
  }};
  frame.src = "/page.html";
  document.body.append(frame);
}}
</script>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a browser saw: measures by width, lines of its console, and paths it asked for."""

    seen: dict[str, dict[str, Any]]
    console: list[str]
    requested: list[str]


@cache
def why_not() -> str:
    """Why there is no browser here; empty where there is one, installed now if need be."""
    if _command():
        return ""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "needs Chromium: apt-get install chromium"
    install = ["apt-get", "install", "-qy", "--no-install-recommends", "chromium"]
    if _apt(install) and (_apt(["apt-get", "update", "-q"]) or _apt(install)):
        return f"needs Chromium, and this failed: {' '.join(install)}"
    return "" if _command() else "needs Chromium"


def _command() -> str | None:
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def _apt(command: list[str]) -> int:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False
    ).returncode


def look_at(page: str, widths: tuple[int, ...], profile: Path) -> Look:
    """Show a page in frames of these widths, its scripts and fetches watched."""
    files = {"/page.html": page, "/": _LOOKER.format(widths=list(widths))}
    with _served(files) as (address, requested):
        done = _chromium(profile, "--dump-dom", "--virtual-time-budget=20000", address)
    answer = _ANSWER.search(done.stdout)
    assert answer is not None, done.stderr
    return Look(
        seen=json.loads(html.unescape(answer[1])),
        console=[line for line in done.stderr.splitlines() if ":CONSOLE" in line],
        requested=requested,
    )


def screenshot(page: Path, size: tuple[int, int], profile: Path, *, out: Path) -> bytes:
    """A picture of a page file in a window of that size."""
    window = f"--window-size={size[0]},{size[1]}"
    done = _chromium(profile, f"--screenshot={out}", window, page.as_uri())
    assert out.is_file(), done.stderr
    return out.read_bytes()


def printed(page: Path, profile: Path, *, out: Path) -> bytes:
    """A page file as a printer gets it: a PDF."""
    done = _chromium(profile, f"--print-to-pdf={out}", "--no-pdf-header-footer", page.as_uri())
    assert out.is_file(), done.stderr
    return out.read_bytes()


def _chromium(profile: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = _command()
    assert command is not None
    return subprocess.run(
        [
            *(command, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--enable-logging=stderr", f"--user-data-dir={profile}", *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


@contextmanager
def _served(files: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """The files on a port of the loopback, and the paths that were asked for."""
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            found = files.get(self.path)
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((found or "").encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", requested
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
