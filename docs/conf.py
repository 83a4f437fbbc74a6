"""The site: `uv run --group docs sphinx-build -W --keep-going docs runs/site`."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = author = "bayesbandit"
version = release = version_of("bayesbandit")
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "myst_nb",
    "sphinx_copybutton",
    "commands",
    "docstrings",
    "examples",
    "formulas",
    "studies",
]
templates_path, html_static_path, html_css_files = ["templates"], ["static"], ["site.css"]
exclude_patterns = ["extensions", "templates"]

# ---- what is written -----------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks come with their outputs, at full size: notebooks/render.py
nb_mime_priority_overrides = [("html", "text/html", 0)]
smartquotes = False  # --option is an option
highlight_language = "none"  # what has no language is output
copybutton_selector = "div.highlight-python pre, div.highlight-ipython3 pre, div.highlight-bash pre"
doctest_global_setup = "import numpy as np\nimport bayesbandit as bb"
doctest_test_doctest_blocks = ""  # only what is marked as one

# ---- the reference -------------------------------------------------------------------------------

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give shapes, and names say the rest
autodoc_preserve_defaults = False  # a preset has more settings than its source line
nitpicky = True

# ---- how it looks --------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "bayesbandit"
html_show_sourcelink = html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": True,
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {
    "index": [],
    "quickstart": [],
    "which": [],
    "mathematics": [],
    "changelog": [],
    "extending": [],
}
