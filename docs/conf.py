"""The site that `make docs` builds: the pages of this folder and the programs of the gallery. It needs no network."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import kiln

project = "Kiln"
copyright = "2026 The Kiln authors"  # as in LICENSE
version = release = kiln.__version__

extensions = ["myst_parser", "site_parts"]
source_suffix = {".md": "markdown"}


myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "Kiln"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["tables.js"]
# Summaries are fetched, which a browser refuses for a site that is opened from a folder.
html_show_search_summary = False
html_show_sourcelink = False
html_copy_source = False
