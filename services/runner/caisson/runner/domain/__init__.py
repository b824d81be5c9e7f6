"""Pure rules of the runner."""
