"""Metrics of a server, for Prometheus."""

from __future__ import annotations

import math

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bayesbandit.service.service import Service
from bayesbandit.store.reading import waiting

PATHS = (
    "/decide", "/reward", "/activate", "/healthz", "/readyz", "/metrics", "/openapi.json",
)  # fmt: skip
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
GAUGES = {
    "version": "Version of the bandit that decides here.",
    "newest_version": "Newest version of the bandit in the log.",
    "open_decisions": "Decisions that are not closed.",
    "due_decisions": "Decisions that a learner could learn now.",
}


class Metrics:
    """The counters of one process, and the state of its log."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.decisions = Counter(
            "bayesbandit_decisions",
            "Answers with a decision, also again by its id, by arm.",
            ["variant"],
            registry=registry,
        )
        self.rewards = Counter(
            "bayesbandit_rewards", "Rewards, by how they came.", ["status"], registry=registry
        )
        self.requests = Histogram(
            "bayesbandit_request_seconds",
            "Time from a request's headers to its answer.",
            ["path", "status"],
            registry=registry,
            buckets=BUCKETS,
        )
        self.gauges = {
            name: Gauge(f"bayesbandit_{name}", text, registry=registry)
            for name, text in GAUGES.items()
        }

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request. status 0: the client disconnected."""
        self.requests.labels(path if path in PATHS else "other", str(status)).observe(seconds)

    def text(self, service: Service) -> bytes:
        """Return all metrics in Prometheus's format; NaN for what the log cannot say now."""
        ledger = service.log.ledger
        of_log: tuple[float, ...]
        try:
            of_log = (ledger.newest(), *waiting(ledger))
        except OSError:
            of_log = (math.nan,) * 3
        for gauge, value in zip(self.gauges.values(), (service.version, *of_log), strict=True):
            gauge.set(value)
        return generate_latest(self.registry)
