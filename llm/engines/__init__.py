"""FIXED: engines that draw completions: plain transformers in this process, vLLM in it, vLLM servers."""
