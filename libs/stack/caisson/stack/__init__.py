"""The whole plane on one machine."""
