"""What the proxy counts beside the security counters. Labels never carry ids."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("caisson_proxy_requests_total", "Requests, by upstream and status class", ["upstream", "status"])
REQUEST_SECONDS = Histogram(
    "caisson_proxy_request_seconds",
    "Time from a request's head to the end of its answer, by upstream",
    ["upstream"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)
FAILURES = Counter("caisson_proxy_failures_total", "Requests that failed without being forbidden", ["reason"])
CREDENTIAL_ECHOED = Counter(
    "caisson_proxy_credential_echoed_total", "Answers in which the credential was masked", ["upstream"]
)
DROPPED = Counter("caisson_proxy_records_dropped_total", "Records lost because they could not be reported", ["kind"])
RELOADS = Counter("caisson_proxy_upstreams_reloads_total", "Reloads of the declared upstreams", ["result"])
CONNECTIONS = Gauge("caisson_proxy_connections", "Open client connections")
