"""pytest fixtures for integration suites."""
