"""The smoke test of a running stack, made of the public API alone: what a sandbox can reach, seen from inside."""
