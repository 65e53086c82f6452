"""The documentation covers the registries and the public packages, and its commands and links work.

Pytest also runs the code on its pages and in the README as doctests.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from assay.calibrators import CALIBRATORS
from assay.cli import app
from assay.metrics import METRICS
from assay.nn.data import DATA
from assay.nn.networks import NETWORKS
from assay.nn.recipes import METHODS, SETUPS
from assay.scores import SCORES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts), ROOT / "README.md"]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """docs/generate.py, which is not part of the package."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named(text: str) -> set[str]:
    """Names that are alone in their backticks or code tags."""
    return set(re.findall(r"(?:`|<code>)@?([\w./]+)(?:`|</code>)", text))


def test_every_section_on_metrics_is_about_a_metric():
    headings = re.findall(r"^### (.+)$", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert set(headings) <= set(METRICS)


def test_every_method_in_bold_is_a_recipe():
    bold = re.findall(r"\*\*`(\w+)`\*\*", (DOCS / "methods.md").read_text())
    assert len(bold) == len(set(bold))
    assert set(bold) <= set(METHODS)


@pytest.mark.parametrize("registry", [METRICS, CALIBRATORS, SCORES, NETWORKS, DATA], ids=len)
def test_every_entry_of_a_table_says_what_it_is(registry: dict[str, object]):
    """A new entry needs no text elsewhere: the tables show its line or the first sentence of its docstring."""
    assert all(getattr(entry, "line", None) or entry.__doc__ for entry in registry.values())


def public_modules() -> set[str]:
    """Modules whose names have no underscore, except commands, tables of names, and packages of nothing else."""
    files = (ROOT / "assay").rglob("*.py")
    names = {".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for f in files}
    hidden = ("assay.cli", "assay.nn.names", "assay.__main__")
    public = {name for name in names if not re.search(r"\._", name) and not name.startswith(hidden)}
    return public - {
        "assay.nn",
        "assay.integrations",
        "assay.report",
        "assay.auditing",
        "assay.comparing",
        "assay.predictions",
    }


def test_every_public_package_has_an_api_page():
    """The names of assay.auditing, comparing and predictions are on the page of assay itself."""
    pages = list((DOCS / "api").glob("*.md"))
    found = re.findall(r"automodule:: (\S+)", "".join(page.read_text() for page in pages))
    assert sorted(found) == sorted(public_modules())
    listed = re.findall(r"^\w+$", (DOCS / "api" / "index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page.stem for page in pages if page.stem != "index")


@pytest.mark.parametrize(
    ("table", "registry"),
    [
        ("metrics", METRICS),
        ("calibrators", CALIBRATORS),
        ("recipes", METHODS),
        ("setups", SETUPS),
        ("scores", SCORES),
        ("networks", NETWORKS),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_table_has_a_row_for_every_name(generate: ModuleType, table: str, registry: dict[str, object], monkeypatch):
    monkeypatch.setattr(generate, "n_parameters", lambda factory: 0)  # tests/test_networks.py counts them
    lines = generate.TABLES[table]().splitlines()[2:]
    assert [next(iter(named(line.split("|")[1]))) for line in lines] == list(registry)


def test_the_table_of_metrics_shows_their_units(generate: ModuleType):
    assert "| ↓ | ‰ | refinement |" in row(generate.metrics(), "aurc")
    assert "| ↓ | % | calibration |" in row(generate.metrics(), "ece")


def test_defaults_in_the_tables_are_those_of_the_code(generate: ModuleType):
    assert "`n_bins=15`" in row(generate.calibrators(), "histogram")
    assert "`gamma=3`" in row(generate.recipes(), "focal")
    assert "`beta=1`" in row(generate.recipes(), "focal_sb_ece")
    assert "`rho=0.05`" in row(generate.recipes(), "fmfp")


def row(table: str, name: str) -> str:
    [found] = [line for line in table.splitlines() if named(line.split("|")[1]) == {name}]
    return found


def test_the_evidence_counts_the_published_figures(generate: ModuleType):
    """zhu2022, table 1: label smoothing has the lower AUROC on all of six networks and two data sets."""
    assert "| `label_smoothing` | zhu2022 |  | 0 of 12 |  |" in generate.evidence()
    assert "| `fmfp` | zhu2022 | 10 of 10 | 10 of 10 |  |" in generate.evidence()


def test_every_study_file_is_listed_with_its_command(generate: ModuleType):
    text = generate.studies()
    for file in (ROOT / "studies").rglob("*.toml"):
        assert f"$ assay study run {file.relative_to(ROOT).as_posix()} " in text


def commands(text: str) -> list[str]:
    """Shell commands: after a prompt in a console block, or indented as in the README."""
    return [line.strip().removeprefix("$ ") for line in text.splitlines() if re.match(r"(\$ |    )(assay|make) ", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_the_page_exist(page: Path):
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    for command in commands(page.read_text()):
        program, *words = shlex.split(command, comments=True)
        if program == "make":
            assert set(words) <= set(targets[1].split()), command
        else:
            app.parse_args(words, print_error=False, exit_on_error=False)


def test_commands_of_the_generated_pages_exist(generate: ModuleType):
    found = commands(generate.studies())
    assert found
    for command in found:
        app.parse_args(shlex.split(command)[1:], print_error=False, exit_on_error=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_on_the_page_are_there(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert "://" in target or (page.parent / target).exists(), target
    for included in re.findall(r"```\{(?:include|literalinclude)\} (\S+)", page.read_text()):
        assert "_build/tables" in included or (page.parent / included).is_file(), included


def test_included_tables_are_made(generate: ModuleType):
    text = "\n".join(page.read_text() for page in PAGES)
    assert set(re.findall(r"_build/tables/(\w+)\.md", text)) == set(generate.TABLES)


def test_pictures_are_small():
    pictures = list((DOCS / "pictures").iterdir())
    assert pictures
    assert all(picture.stat().st_size < 150_000 for picture in pictures)
