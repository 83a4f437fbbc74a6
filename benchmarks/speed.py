"""Speed side by side: the yardstick, bayesbandit and its peers, in one run and one table.

    uv run benchmarks/speed.py [--quick] [--no-peers] [--repeats N]

K = 3, CPU time, one thread. The yardstick and bayesbandit share one process; each peer has its own,
in an environment that uv makes for it. Every repeat measures everybody once, one after the other,
so that a slow minute of the machine falls on all; a ratio is taken within a repeat, and the table
shows the median over repeats and, for the rates, the smallest and the largest.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
PEERS = ["mabwiser", "contextualbandits", "bayesianbandits", "vowpalwabbit", "coba", "river", "obp"]
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
OURS = "bayesbandit"
BATCH = 10_000  # rounds in a call that takes many


@dataclass(frozen=True)
class Row:
    """One line of the table: who plays what, at which d, in chunks of how many rounds."""

    team: str
    name: str
    d: int
    chunk: int = 50

    @property
    def rounds(self) -> int:
        return max(1_000_000 // self.d, 4 * self.chunk) if self.chunk < BATCH else 200_000


@dataclass
class Worker:
    """A process that measures on request; `refusal` says why there is none."""

    team: str
    command: list[str]
    version: str = ""
    contestants: list[str] = field(default_factory=list)
    refusal: str = ""
    process: subprocess.Popen[str] | None = None

    def open(self, patience: float = 1200.0) -> None:
        """Install and import first, under a time limit; then start for good."""
        env = os.environ | {f"{t}_NUM_THREADS": "1" for t in THREADS} | {"PYTHONUTF8": "1"}
        try:
            trial = subprocess.run(
                self.command, env=env, input="", capture_output=True, text=True, timeout=patience
            )
        except (subprocess.TimeoutExpired, FileNotFoundError) as error:
            self.refusal = str(error)
            return
        if trial.returncode:
            said = [line.strip() for line in trial.stderr.splitlines() if line.strip()]
            self.refusal = said[-1] if said else f"exit code {trial.returncode}"
            return
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            self.command, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        hello = json.loads(self.process.stdout.readline())
        self.version, self.contestants = hello["version"], hello["contestants"]

    def measure(self, row: Row, budget: float) -> float | str:
        """Rounds a CPU second, or what went wrong."""
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        ask = {"name": row.name, "d": row.d, "rounds": row.rounds, "chunk": row.chunk}
        try:
            print(json.dumps(ask | {"budget": budget}), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return "its process ended"
        answer = json.loads(self.process.stdout.readline() or '{"error": "its process ended"}')
        return answer.get("rate", answer.get("error"))

    def close(self) -> None:
        if self.process and self.process.stdin:
            with suppress(BrokenPipeError):  # it ended before us
                self.process.stdin.close()
            self.process.wait(10)


def workers(peers: bool) -> list[Worker]:
    python, uv = sys.executable, os.environ.get("UV", "uv")
    team = [Worker(OURS, [python, str(HERE / "ours.py")])]
    if peers:
        alone = [uv, "run", "--quiet", "--no-project", "--isolated", "--python", python]
        for name in PEERS:
            script = ["python", str(HERE / "peers.py"), name]
            team.append(Worker(name, [*alone, "--with", "numpy", "--with", name, *script]))
    return team


def lines(team: list[Worker]) -> list[Row]:
    """Every line of the table, in the order in which it is measured and printed."""
    everyone = [(worker.team, name) for worker in team for name in worker.contestants]

    def rows(kind: str, d: int, chunk: int = 50) -> Iterator[Row]:
        return (Row(who, name, d, chunk) for who, name in everyone if name.startswith(kind))

    apart = ("LinTS ridge=cv", "batch", "compiled loop")
    single = [(who, name) for who, name in everyone if not name.startswith(apart)]
    return [
        *(Row(who, name, d) for d in (10, 100) for who, name in single),
        *rows("LinTS ridge=cv", 6),
        *rows("batch", 10, BATCH),
        *rows("compiled loop", 5, BATCH),
    ]


Rates = dict[Row, list[float]]


def run(team: list[Worker], repeats: int, budget: float) -> tuple[Rates, dict[Row, str]]:
    rows, by_team = lines(team), {worker.team: worker for worker in team}
    rates: Rates = {row: [] for row in rows}
    errors: dict[Row, str] = {}
    for repeat in range(repeats):
        for row in rows:
            if row in errors:
                continue
            _say(f"{repeat + 1}/{repeats} {row.team} {row.name}")
            answer = by_team[row.team].measure(row, budget)
            if isinstance(answer, str):
                errors[row] = answer
            else:
                rates[row].append(answer)
    _say("")
    return {row: found for row, found in rates.items() if row not in errors}, errors


def ratio(rates: Rates, row: Row, other: Row | None) -> float | None:
    """Median over repeats of row / other within one repeat; None if either is absent."""
    if other is None or row not in rates or other not in rates:
        return None
    return median(a / b for a, b in zip(rates[row], rates[other], strict=True))


def fastest_peer(rates: Rates, like: Row) -> Row | None:
    """The peer with the highest median, single rounds or batches, at the same d."""
    rivals = [r for r in rates if r.team != OURS and (r.d, r.chunk) == (like.d, like.chunk)]
    return max(rivals, key=lambda r: median(rates[r]), default=None)


def table(rates: Rates, errors: dict[Row, str]) -> str:
    head = ["", "d", "per s", "min–max", "÷ yardstick", "÷ fastest peer", "÷ our LinTS"]
    body = []
    for row in [*rates, *errors]:
        single = row.chunk < BATCH
        against = [
            ratio(rates, row, Row(OURS, "yardstick", row.d) if single else None),
            ratio(rates, row, fastest_peer(rates, row)),
            ratio(rates, row, Row(OURS, "LinTS", row.d) if single else None),
        ]
        who = row.name if row.team == OURS else f"{row.team} {row.name}"
        number, span = "failed", "–"
        if row in rates:
            number = f"{median(rates[row]):,.0f}"
            span = f"{min(rates[row]):,.0f}–{max(rates[row]):,.0f}"
        body.append(
            [who, str(row.d), number, span, *("–" if a is None else _2(a) for a in against)]
        )
    return _grid([head, *body])


def targets(rates: Rates) -> str:
    """What was promised, and whether this run shows it."""
    goals: list[tuple[str, float | None, float]] = []
    for d, share in ((10, 0.10), (100, 0.35)):
        for name in ("LinTS", "LinUCB"):
            row, whole = Row(OURS, name, d), Row(OURS, "yardstick", d)
            goals.append((f"{name} ÷ yardstick, d = {d}", ratio(rates, row, whole), share))
            rival = fastest_peer(rates, row)
            title = f"{name} ÷ fastest peer, d = {d}"
            if rival:
                title += f" ({rival.team} {rival.name})"
            goals.append((title, ratio(rates, row, rival), 2.0))
        plain, blts = Row(OURS, "LinTS", d), Row(OURS, "BLTS", d)
        goals.append((f"BLTS ÷ our LinTS, d = {d}", ratio(rates, blts, plain), 0.6))
    for name, row, least in (
        ("ridge=cv steps/s, d = 6", Row(OURS, "LinTS ridge=cv", 6), 20_000),
        ("batch choice rows/s, d = 10", Row(OURS, "batch LinTS", 10, BATCH), 2_000_000),
        ("compiled loop LinTS, d = 5", Row(OURS, "compiled loop LinTS", 5, BATCH), 600_000),
        ("compiled loop BLTS, d = 5", Row(OURS, "compiled loop BLTS", 5, BATCH), 200_000),
    ):
        goals.append((name, median(rates[row]) if row in rates else None, least))
    body = [
        [
            name,
            f"≥ {_2(least)}",
            *(("–", "not measured") if got is None else (_2(got), _met(got, least))),
        ]
        for name, got, least in goals
    ]
    return _grid([["target", "wanted", "found", ""], *body])


def _met(got: float, least: float) -> str:
    return "met" if got >= least else "not met"


def _2(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _grid(cells: list[list[str]]) -> str:
    """A Markdown table whose columns line up; the first is flush left."""
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = [":" + "-" * (wide[0] - 1), *("-" * (w - 1) + ":" for w in wide[1:])]
    rows = [
        [row[0].ljust(wide[0]), *(c.rjust(w) for c, w in zip(row[1:], wide[1:], strict=True))]
        for row in cells
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], rule, *rows[1:]])


def _say(what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short measurements, 3 repeats")
    parser.add_argument("--no-peers", action="store_true", help="only the yardstick and ours")
    parser.add_argument("--repeats", type=int, help="how often everybody is measured (default 5)")
    options = parser.parse_args()
    repeats = options.repeats or (3 if options.quick else 5)
    team = workers(peers=not options.no_peers)
    try:
        for worker in team:
            _say(f"preparing {worker.team}")
            worker.open()
        rates, errors = run(team, repeats, budget=0.1 if options.quick else 0.5)
    finally:
        for worker in team:
            worker.close()
    print(f"K = 3, CPU time, one thread, {repeats} repeats\n")
    print(table(rates, errors), targets(rates), sep="\n\n", end="\n\n")
    for worker in team:
        print(worker.team, worker.version or f"is not installable here: {worker.refusal}")
    for row, error in errors.items():
        print(f"{row.team} {row.name}, d = {row.d}: {error}")


if __name__ == "__main__":
    main()
