"""The few lines of a log that matter, out of a stream of any length, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from generator.errors import InvalidInput, Problem

CHUNK_BYTES = 2**20
_LONGEST_LINE_BYTES = 2**20

# A line without any of these has nothing to read; most of a log has none.
_MARKS = (
    b" GiB",
    b"LLM engine (v",
    b"LLM engine with config",
    b"non-default args: ",
    b"KV cache size: ",
    b"Maximum concurrency for ",
    b"attention block size to ",
    b"mamba page size by ",
    b"CUDA graph memory",
    b"max_num_batched_tokens=",
    b"num_gpu_blocks_override=",
    b"Using max model len ",
    b"setting cudagraph_mode=",
    b"estimated maximum model length is ",
    b"vLLM API server version ",
)
_OTHER_ENGINES = {
    b"[TensorRT-LLM]": "TensorRT-LLM",
    b"[TRT-LLM]": "TensorRT-LLM",
    b"[TRTLLM]": "TensorRT-LLM",
    b"server_args=ServerArgs(": "SGLang",
    b"sglang.launch_server": "SGLang",
    b"KV Cache is allocated. ": "SGLang",
    b"max_total_num_tokens=": "SGLang",
}
_COLOUR = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line that may hold a reading: its number from 1 and its text without colours."""

    number: int
    text: str


class LogLines:
    """Iterates over the lines of a stream that matter; counts the rest.

    A line longer than 1 MiB is read in pieces. Iterating raises InvalidInput for a file that is no
    text. ``other_engine`` names an engine other than vLLM whose marks were seen.
    """

    def __init__(
        self, stream: BinaryIO, source: str, on_chunk: Callable[[], None] = lambda: None
    ) -> None:
        self.count = 0
        self.other_engine = ""
        self._stream = stream
        self._source = source
        self._on_chunk = on_chunk

    def __iter__(self) -> Iterator[LogLine]:
        rest = b""
        is_first = True
        while chunk := self._stream.read(CHUNK_BYTES):
            if is_first:
                chunk = chunk.removeprefix(b"\xef\xbb\xbf")
                self._require_text(chunk, "")
                is_first = False
            self._on_chunk()
            block = rest + chunk
            end = block.rfind(b"\n") + 1
            if not end and len(block) < _LONGEST_LINE_BYTES:
                rest = block
                continue
            whole, rest = (block[:end], block[end:]) if end else (block, b"")
            yield from self._matching(whole)
        if rest:
            yield from self._matching(rest)
            self.count += 1

    def _matching(self, block: bytes) -> Iterator[LogLine]:
        if b"\0" in block:
            self._require_text(block, f" after line {self.count}")
        if not self.other_engine:
            self.other_engine = next(
                (name for mark, name in _OTHER_ENGINES.items() if mark in block), ""
            )
        number, counted = self.count + 1, 0
        for start in sorted(_line_starts(block)):
            number += block.count(b"\n", counted, start)
            counted = start
            end = block.find(b"\n", start)
            yield LogLine(number=number, text=_clean(block[start : end if end >= 0 else None]))
        self.count += block.count(b"\n")

    def _require_text(self, block: bytes, where: str) -> None:
        for magic, name in _PACKED.items():
            if not where and block.startswith(magic):
                message = f"is packed with {name}, not a text file"
                raise InvalidInput(
                    Problem(message=message, hint="unpack it first", source=self._source)
                )
        if not where and block.startswith((b"\xff\xfe", b"\xfe\xff")):
            hint = "save it as UTF-8"
            raise InvalidInput(Problem(message="is UTF-16 text", hint=hint, source=self._source))
        if b"\0" in block:
            raise InvalidInput(
                Problem(
                    message=f"is no text: it has a zero byte{where}",
                    hint="name the log of a vLLM worker",
                    source=self._source,
                )
            )


def _line_starts(block: bytes) -> set[int]:
    """Where the lines with any mark begin."""
    starts: set[int] = set()
    for mark in _MARKS:
        at = block.find(mark)
        while at >= 0:
            starts.add(block.rfind(b"\n", 0, at) + 1)
            at = block.find(mark, at + len(mark))
    return starts


def _clean(line: bytes) -> str:
    """Text without colours; what a progress bar overwrote counts as text before the rest."""
    text = line.decode("utf-8", errors="replace")
    return _COLOUR.sub("", text).replace("\r", " ")
