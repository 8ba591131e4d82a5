"""What the logs of vLLM's workers tell of a run: the engine's version, and preemptions by time.

While it serves, vLLM logs its throughput every few seconds, and in that line the preemptions since
the last one, if there were any. Stamps have no year. That a line has none says nothing: several
releases reset the counter before they print it (``LoggingStatLogger.log`` in
``vllm/v1/metrics/loggers.py`` calls ``_update_stats`` first), so that no line ever does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from generator.collection.streamed_json import open_binary

WORKER_LOG = re.compile(r".+_(?:prefill|decode|agg)_w\d+\.out\Z")

_VERSION = re.compile(rb"(?:LLM engine \(v|vLLM API server version v?)(\d+\.\d+[^\s)]*)")
_THROUGHPUT = b"Avg prompt throughput"
_STAMP = re.compile(rb"\b(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\b")
_PREEMPTIONS = re.compile(rb"\bPreemptions: (\d{1,9})")
_LONGEST_LINE_BYTES = 2**16
_REPORT_DELAY = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLogs:
    """Versions that workers print, and their lines with preemptions: month to second, count."""

    versions: tuple[str, ...] = ()
    reports: tuple[tuple[tuple[int, ...], int], ...] = ()

    def preemptions(self, started: datetime, duration_s: float) -> int | None:
        """Preemptions while a point was measured; None where no line of that time has any.

        Lines follow what they count by up to 10 s. The clocks of client and workers must agree.
        """
        end = started + timedelta(seconds=duration_s) + _REPORT_DELAY
        counts = [
            count
            for stamp, count in self.reports
            for year in {started.year, end.year}  # a run may last over New Year
            if (at := _in_year(stamp, year)) is not None and started <= at <= end
        ]
        return sum(counts) if counts else None


def read_worker_logs(paths: Iterable[Path]) -> WorkerLogs:
    """The logs of a run as streams; raises Unusable for one that cannot be read."""
    versions: set[str] = set()
    reports: list[tuple[tuple[int, ...], int]] = []
    for path in paths:
        with open_binary(path) as stream:
            while line := stream.readline(_LONGEST_LINE_BYTES):
                if match := _VERSION.search(line):
                    versions.add(match[1].decode("ascii", "replace"))
                found = _PREEMPTIONS.search(line) if _THROUGHPUT in line else None
                if found and (stamp := _STAMP.search(line)):
                    reports.append((tuple(map(int, stamp.groups())), int(found[1])))
    return WorkerLogs(versions=tuple(sorted(versions)), reports=tuple(reports))


def _in_year(stamp: tuple[int, ...], year: int) -> datetime | None:
    month, day, hour, minute, second = stamp
    try:
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - both have no zone
    except ValueError:
        return None
