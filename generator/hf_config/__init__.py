"""Model architectures from Hugging Face ``config.json`` and ``hf_quant_config.json``."""

from generator.hf_config.convert import architecture_from_config
from generator.hf_config.files import load_architecture

__all__ = ["architecture_from_config", "load_architecture"]
