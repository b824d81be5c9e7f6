"""The only way out of a sandbox."""
