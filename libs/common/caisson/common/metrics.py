"""The metrics that several services share. Labels never carry ids."""

from prometheus_client import Counter, Gauge, Histogram

RPC_SECONDS = Histogram(
    "caisson_rpc_seconds",
    "Time to answer a request, by subject template",
    ["subject"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
)
RPC_ERRORS = Counter("caisson_rpc_errors_total", "Requests answered with a typed error", ["subject", "code"])
MISADDRESSED = Counter(
    "caisson_bus_misaddressed_total", "Messages refused because envelope and subject differ", ["service"]
)
WORK_FAILED = Counter("caisson_bus_work_failed_total", "Facts whose work failed and that come again", ["consumer"])
LOOP_LAG_SECONDS = Histogram(
    "caisson_event_loop_lag_seconds",
    "How late the event loop woke from a sleep of 20 ms",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
)
LOOP_LAG_MAX_SECONDS = Gauge(
    "caisson_event_loop_lag_max_seconds", "The latest that the event loop woke in this minute or the one before"
)
COMMAND_BLOCKED = Counter("caisson_security_command_blocked_total", "Commands that a guard refused", ["guard"])
PROXY_REWRITE = Counter(
    "caisson_security_proxy_rewrite_total",
    "Foreign tenant values that the proxy replaced",
    ["upstream", "location"],
)
PROXY_DENIED = Counter("caisson_security_proxy_denied_total", "Requests that the proxy refused", ["reason"])
EGRESS_BLOCKED = Counter("caisson_security_egress_blocked_total", "Packets that a sandbox's kernel rules refused")
STALE_FENCE = Counter("caisson_security_stale_fence_total", "Writes refused because the worker's lease was gone")
