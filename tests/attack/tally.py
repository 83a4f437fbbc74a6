"""What has been tried, by kind of bandit."""

from collections import Counter, defaultdict

TRIED: dict[str, Counter[str]] = defaultdict(Counter)


def count(kind: str, what: str, n: int = 1) -> None:
    TRIED[kind][what] += n


def report() -> str:
    """A line for each kind, a column for each thing that was tried, and the sums."""
    columns = sorted({what for tried in TRIED.values() for what in tried})
    lines = [("", *columns)]
    lines += [(kind, *(str(TRIED[kind][c]) for c in columns)) for kind in sorted(TRIED)]
    total: Counter[str] = sum(TRIED.values(), Counter())
    lines.append(("all", *(str(total[c]) for c in columns)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    )
