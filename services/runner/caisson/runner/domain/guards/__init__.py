"""Layer 2: every command is read before it runs."""
