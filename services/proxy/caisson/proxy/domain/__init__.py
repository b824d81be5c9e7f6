"""Pure rules: what a request may be, and what becomes of it."""
