"""What is on the other side: PostgreSQL and NATS."""
