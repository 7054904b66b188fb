"""FIXED: language models behind any OpenAI-compatible endpoint: asked, counted, budgeted, recorded."""
