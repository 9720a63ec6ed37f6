"""Settings of the documentation site: `make docs` builds it into build/docs."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "A2LS"
author = "the authors of A2LS"
copyright = "the authors of A2LS, MIT licence"  # noqa: A001 (the name that Sphinx reads)
version = release = version_of("a2ls")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "command_reference",
    "plain_docstrings",
]
exclude_patterns = ["results/*/**"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4

smartquotes = False  # Two hyphens are those of an option.

# Docstrings write `names` as Markdown does.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "A2LS"
html_static_path = ["_static"]
html_css_files = ["site.css"]
copybutton_exclude = ".linenos, .gp, .go"
