"""A vLLM engine: its flags, what it makes of them, and its CUDA graphs."""
