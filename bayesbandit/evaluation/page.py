"""One self-contained HTML page for a run: its answer, pictures, tables and settings."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from html import escape

import pandas as pd

from bayesbandit.evaluation.text import cells

PIXEL_RATIO = 1.5  # pixels of a picture, to one of the page
PAGE_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 70rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
img { max-width: 100%; height: auto; }
@media (max-width: 40rem) { img { max-width: none; } }  /* rather scrolled than too small to read */
div { overflow-x: auto; }
.picture { display: inline-block; max-width: 100%; vertical-align: top; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #ddd; text-align: left; }
th { vertical-align: bottom; } td { min-width: 4.5rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; font-size: .8rem; }
"""


def page(
    title: str,
    answer: str,
    pictures: Mapping[str, tuple[str, bytes]],
    tables: Mapping[str, pd.DataFrame],
    record: Mapping[str, object],
) -> str:
    """Return the page as HTML.

    pictures: by name, a description of the picture and its PNG. record: settings, seeds and
    versions of the run.
    """
    shown = "\n".join(
        f'<div class="picture"><img alt="{escape(alt, quote=True)}" '
        f"width={round(int.from_bytes(png[16:20]) / PIXEL_RATIO)} "
        f'src="data:image/png;base64,{b64encode(png).decode()}"></div>'
        for alt, png in pictures.values()
    )
    listed = "\n".join(
        f"<h2>{escape(heading)}</h2>\n<div>{_table(frame)}</div>"
        for heading, frame in tables.items()
    )
    record_text = escape(json.dumps(record, indent=2, ensure_ascii=False, default=str))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{PAGE_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(answer)}</p>
{shown}
{listed}
<h2>How it was made</h2>
<details><summary>Settings, seeds and versions</summary><pre>{record_text}</pre></details>
</body>
</html>
"""


def _table(frame: pd.DataFrame) -> str:
    """Return an HTML table with the cells of `markdown`, without columns that are all NaN.

    Headings have blanks for underscores, so that they can be broken into lines.
    """
    columns = cells(frame.dropna(axis=1, how="all") if len(frame) else frame)
    columns = [(right, [head.replace("_", " "), *rest]) for right, (head, *rest) in columns]
    rows = zip(*(texts for _, texts in columns), strict=True)
    parts = []
    for place, row in enumerate(rows):
        tag = "td" if place else "th"
        inside = "".join(
            f"<{tag}{' class=number' if right else ''}>{escape(text)}</{tag}>"
            for (right, _), text in zip(columns, row, strict=True)
        )
        parts.append(f"<tr>{inside}</tr>")
    return "<table>" + "\n".join(parts) + "</table>"
