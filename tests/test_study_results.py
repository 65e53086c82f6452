"""What a study's rows say: statistics over seeds, tables with their marks, papers' figures beside ours."""

from __future__ import annotations

import csv
from io import StringIO
from itertools import product
from math import nan
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from rich.table import Table as Grid
from scipy import stats

from assay import published
from assay.report.page._verdict import best
from assay.report.tables import as_csv, grids, latex, legend, markdown, rank_grids
from assay.study import (
    SeedSummary,
    Study,
    cohens_d,
    holm_corrected,
    mean_ranks,
    paired,
    parse_variant,
    published_beside,
    ranks,
    read_study,
    row_table,
    tabulate,
    welch,
    within_sem,
)
from assay.study._rows import method_columns, variant_columns

STUDIES = Path(__file__).parents[1] / "studies"
A, B = SeedSummary((1.0, 2.0, 4.0)), SeedSummary((2.0, 2.5, 5.5))


def test_statistics_match_scipy():
    assert A.sd == pytest.approx(np.std(A.values, ddof=1))
    assert A.sem == pytest.approx(stats.sem(A.values))
    assert welch(A, B) == pytest.approx(stats.ttest_ind(A.values, B.values, equal_var=False).pvalue)
    assert paired(A, B) == pytest.approx(stats.ttest_rel(A.values, B.values).pvalue)
    assert cohens_d(A, B) == pytest.approx((A.mean - B.mean) / np.sqrt((A.sd**2 + B.sd**2) / 2))
    assert ranks(np.array([0.1, 0.3, 0.1]), higher_is_better=False).tolist() == [1.5, 3, 1.5]


@pytest.mark.parametrize("higher", [True, False])
def test_ranks_match_scipy_with_ties_and_undefined_values(higher):
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.integers(0, 6, 8).astype(float)
        values[rng.random(8) < 0.2] = np.nan
        expected = stats.rankdata(-values if higher else values, nan_policy="omit")
        assert np.array_equal(ranks(values, higher_is_better=higher), expected, equal_nan=True)


def test_pairs_are_those_of_a_seed():
    a, b = SeedSummary((1.0, 2.0, 4.0), (0, 1, 2)), SeedSummary((5.5, 2.0, 9.0), (2, 0, 7))
    assert paired(a, b) == pytest.approx(stats.ttest_rel([1.0, 4.0], [2.0, 5.5]).pvalue)
    assert np.isnan(paired(a, SeedSummary((1.0,), (0,))))


def test_mean_ranks_over_tables():
    def one(network: str, ece: dict[str, float]) -> pa.Table:
        made = rows({(method, "none", "ece"): [value] for method, value in ece.items()})
        return made.set_column(1, "network", pa.array([network] * len(made)))

    both = pa.concat_tables([one("a", {"x": 0.1, "y": 0.2, "z": 0.3}), one("b", {"x": 0.3, "y": 0.2, "z": 0.4})])
    found = mean_ranks(tabulate(both, baseline="x", metrics=["ece"]))
    assert {method: place["ece"] for (method, _), place in found.items()} == {"x": 1.5, "y": 1.5, "z": 3.0}


def test_a_bound_fitted_on_test_is_never_the_best():
    values = {("m", "none", "ece"): [0.2], ("m", "temperature_optimal_on_test,metric=ece", "ece"): [0.1]}
    [table] = tabulate(rows(values), baseline="m", metrics=["ece"])
    assert [line.cells["ece"].best for line in table.lines] == [True, False]


def test_single_values_have_no_test():
    assert np.isnan(welch(SeedSummary((1.0,)), A))
    assert np.isnan(SeedSummary((1.0,)).sd)
    assert welch(SeedSummary((1.0, 1.0)), SeedSummary((1.0, 1.0))) == 1
    assert paired(SeedSummary((1.0, 1.0)), SeedSummary((2.0, 2.0))) == 0


def test_the_error_within_conditions_ignores_what_conditions_differ_by():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 4))
    shifted = values + np.array([0, 10, 20, 30]) + rng.normal(size=(5, 1)) * 100
    assert within_sem(values) == pytest.approx(within_sem(shifted))
    # The mean square of the interaction, by the two-way table.
    residual = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    assert within_sem(values) == pytest.approx(np.sqrt((residual**2).sum() / 12 / 5))


def rows(values: dict[tuple[str, str, str], list[float]], score: str = "max_probability") -> pa.Table:
    records = [
        {
            "data": "d", "network": "n", "seed": seed, "split": "test", "held_out": 10,
            **method_columns(parse_variant(method)), **variant_columns("calibrator", parse_variant(calibrator)),
            **variant_columns("score", parse_variant(score)),
            "metric": metric, "value": value,
        }
        for (method, calibrator, metric), found in values.items()
        for seed, value in enumerate(found)
    ]  # fmt: skip
    return row_table(records)


EXAMPLE = rows(
    {
        ("base", "none", "ece"): [0.10, 0.11, 0.12],
        ("base", "none", "auroc"): [0.90, 0.91, 0.92],
        ("smooth_one", "none", "ece"): [0.01, 0.02, 0.03],
        ("smooth_one", "none", "auroc"): [0.70, 0.71, 0.72],
    }
)


def test_a_table_marks_what_is_better_and_worse():
    [table] = tabulate(EXAMPLE, baseline="base", metrics=["ece", "auroc"])
    base, smooth = table.lines
    assert (base.cells["ece"].word, base.cells["auroc"].best) == ("", True)
    assert (smooth.cells["ece"].word, smooth.cells["auroc"].word) == ("better", "worse")
    assert smooth.cells["ece"].best
    assert smooth.cells["ece"].p_value == pytest.approx(
        stats.ttest_ind([0.01, 0.02, 0.03], [0.10, 0.11, 0.12], equal_var=False).pvalue
    )
    assert base.cells["ece"].p_value == pytest.approx(nan, nan_ok=True)


def test_tables_are_written_in_three_forms(tmp_path):
    [table] = tabulate(EXAMPLE, baseline="base", metrics=["ece", "auroc"])
    assert "| smooth_one | none | **2.00±1.00** ▲ | 71.00±1.00 ▼ |" in markdown(table)
    assert r"smooth\_one & none & \textbf{2.00$\pm$1.00} $\blacktriangle$" in latex(table)
    assert "d,n,test,smooth_one,none,ece,0.02,0.01" in as_csv([table]).replace("0.019999999999999997", "0.02")


def test_names_in_tables_are_neither_commands_nor_formulas():
    """A study file may hold any text as a value."""
    name = "x\n\\input{/etc/passwd}"
    named = EXAMPLE.set_column(EXAMPLE.column_names.index("data"), "data", pa.array([name] * len(EXAMPLE)))
    methods = [f"=1+1,{name}" if method == "smooth_one" else method for method in EXAMPLE["method"].to_pylist()]
    named = named.set_column(named.column_names.index("method"), "method", pa.array(methods))
    [table] = tabulate(named, baseline="base", metrics=["ece", "auroc"])
    lines = latex(table).splitlines()
    assert not any(r"\input{" in line for line in lines if not line.startswith("%"))
    assert all(line.startswith(("%", "\\", "method", "base", "=1+1")) for line in lines)
    cells = [cell for line in csv.reader(StringIO(as_csv([table]))) for cell in line]
    assert f"'=1+1,{name}" in cells
    assert not any(cell.startswith(("=", "+", "@")) for cell in cells)


def test_a_table_is_a_data_frame_and_shows_itself_in_a_notebook():
    [table] = tabulate(EXAMPLE, baseline="base", metrics=["ece", "auroc"])
    frame = table.to_frame("polars")
    assert table.keys() == ["ece", "auroc"]
    assert list(frame["against_baseline"]) == ["", "", "better", "worse"]
    assert list(frame["mean"]) == pytest.approx([0.11, 0.91, 0.02, 0.71])
    html = table._repr_html_()
    assert "compared with base" in html
    assert "0.02 ± 0.01 better" in html
    assert "#" not in html  # no color of its own, so that dark pages can be read


def test_latex_has_no_sign_that_needs_a_package():
    [table] = tabulate(rows({("base", "none", "aurc"): [0.01]}), baseline="base", metrics=["aurc"])
    assert r"aurc $\times 10^3$ $\downarrow$" in latex(table)
    body = [line for line in latex(table).splitlines() if not line.startswith("%")]
    assert "\n".join(body).isascii()


def test_holm_is_as_in_statsmodels():
    # multipletests([.01, .02, .03, .2], method="holm"), and with what was not tested left alone
    assert holm_corrected([0.01, 0.02, 0.03, 0.2]) == pytest.approx([0.04, 0.06, 0.06, 0.2])
    assert holm_corrected([nan, 0.04, 0.5]) == pytest.approx([nan, 0.08, 0.5], nan_ok=True)
    assert holm_corrected([0.9, 0.8]) == [1.0, 1.0]


def test_corrected_tests_count_those_of_a_metric():
    values = {("base", "none", "ece"): [0.10, 0.11, 0.12]}
    values |= {(f"m{i}", "none", "ece"): [0.1 + i / 100, 0.12 + i / 100, 0.13 + i / 100] for i in range(1, 5)}
    [plain], [strict] = (tabulate(rows(values), baseline="base", metrics=["ece"], corrected=c) for c in (False, True))
    before = [line.cells["ece"].p_value for line in plain.lines]
    assert [line.cells["ece"].p_value for line in strict.lines] == pytest.approx(holm_corrected(before), nan_ok=True)


def test_bold_is_the_best_or_what_is_significantly_worse():
    [table] = tabulate(EXAMPLE, baseline="base", metrics=["ece", "auroc"])
    assert "| smooth_one | none | 2.00±1.00 ▲ | **71.00±1.00** ▼ |" in markdown(table, "worse")


def beside(**changes: object):
    study = {
        "name": "s", "data": ["cifar10"], "networks": ["resnet8"], "recipes": ["crl@singh2021"], "seeds": [0],
        "published": ["zhu2022/2"], "stands_for": {"resnet8": "preact_resnet110"},
    }  # fmt: skip
    return published_beside(Study(**{**study, **changes}))


POINT = {"data": "cifar10", "network": "resnet8", "split": "test"}


def test_a_published_figure_is_found_by_what_our_names_stand_for():
    figure = beside()(POINT, "crl@singh2021", "none", "max_probability", "aurc")
    [same] = [
        f for f in published.load("zhu2022")
        if (f.table, f.data, f.network, f.method, f.metric) == ("2", "cifar10", "preact_resnet110", "crl", "aurc")
    ]  # fmt: skip
    assert figure == same
    assert beside(stands_for={})(POINT, "crl@singh2021", "none", "max_probability", "aurc") is None
    assert beside()(POINT | {"split": "fog_1"}, "crl@singh2021", "none", "max_probability", "aurc") is None


def test_of_several_settings_the_published_one_is_that_of_the_run():
    l1 = {"recipe": "l1@wang2021", "alpha": [0.05, 0.5]}
    recipes = ["l1@wang2021", l1, "focal@wang2021"]
    names = {"stands_for": {"resnet8": "resnet32"}, "calibrators": ["histogram"], "recipes": recipes}
    find = beside(published=["wang2021/2"], **names)
    assert find(POINT, "l1@wang2021,alpha=0.05", "histogram", "max_probability", "ece").method == "l1(alpha=0.05)"
    assert find(POINT, "l1@wang2021", "histogram", "max_probability", "ece") is None  # ours is weaker
    assert find(POINT, "l1@wang2021,alpha=0.5", "histogram", "max_probability", "ece") is None
    assert find(POINT, "focal@wang2021", "histogram", "max_probability", "ece").method == "focal"


def test_every_published_figure_belongs_beside_a_number_of_some_study():
    def where_it_stands(f: published.Figure) -> tuple[str, ...]:  # some figures are printed in two tables
        return f.data, f.network, f.method, f.calibrator, f.score, f.shift, f.metric

    found = set()
    for study in map(read_study, STUDIES.glob("*.toml")):
        find = published_beside(study)
        axes = (
            study.data,
            map(str, study.networks_in_full),
            study.scores_in_full,
            ["test", "cifar10_c", *study.shifts],
        )
        for data, network, score, split in product(*axes) if study.published else ():
            point = {"data": data, "network": network, "split": split}
            names = product(map(str, study.methods), map(str, study.corrections), [str(score)], study.metrics)
            found |= {find(point, *each) for each in names}
    there = {where_it_stands(figure) for figure in found if figure is not None}
    assert {where_it_stands(figure) for figure in published.load()} == there


def test_a_table_shows_the_papers_figure_and_the_difference():
    figure = beside()(POINT, "crl@singh2021", "none", "max_probability", "ece")
    [table] = tabulate(EXAMPLE, baseline="base", metrics=["ece"], beside=lambda *names: figure)
    ours, paper = table.lines[1].cells["ece"].summary.mean, figure.mean
    assert table.lines[1].cells["ece"].difference == pytest.approx(ours - paper)
    shown = f"{100 * paper:.2f} ({100 * (ours - paper):+.2f})"
    assert shown in markdown(table)
    assert shown in latex(table)
    assert f"{paper},{figure.sd},{ours - paper},zhu2022,2" in as_csv([table])


def test_a_table_may_show_the_standard_error_of_the_mean():
    [table] = tabulate(EXAMPLE, baseline="base", metrics=["ece"], error="sem")
    summary = table.lines[0].cells["ece"].summary
    assert f"{100 * summary.mean:.2f}±{100 * summary.sd / summary.n**0.5:.2f}" in markdown(table)
    assert "mean ± sem over seeds" in markdown(table)


def printed(*shown: Grid, width: int) -> str:
    console = Console(width=width, record=True, file=StringIO())
    console.print(*shown)
    return console.export_text()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_terminal_shows_every_name_and_number_whatever_its_width(width: int):
    metrics = [
        "accuracy",
        "ece",
        "auroc",
        "aurc",
        "e_aurc",
        "aupr_success",
        "fpr95",
        "nll_calibration",
        "classwise_ece",
    ]
    cells = {
        (method, calibrator, metric): [0.123, 0.456]
        for method in ("cross_entropy", "label_smoothing")
        for calibrator in ("none", "temperature_sb_ece_lb")
        for metric in metrics
    }
    [table] = tabulate(rows(cells), baseline="cross_entropy", metrics=metrics)
    parts = grids(table, width=width)
    shown = printed(*parts, width=width)
    assert "…" not in shown
    assert shown.count("label_smoothing") == shown.count("cross_entropy") == len(parts)
    assert all(shown.count(metric) >= 1 for metric in metrics)
    assert all(word in shown for word in ("  temperature_sb_ece_lb", "28.95", "289.50", "±23.55"))
    assert (len(parts) == 1) == (width == 200)
    ranked = printed(*rank_grids([table, table], width=width), width=width)
    assert "…" not in ranked
    assert all(ranked.count(metric) >= 1 for metric in metrics)


def test_a_cell_of_fewer_seeds_says_so():
    cells = {("a", "none", "ece"): [0.1, 0.2, 0.3], ("b", "none", "ece"): [0.1, 0.2]}
    [table] = tabulate(rows(cells), baseline="a", metrics=["ece"])
    assert markdown(table).count("(n=2)") == latex(table).count("(n=2)") == 1
    assert printed(*grids(table), width=80).count("n=2") == 1


def test_the_legend_names_the_test():
    [table] = tabulate(EXAMPLE, baseline="base", metrics=["ece"])
    assert "Welch's t-test, p < 0.05)" in legend(table)
    [table] = tabulate(EXAMPLE, baseline="base", metrics=["ece"], test=paired, level=0.01, corrected=True)
    assert "t-test paired by seed, p < 0.01 by Holm" in legend(table)
    assert legend(table) in latex(table)


def test_all_that_equal_the_best_are_best_but_a_bound_is_not():
    cells = {
        ("a", "none", "accuracy"): [0.8, 0.7],
        ("a", "temperature", "accuracy"): [0.8, 0.7],
        ("b", "none", "accuracy"): [0.7, 0.7],
        ("b", "temperature_optimal_on_test,step=0.1", "accuracy"): [0.9, 0.9],
    }
    found = tabulate(rows(cells), baseline="a", metrics=["accuracy"])
    assert [line.cells["accuracy"].best for line in found[0].lines] == [True, True, False, False]
    ranked = mean_ranks(found)
    assert {pair: place["accuracy"] for pair, place in ranked.items()} == {
        ("a", "none"): 1.5,
        ("a", "temperature"): 1.5,
        ("b", "none"): 3.0,
    }
    assert best(found[0], found[0].lines, "accuracy").name == "a"


def test_what_is_undefined_leaves_the_ranks_of_the_others():
    found = ranks(np.array([0.9, np.nan, 0.8]), higher_is_better=True)
    assert found[[0, 2]].tolist() == [1, 2]
    assert np.isnan(found[1])


def test_the_verdict_is_by_the_test_of_the_table():
    cells = {("a", "none", "ece"): [0.10, 0.20, 0.30], ("b", "none", "ece"): [0.11, 0.21, 0.311]}
    for test, word in ((welch, "not clearly ahead"), (paired, "clearly ahead")):
        [table] = tabulate(rows(cells), baseline="a", metrics=["ece"], test=test)
        assert best(table, table.lines, "ece").lead == word


def test_scores_are_in_one_table_with_tests_between_them():
    """As in singh2021's table 4: ConfidNet is compared with the maximum probability of the same network."""
    usual = {("base", "none", "auroc"): [0.80, 0.81, 0.82], ("base", "temperature", "auroc"): [0.79, 0.80, 0.82]}
    learned = {("base", "none", "auroc"): [0.90, 0.91, 0.92], ("other", "none", "auroc"): [0.93, 0.95, 0.94]}
    [table] = tabulate(
        pa.concat_tables([rows(usual), rows(learned, "confidnet,epochs=9")], promote_options="default"),
        baseline="base",
        metrics=["auroc"],
    )
    assert [(line.method, line.confidence) for line in table.lines] == [
        ("base", "none"),
        ("base", "temperature"),
        ("base", "by confidnet,epochs=9"),
        ("other", "by confidnet,epochs=9"),
    ]
    base, _, by_score, other = (line.cells["auroc"] for line in table.lines)
    first, second, third = usual["base", "none", "auroc"], *learned.values()
    assert by_score.p_value == pytest.approx(stats.ttest_ind(second, first, equal_var=False).pvalue)
    assert other.p_value == pytest.approx(stats.ttest_ind(third, second, equal_var=False).pvalue)
    assert (base.best, other.best) == (False, True)
    assert "| method | calibrator or score | auroc" in markdown(table)
    assert "base,none,max_probability,auroc" in as_csv([table])


def test_what_a_cell_is_compared_with():
    """A method with the baseline under the same calibrator, and a calibrator of the baseline with none."""
    values = {
        ("base", "none", "ece"): [0.30, 0.31, 0.32],
        ("base", "temperature", "ece"): [0.10, 0.12, 0.11],
        ("other", "none", "ece"): [0.20, 0.25, 0.21],
        ("other", "temperature", "ece"): [0.15, 0.14, 0.16],
    }
    [table] = tabulate(rows(values), baseline="base", metrics=["ece"])
    p = {(line.method, line.calibrator): line.cells["ece"].p_value for line in table.lines}

    def between(a: tuple[str, str], b: tuple[str, str]) -> float:
        return stats.ttest_ind(values[(*a, "ece")], values[(*b, "ece")], equal_var=False).pvalue

    none, warm = ("base", "none"), ("base", "temperature")
    assert np.isnan(p[none])
    assert p[warm] == pytest.approx(between(warm, none))
    assert p["other", "none"] == pytest.approx(between(("other", "none"), none))
    assert p["other", "temperature"] == pytest.approx(between(("other", "temperature"), warm))
