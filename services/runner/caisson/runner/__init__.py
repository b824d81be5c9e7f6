"""Workers that execute sandboxed bash."""
