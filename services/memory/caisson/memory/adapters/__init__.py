"""What is on the other side: PostgreSQL, the index engines, the embedders."""
