"""Phase studies: ladders of concurrencies up to the KV limit."""
