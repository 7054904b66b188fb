"""FIXED: the loop of waking and sleeping, and what it writes down."""
