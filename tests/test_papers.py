"""Every table and figure of the papers has a study or a command that makes it: all of them, at toy size."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay._core.variants import parse_variant
from assay.cli.report import Tabulation, report_command
from assay.cli.study import Where, run_command, tune_command
from assay.nn.data import Cut, Splits, load
from assay.nn.names import SECONDARIES
from assay.report.drawing import _study
from assay.report.drawing._results import Drawn, Results
from assay.study import Study, _execute, execute, expand, read_study

ROOT = Path(__file__).parents[1]
STUDIES = {file.stem: file for file in sorted((ROOT / "studies").glob("*.toml"))}
LINE = re.compile(r"\| (\w+) (table|figure) (\w+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|")
PAGE = (ROOT / "docs" / "papers.md").read_text().splitlines()
LINES = [match.groups() for match in map(LINE.fullmatch, PAGE) if match]
PAPERS = [name for name in STUDIES if name != "quickstart"]
OF_PAPERS = {  # tables and figures that the papers have, those of an appendix that is not at hand by letters
    "zhu2022": (5, 16),
    "singh2021": (4, 2),
    "wang2021": (2, 6),
    "karandikar2021": (2, 10),
    "mukhoti2020": (14, 4),
}
SAMPLE = ("zhu2022_figure8",)


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


def test_every_table_and_figure_of_the_papers_has_a_line():
    found = {(paper, kind, number) for paper, kind, number, *_ in LINES}
    for paper, (tables, figures) in OF_PAPERS.items():
        wanted = {(paper, "table", str(n + 1)) for n in range(tables)}
        wanted |= {(paper, "figure", str(n + 1)) for n in range(figures)}
        assert wanted <= found


def test_a_line_names_studies_that_exist_and_every_study_of_a_paper_has_a_line():
    named = {name for *_, study, _, _ in LINES for name in names(study) if not name.startswith("python")}
    assert named <= set(STUDIES)
    assert set(PAPERS) == named


@pytest.mark.parametrize("name", PAPERS)
def test_a_study_claims_only_what_its_lines_have(name: str):
    """The figures and tables in brackets of its question."""
    question = read_study(STUDIES[name]).question.replace("20 Newsgroups", "").replace("ImageNet-v2", "")
    for paper, claimed in re.findall(r"\((\w+20\d\d), ([^)]*)\)", question):
        for kind, numbers in re.findall(r"(table|figure)s? (.*?)(?=table|figure|$)", claimed):
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", numbers):
                for number in range(int(first), int(last or first) + 1):
                    wanted = (paper, kind, str(number))
                    lines = [each for each in LINES if (*each[:2], each[2].rstrip("abcd")) == wanted]
                    assert any(name in names(study) for *_, study, _, _ in lines), f"{paper} {kind} {number}"


SHIFTS = {shift for file in STUDIES.values() for shift in read_study(file).shifts}
TEXTS = ("newsgroups", "newsgroups_random", "sst2")


@pytest.fixture(scope="module")
def text_sets(tmp_path_factory) -> Path:
    """A few posts and trees in the formats of their data sets."""
    folder = tmp_path_factory.mktemp("texts")
    rng = random.Random(0)
    words = [f"word{i}" for i in range(30)]
    (folder / "glove").mkdir()
    for width in (100, 300):
        lines = [f"{word} {' '.join(f'{rng.gauss(0, 1):.2f}' for _ in range(width))}" for word in words]
        (folder / "glove" / f"glove.6B.{width}d.txt").write_text("\n".join(lines) + "\n")
    (folder / "sst").mkdir()
    for split, n in (("train", 60), ("dev", 30), ("test", 30)):
        leaves = [f"({rng.randrange(5)} {rng.choice(words)})" for _ in range(2 * n)]
        trees = [f"({rng.choice('0134')} {left} {right})" for left, right in zip(leaves[:n], leaves[n:], strict=True)]
        (folder / "sst" / f"{split}.txt").write_text("\n".join(trees) + "\n")
    (folder / "20newsgroups").mkdir()
    for split, n in (("train", 80), ("test", 40)):
        labels = [i % 3 for i in range(n)]
        texts = [" ".join(rng.choices(words, k=20)) for _ in range(n)]
        table = pa.table({"text": texts, "label": labels, "label_text": [f"group{k}" for k in labels]})
        pq.write_table(table, folder / "20newsgroups" / f"{split}-00000-of-00001.parquet")
    return folder


def toy(study: Study) -> Study:
    """The study with other data, networks and sizes, and few of the values that a recipe has."""
    text = study.data[0] in TEXTS
    data = study.data[:1] if text else ["digits"]
    network = "tree_lstm,width=4" if "sst2" in study.data else study.networks[0] if text else "mlp,width=16"
    held_out = 0 if study.held_out == 0 else 20
    values: dict[tuple[str, str | None], list[str]] = {}
    for method in study.methods:
        values.setdefault((method.name, method.setup), []).append(str(method))
    some = [name for each in values.values() for name in each[:2]]
    chosen = [{**entry, "data": data[0]} for entry in study.chosen if entry.get("data", study.data[0]) == study.data[0]]
    at = {"gradient_norms_at": (0, 1), "reliability_at": (0, 1)}
    record = {key: value for key, value in at.items() if getattr(study.record, key)}
    short = {"score": "confidnet", "epochs": 1, "fine_tuning": 1}
    scores = [short if score.name == "confidnet" else str(score) for score in study.scores_in_full]
    coarse = [{**c, "step": 0.5} if isinstance(c, dict) and "metric" in c else c for c in study.calibrators]
    return Study(
        **study.model_dump(exclude_unset=True)
        | {
            "data": data,
            "networks": [network],
            "recipes": some,
            "baseline": study.baseline if study.baseline in some else "",
            "chosen": chosen,
            "seeds": study.seeds[:2],
            "epochs": 2,
            "batch_size": 16,
            "n_train": [40, 30][: len(study.n_train)],
            "held_out": held_out,
            "held_out_sizes": [10, 20] if len(study.held_out_sizes) > 1 else [None],
            "scores": scores,
            "calibrators": coarse,
            "shifts": study.shifts[:: max(len(study.shifts) // 6, 1)] if study.shifts else [],
            "record": {**study.model_dump()["record"], **record},
            "stands_for": {},
        }
    )  # fmt: skip


def small(name: str, cut: Cut) -> Splits:
    """A data set with as many test samples as a toy needs; every shift is the test set itself."""
    splits = load(name, cut=cut)
    test = splits.test.first(60)
    return Splits(splits.train, splits.held_out, test, dict.fromkeys(SHIFTS, lambda: test))


def make(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a study at toy size, report it in every form, and return the names of its figures."""
    monkeypatch.setattr(_execute, "_data", small)
    study = toy(read_study(STUDIES[name]))
    for run in expand(study):
        execute(study, run, folder / "runs")
    to, html, figures = (folder / name for name in ("tables.md", "page.html", "figures"))
    how = Tabulation(published=bool(study.published))
    monkeypatch.setattr("assay.cli.report.read_study", lambda file: study)
    monkeypatch.setattr(_study, "DRAWINGS", tuple(partial(with_one_rendered, draw) for draw in _study.DRAWINGS))
    report_command(STUDIES[name], out=folder / "runs", to=to, html=html, figures=figures, how=how)
    assert all(str(method) in to.read_text() for method in study.methods)
    return [file.name for file in figures.iterdir()]


def with_one_rendered(draw: Callable[[Results], Drawn], results: Results) -> Drawn:
    """All figures; matplotlib, which takes most of the time, renders the first of each name, without a layout."""
    rendered = set()
    for name, figure in draw(results):
        figure.set_layout_engine("none")
        kind = name.split(f" {results.study.data[0]}")[0]
        yield name, SimpleNamespace(savefig=lambda *_, **__: None) if kind in rendered else figure
        rendered.add(kind)


def claimed(name: str) -> list[str]:
    """How the names of the figures begin that a study makes."""
    return [each for *_, study, makes, _ in LINES if name in names(study) for each in names(makes)]


@pytest.mark.filterwarnings("ignore:no finite temperature")  # a toy may answer worse than chance
@pytest.mark.parametrize(
    "name", [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.long) for name in PAPERS]
)
def test_a_study_makes_its_tables_and_figures(name: str, tmp_path, monkeypatch, text_sets):
    monkeypatch.setenv("ASSAY_DATA", str(text_sets))
    found = make(name, tmp_path, monkeypatch)
    missing = [start for start in claimed(name) if not any(each.startswith(start) for each in found)]
    assert not missing, f"{missing} not among {sorted(found)}"


TUNED = """
extends = "{base}"
name = "toy"
data = ["digits", "synthetic"]
networks = ["mlp,width=16"]
seeds = [0, 1]
epochs = 1
batch_size = 32
n_train = [60]
held_out = 40
[tune]
kappa = {{ "*s_avuc" = [0.3], "*avuc*" = [1.0] }}
temperature = [0.01]
beta = [0.1]
weight_decay = [1e-4, 1e-2]
"""


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:no finite temperature")
def test_karandikar2021_is_tuned_run_and_reported_on_two_data_sets(tmp_path):
    """By the commands; its fig 1 has every secondary loss, whatever values were chosen for the data and the primary."""
    file, tuned, runs = tmp_path / "toy.toml", tmp_path / "tuned.toml", tmp_path / "runs"
    file.write_text(TUNED.format(base=STUDIES["karandikar2021_table2"]))
    where = Where(out=runs, workers=2, threads=1)
    assert tune_command(file, to=tuned, where=where, metric="ece_l2_mass") == 0
    study = read_study(tuned)
    chosen = {(entry["data"], entry["recipe"]) for entry in study.chosen if "weight_decay" in entry}
    assert len(chosen) == 2 * 18
    assert run_command(tuned, where=where) == 0
    tables, page, figures = tmp_path / "x.tex", tmp_path / "x.html", tmp_path / "figures"
    report_command(tuned, out=runs, to=tables, html=page, figures=figures, how=Tabulation(published=True))
    assert tables.read_text().count(r"\begin{tabular}{ll") == 2
    assert page.stat().st_size > 10**6
    pooled = (figures / "effects-of-secondary-losses-on-ece_l2_mass.svg").read_text()
    assert {name for name in SECONDARIES if f"<!-- {name} -->" in pooled} == set(SECONDARIES)


def test_what_needs_no_training_is_drawn_by_an_example(tmp_path, monkeypatch):
    import runpy
    import sys

    monkeypatch.setattr(sys, "argv", ["loss_figures.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "loss_figures.py"), run_name="__main__")
    wanted = [each for *_, command, makes, _ in LINES if "loss_figures" in command for each in names(makes)]
    assert {file.stem for file in tmp_path.iterdir()} == set(wanted)


def test_strengths_of_wang2021_are_those_it_chose():
    """SVHN, CIFAR-10, CIFAR-100, 20 Newsgroups: as its table 1 underlines them."""
    study, text = read_study(STUDIES["wang2021_table1"]), read_study(STUDIES["wang2021_table1_newsgroups"])
    own = {"label_smoothing": 0.05, "l1": 0.01, "focal": 3.0}
    found = {name: [] for name in own}
    for each, data, network in [*((study, d, "resnet32") for d in study.data), (text, "newsgroups", "text_cnn8")]:
        for name in own:
            values = each.at(data, network, parse_variant(f"{name}@wang2021")).values
            found[name].append(next(iter(values.values()), own[name]))
    assert found == {"label_smoothing": [0.01, 0.05, 0.09, 0.09], "l1": [0.01, 0.05, 0.01, 0.01], "focal": [1, 3, 5, 5]}
