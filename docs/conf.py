"""Sphinx configuration: Markdown pages, generated tables, and the docstrings of the public names."""

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "assay"
author = "the authors of assay"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "assay"
html_static_path = ["style"]
html_css_files = ["tables.css"]
html_show_copyright = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_type_aliases = {"Floats": "Floats"}

MARKUP = re.compile(r"(`[^`]+`)|([*|\\_])")


def plain_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape markup in docstrings, which are plain text except for single backticks and doctests."""
    in_doctest = False
    for i, line in enumerate(lines):
        in_doctest = line.lstrip().startswith(">>>") or (in_doctest and bool(line.strip()))
        if not in_doctest:
            lines[i] = MARKUP.sub(lambda found: f"`{found[1]}`" if found[1] else f"\\{found[2]}", line)


def trim_doctests(app: Any, page: str, content: list[str]) -> None:
    """Hide the empty line that a doctest needs at the end of its fence."""
    content[0] = content[0].replace("\n\n```\n", "\n```\n")


def write_tables(app: Any) -> None:
    """Write the tables that pages include."""
    from generate import write

    write(HERE / "_build" / "tables")


def check_sources(app: Any, problem: Exception | None) -> None:
    """Warn about links from tables to source pages that do not exist."""
    if problem is not None or app.builder.name != "html":
        return
    from sphinx.util.logging import getLogger

    for table in (HERE / "_build" / "tables").glob("*.md"):
        for page in sorted(set(re.findall(r'href="(_modules/[^"]+)"', table.read_text()))):
            if not (Path(app.outdir) / page).is_file():
                getLogger("assay").warning("%s links to %s, which is in no API page", table.name, page)


def setup(app: Any) -> None:
    app.connect("builder-inited", write_tables)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("source-read", trim_doctests)
    app.connect("build-finished", check_sources)
