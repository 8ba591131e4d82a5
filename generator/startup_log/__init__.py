"""Start-up logs of vLLM workers: line patterns, a streaming reader and what it reads."""

from generator.startup_log.reader import read_startup_log
from generator.startup_log.readings import (
    ENCODER_GRAPHS,
    GraphGroup,
    Process,
    RankReadings,
    Reading,
    StartupLog,
)

__all__ = [
    "ENCODER_GRAPHS",
    "GraphGroup",
    "Process",
    "RankReadings",
    "Reading",
    "StartupLog",
    "read_startup_log",
]
