"""What the proxy counts beside the security counters. Labels never carry ids."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from prometheus_client import REGISTRY, Counter, Gauge
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, float("inf"))


class Requests(Collector):
    """Requests by upstream and status class, and how long they took.

    The client library's own histogram costs a microsecond per request; this is a list index.
    """

    def __init__(self) -> None:
        self._numbers: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(_BOUNDS_S))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, upstream: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._numbers[upstream, status // 100] += 1
        self._buckets[upstream][bisect_left(_BOUNDS_S, seconds)] += 1
        self._seconds[upstream] += seconds

    def collect(self) -> Iterator[Metric]:
        """Tell the counts."""
        requests = CounterMetricFamily(
            "caisson_proxy_requests", "Requests, by upstream and status class", labels=["upstream", "status"]
        )
        for (upstream, hundred), number in self._numbers.items():
            requests.add_metric([upstream, f"{hundred}xx"], number)
        yield requests
        durations = HistogramMetricFamily(
            "caisson_proxy_request_seconds",
            "Time from a request's head to the end of its answer, by upstream",
            labels=["upstream"],
        )
        for upstream, counts in self._buckets.items():
            running = [sum(counts[: index + 1]) for index in range(len(counts))]
            bounds = [("+Inf" if bound == float("inf") else str(bound)) for bound in _BOUNDS_S]
            durations.add_metric([upstream], list(zip(bounds, running, strict=True)), self._seconds[upstream])
        yield durations


REQUESTS = Requests()
REGISTRY.register(REQUESTS)
FAILURES = Counter("caisson_proxy_failures_total", "Requests that failed without being forbidden", ["reason"])
CREDENTIAL_ECHOED = Counter(
    "caisson_proxy_credential_echoed_total", "Answers in which the credential was masked", ["upstream"]
)
DROPPED = Counter("caisson_proxy_records_dropped_total", "Records lost because they could not be reported", ["kind"])
RELOADS = Counter("caisson_proxy_upstreams_reloads_total", "Reloads of the declared upstreams", ["result"])
CONNECTIONS = Gauge("caisson_proxy_connections", "Open client connections")
