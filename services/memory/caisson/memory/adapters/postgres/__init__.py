"""The store: PostgreSQL schema memory."""
