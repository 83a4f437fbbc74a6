"""Draw which.svg, the chart of which.md: python docs/which_chart.py"""

from html import escape
from pathlib import Path

WIDTH, LEFT, LINE, PAD, GAP = 440, 64, 21, 12, 30
STEPS = [  # a question, and which bandit to take if the answer is yes
    (["Are there no contexts: is nothing known", "before an arm is chosen?"],
     ["beta_bernoulli or gamma_poisson,", "or LinTS with n_features=0"]),
    (["Do you know a model of the rewards, such as", "probabilities, counts, ratings or sales?"],
     ["Bandit with your model in PyMC:", "logistic, poisson, ordinal, revenue, …"]),
    (["Do the arms have features, and are there", "many arms, or do arms come and go?"],
     ["Bandit with Shared(Ridge()):", "one model for all arms"]),
    (["Are rewards far from linear, even with", "squares, splines and interactions?"],
     ["ForestTS", "PolicyTreeTS, if people must read the rule"]),
    (["Will you read estimates from the log,", "and may the linear model be wrong?"],
     ["BLTS with normalize=True,", "or LinTS with ResidualBalance"]),
]  # fmt: skip
LAST = ["LinTS or LinUCB", "compare several α and λ on your data"]
ALWAYS = ["If you will analyse the log later:", "set min_probability=0.02, with any bandit"]
QUESTION, ANSWER, ASIDE = ("#e8f0fa", "#0072b2"), ("#eaf5ee", "#00805f"), ("#fff4e5", "#a65200")


def box(y, lines, colours, left, bold=False):
    """Return the SVG of a box of lines at height y, and the height below the box."""
    fill, edge = colours
    height = len(lines) * LINE + 2 * PAD
    parts = [
        f'<rect x="{left}" y="{y}" width="{WIDTH - left - 2}" height="{height}" rx="8" '
        f'fill="{fill}" stroke="{edge}" stroke-width="1.5"/>'
    ]
    for i, line in enumerate(lines):
        heavy = ' font-weight="600"' if bold and i == 0 else ""
        at = y + PAD + LINE * (i + 0.75)
        parts.append(f'<text x="{left + PAD + 2}" y="{at:g}"{heavy}>{escape(line)}</text>')
    return parts, y + height


def arrow(x0, y0, x1, y1, said, at):
    """Return a line down, then right to x1 if x1 differs from x0, with a word beside it."""
    turn = f"V{y1}" if x0 == x1 else f"V{y1} H{x1}"
    word = f'<text x="{at[0]}" y="{at[1]}" fill="#333" font-size="14" font-style="italic">'
    line = f'<path d="M{x0} {y0} {turn}" fill="none" stroke="#555" stroke-width="1.5"'
    return [f'{line} marker-end="url(#tip)"/>', f"{word}{said}</text>"]


def chart():
    """Return the SVG of the whole chart."""
    parts, y = [], 2
    for question, answer in STEPS:
        drawn, below = box(y, question, QUESTION, 2)
        parts += drawn
        drawn, end = box(below + 24, answer, ANSWER, LEFT, bold=True)
        middle = (below + 24 + end) // 2
        parts += drawn + arrow(40, below, LEFT - 2, middle, "yes", (47, below + 17))
        y = end + GAP
        parts += arrow(16, below, 16, y - 2, "no", (23, y - 10))
    drawn, y = box(y, LAST, ANSWER, 2, bold=True)
    parts += drawn
    drawn, y = box(y + 16, ALWAYS, ASIDE, 2)
    parts += drawn
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 2}" '
        f'viewBox="0 0 {WIDTH} {y + 2}" role="img" '
        'font-family="system-ui, sans-serif" font-size="16" fill="#111">',
        "<title>Which bandit?</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
        *parts,
        "</svg>\n",
    ])  # fmt: skip


if __name__ == "__main__":
    Path(__file__).with_name("which.svg").write_text(chart(), encoding="utf-8")
