"""The HTTP API and the durable ledger."""
