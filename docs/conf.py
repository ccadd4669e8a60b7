"""The site that ``make docs`` builds from this folder, from docstrings of the installed package, and from the programs
of the gallery. It needs no network."""

from __future__ import annotations

project = "Kiln"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
