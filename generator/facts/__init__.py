"""What is known of GPUs, engines and start-ups, each figure with its source, date and basis.

The data is YAML under ``generator/data``; its README says how to add to it. Schemas check it in
the tests, the loaders check what no schema can.
"""

from generator.facts.engines import EngineDefaults, KernelBlocks, PdBlockRule, engine_defaults
from generator.facts.estimates import MemoryEstimate, MemoryEstimates, memory_estimates
from generator.facts.fact import Fact, FactBasis
from generator.facts.gpus import Gpu, gpu, gpu_names
from generator.facts.profiles import (
    MeasuredProfile,
    ProfileKey,
    find_profile,
    measured_profiles,
    read_profiles,
)

__all__ = [
    "EngineDefaults",
    "Fact",
    "FactBasis",
    "Gpu",
    "KernelBlocks",
    "MeasuredProfile",
    "MemoryEstimate",
    "MemoryEstimates",
    "PdBlockRule",
    "ProfileKey",
    "engine_defaults",
    "find_profile",
    "gpu",
    "gpu_names",
    "measured_profiles",
    "memory_estimates",
    "read_profiles",
]
