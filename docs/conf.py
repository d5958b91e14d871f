"""Sphinx configuration: guide pages in Markdown, a reference generated from the code."""

from importlib.metadata import version as installed_version

project = "OpMark"
author = "The OpMark authors"
copyright = "2026, The OpMark authors"
version = release = installed_version("opmark")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "**/_*.md"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = "OpMark"
html_theme_options = {"source_repository": "", "navigation_with_keys": True}
html_show_sourcelink = False
