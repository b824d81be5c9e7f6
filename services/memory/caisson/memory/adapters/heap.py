"""Giving freed memory back to the system, where glibc would keep it."""

import ctypes


def return_memory() -> None:
    """Give back what is free: 60 MiB after loading a model, 100 after long texts or a copy of a large index."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
