"""Settings of the documentation. `make docs` builds it; a warning is an error."""

from importlib.metadata import version as installed_version

project = "labelfree"
author = "the labelfree developers"
copyright = "2026, the labelfree developers"
release = installed_version("labelfree")
version = release

# No intersphinx: the documentation builds without a network.
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Curly quotes, but no dashes made of "--": options are spelled so.
smartquotes_action = "qe"

# Docstrings state types and shapes in words, so signatures stay short.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# autodoc lists the members; a second list by numpydoc would repeat them.
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"labelfree {release}"
html_copy_source = False
