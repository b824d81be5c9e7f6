"""The HTTP API, one noun per file."""
