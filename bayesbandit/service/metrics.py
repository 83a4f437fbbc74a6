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


class Metrics:
    """The counters of one process, and the state of its log."""

    def __init__(self) -> None:
        own = self.registry = CollectorRegistry()
        self.decisions = Counter(
            "bayesbandit_decisions",
            "Answers with a decision, also again by its id, by arm and by who decided.",
            ["variant", "reason"],
            registry=own,
        )
        self.rewards = Counter(
            "bayesbandit_rewards", "Rewards, by how they came.", ["status"], registry=own
        )
        self.advice = Counter(
            "bayesbandit_advice",
            "Decisions of the present system, by whether the bandit agrees.",
            ["agrees"],
            registry=own,
        )
        self.requests = Histogram(
            "bayesbandit_request_seconds",
            "Time from a request's headers to its answer.",
            ["path", "status"],
            registry=own,
            buckets=BUCKETS,
        )
        self.version = Gauge(
            "bayesbandit_version", "Version of the bandit that decides here.", registry=own
        )
        self.newest = Gauge(
            "bayesbandit_newest_version", "Newest version of the bandit in the log.", registry=own
        )
        self.open = Gauge(
            "bayesbandit_open_decisions", "Decisions that are not closed.", registry=own
        )
        self.due = Gauge(
            "bayesbandit_due_decisions", "Decisions that a learner could learn now.", registry=own
        )

        self.surprise = Gauge(
            "bayesbandit_surprise", "Evidence that rewards do not follow one law: log10 of its "
            "largest value since the learner began; 2 is reached by chance in 1 of 100.",
            registry=own,
        )  # fmt: skip

        self.of_log = self.newest, self.open, self.due, self.surprise

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request. status 0: the client disconnected."""
        self.requests.labels(path if path in PATHS else "other", str(status)).observe(seconds)

    def text(self, service: Service) -> bytes:
        """Return all metrics in Prometheus's format; NaN for what the log cannot say now."""
        ledger = service.log.ledger
        found: tuple[float, ...]
        try:
            found = (ledger.newest(), *waiting(ledger), service.surprise().largest)
        except OSError:
            found = (math.nan,) * 4
        self.version.set(service.version)
        for gauge, value in zip(self.of_log, found, strict=True):
            gauge.set(value)
        return generate_latest(self.registry)
