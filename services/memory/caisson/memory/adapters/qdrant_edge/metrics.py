"""What the embedded index counts."""

from prometheus_client import Counter

RESTARTS = Counter("caisson_memory_index_restarts_total", "Times that the embedded index's process was started anew")
