"""vLLM's KV cache: block size, page, groups of layers, blocks and requests."""
