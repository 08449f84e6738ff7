"""What a controller counts, for Prometheus. Without the package `prometheus_client` nothing is counted."""

from typing import Any, Protocol

__all__ = ["Counted", "Metrics", "Uncounted"]


class Metrics(Protocol):
    """Told of everything that happens."""

    def clients(self, count: int) -> None: ...
    def communicators(self, count: int) -> None: ...
    def asked(self) -> None: ...
    def acknowledged(self, count: int) -> None: ...
    def refused(self, reason: str) -> None: ...
    def changed(self, rail: int, seconds: float) -> None: ...


class Uncounted:
    """Nobody asks."""

    def clients(self, count: int) -> None:
        pass

    def communicators(self, count: int) -> None:
        pass

    def asked(self) -> None:
        pass

    def acknowledged(self, count: int) -> None:
        pass

    def refused(self, reason: str) -> None:
        pass

    def changed(self, rail: int, seconds: float) -> None:
        pass


class Counted:
    """Counters of prometheus_client in a registry of their own. Raises ImportError without the package."""

    def __init__(self) -> None:
        import prometheus_client as prometheus

        self.registry = prometheus.CollectorRegistry()
        with_: dict[str, Any] = {"registry": self.registry}
        self._clients = prometheus.Gauge("opusc_clients", "Connections", **with_)
        self._communicators = prometheus.Gauge("opusc_communicators", "Communicators with a rank", **with_)
        self._asked = prometheus.Counter("opusc_requests", "Requests of ranks for circuits", **with_)
        self._acknowledged = prometheus.Counter("opusc_acknowledgements", "Ranks told that they are there", **with_)
        self._refused = prometheus.Counter("opusc_refused", "Clients that were ended, by reason", ["reason"], **with_)
        self._changes = prometheus.Histogram(
            "opusc_change_seconds", "Changes of a rail, from asked to lit", ["rail"],
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10), **with_,
        )  # fmt: skip

    def clients(self, count: int) -> None:
        self._clients.set(count)

    def communicators(self, count: int) -> None:
        self._communicators.set(count)

    def asked(self) -> None:
        self._asked.inc()

    def acknowledged(self, count: int) -> None:
        self._acknowledged.inc(count)

    def refused(self, reason: str) -> None:
        self._refused.labels(reason).inc()

    def changed(self, rail: int, seconds: float) -> None:
        self._changes.labels(str(rail)).observe(seconds)

    def listen(self, host: str, port: int) -> int:
        """Answer GET /metrics in a thread; the port. Raises OSError."""
        import prometheus_client as prometheus

        server, _ = prometheus.start_http_server(port, host, registry=self.registry)
        return int(server.server_port)
