"""Llama models: ``python -m programs.llama.tokens`` prepares text for them."""
