"""How Sphinx makes the documentation: ``make docs``. Nothing is fetched from a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole
from sphinx.environment import BuildEnvironment

import rekernel

project = "rekernel"
version = release = rekernel.__version__
project_copyright = "the authors of rekernel; MIT license"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"rekernel {version}"
html_static_path = ["_static"]
html_css_files = ["rekernel.css"]
html_js_files = ["copy.js"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
autoclass_content = "both"
python_maximum_signature_line_length = 88
default_role = "name"
nitpicky = True


def to_our_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Element) -> Any:
    """Link a class that a docstring or an annotation names, else show the name as it is.

    Annotations name a class by the file that it lives in, or by its bare name; the reference has it under another.
    What is not ours, such as NumPy's, has no page here. What a page refers to is left to Sphinx: it has to exist.
    """
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    found = [full for full in env.domains["py"].objects if full.endswith(f".{name}")] if name[:1].isupper() else []
    if len(found) == 1:
        return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, shown)
    return shown if node["refdoc"].startswith("reference/") else None


def setup(app: Sphinx) -> None:
    """Add the role of single backticks in docstrings, and the way from a name to its page."""
    app.add_role("name", PyXRefRole(), override=True)
    app.add_role_to_domain("py", "name", PyXRefRole(), override=True)
    app.connect("missing-reference", to_our_name)
