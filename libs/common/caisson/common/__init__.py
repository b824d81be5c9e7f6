"""What every service shares: ids, subjects, messages, errors, settings, bus, PostgreSQL, telemetry, health."""
