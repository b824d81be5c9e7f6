"""Background work: claiming, heartbeats, working on runs, watching the host."""
