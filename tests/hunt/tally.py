"""What a hunt has counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.hunt.verdict import Verdict

OUTCOMES = ("right", "wrong", "crash", "refused", "door", "unmixed", "unjudged", "spared")
SHOWN = 40  # reasons of refusal


class Tally:
    """Verdicts by answer, engine and outcome, and refusals by reason."""

    def __init__(self) -> None:
        self.cases = self.failures = 0
        self.count: Counter[tuple[str, str, str]] = Counter()
        self.reasons: Counter[str] = Counter()

    def add(self, verdicts: Sequence[Verdict]) -> None:
        """One declaration's verdicts."""
        self.cases += 1
        self.failures += any(v.bad for v in verdicts)
        for v in verdicts:
            self.count[v.what, v.engine, v.outcome] += 1
            if v.outcome in ("refused", "door", "unjudged"):
                self.reasons[f"{v.outcome}: {reason(v)}"] += 1

    def __str__(self) -> str:
        """The tables, as Markdown."""
        lines = [f"{self.cases} declarations, of which {self.failures} failed", ""]
        lines.append(f"| answer | engine | {' | '.join(OUTCOMES)} |")
        lines.append("| --- " * (2 + len(OUTCOMES)) + "|")
        for what, engine in sorted({key[:2] for key in self.count}):
            cells = (str(self.count[what, engine, outcome] or "") for outcome in OUTCOMES)
            lines.append(f"| {what} | {engine} | {' | '.join(cells)} |")
        lines += ["", "| refusals | reason |", "| --- | --- |"]
        lines += [f"| {n} | {why} |" for why, n in self.reasons.most_common(SHOWN)]
        return "\n".join(lines)

    @property
    def line(self) -> str:
        """All in one line: outcomes of all engines together."""
        total: Counter[str] = Counter()
        for (_, _, outcome), n in self.count.items():
            total[outcome] += n
        said = ", ".join(f"{total[outcome]} {outcome}" for outcome in OUTCOMES if total[outcome])
        return f"{self.cases} declarations: {said}"


def reason(verdict: Verdict) -> str:
    """The first words of a refusal: its engine and why, without names."""
    text = verdict.detail.split("; ")[-1] if verdict.engine == "exact" else verdict.detail
    words = text.replace("later: ", "").split()
    plain = ["…" if "'" in word or any(ch.isdigit() for ch in word) else word for word in words]
    return " ".join(plain[:8])
