"""The runner's own metrics. Labels never carry ids."""

from prometheus_client import Counter, Gauge, Histogram, Info

RUNS = Counter("caisson_runner_runs_total", "Runs that this worker let go of, by how", ["end"])
STEPS = Counter("caisson_runner_steps_total", "Steps by outcome", ["outcome"])
STEP_SECONDS = Histogram(
    "caisson_runner_step_seconds",
    "Wall time of a command in its box",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30, 120, 600),
)
FREE_SLOTS = Gauge("caisson_runner_free_slots", "Runs that could be taken now")
RENEWAL_FAILURES = Counter("caisson_runner_renewal_failures_total", "Heartbeats that got no answer")
LIVE_DROPPED = Counter("caisson_runner_live_dropped_total", "Pieces of live output dropped because the bus was slow")
GUARD_FALLBACKS = Counter(
    "caisson_runner_guard_fallbacks_total", "Commands read as raw text because the reader failed", ["cause"]
)
ISOLATION = Info("caisson_runner_isolation", "Which mechanism separates tenants")
