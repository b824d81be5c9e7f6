"""The ledger in PostgreSQL, one noun per file; the statements are in `queries.sql`."""
