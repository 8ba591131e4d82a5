"""pdrecipe: capacity-exact prefill/decode recipes for disaggregated LLM serving."""

__version__ = "0.1.0"
