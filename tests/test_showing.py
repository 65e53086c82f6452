"""Data frames in and out, tables and pictures in notebooks, and numbers for trackers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import gaussian_predictions

from assay import Outcomes, Predictions, audit, choose_threshold, compare, evaluate
from assay._core.arrays import InputError
from assay.calibrators import histogram, temperature
from assay.integrations.trackers import numbers, write_page

TEST = gaussian_predictions(300, 3, seed=0)
FOUND = audit(TEST)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_comes_in_as_it_is(library):
    made = pytest.importorskip(library)
    columns = {f"p_{name}": TEST.probabilities[:, i] for i, name in enumerate(("cat", "dog", "eel"))}
    frame = made.DataFrame({**columns, "y": np.array(["cat", "dog", "eel"])[TEST.labels]})
    found = Predictions.from_dataframe(frame, label="y", probabilities="p_*")
    assert found.classes == ("cat", "dog", "eel")
    assert evaluate(found)["ece"] == pytest.approx(evaluate(TEST)["ece"])
    scores = made.DataFrame({"c": [0.9, 0.6], "right": [True, False]})
    assert isinstance(Predictions.from_dataframe(scores, confidence="c", correct="right"), Outcomes)
    with pytest.raises(InputError, match="no column 'labels' of predictions; did you mean 'label'"):
        Predictions.from_dataframe(frame, labels="y")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_results_go_out_as_data_frames(library):
    pytest.importorskip(library)
    frame = FOUND.to_frame(library)
    assert list(frame["metric"]) == FOUND.keys()
    assert FOUND.to_dict()["ece"] == FOUND["ece"].value
    differences = compare(TEST, TEST).to_frame(library)
    assert set(differences["difference"]) == {0.0}
    samples = TEST.to_frame(library)
    assert np.allclose(np.asarray(samples["confidence"]), TEST.outcomes().confidence)


def test_everything_shows_itself_in_a_notebook():
    shown = (TEST, FOUND, compare(TEST, TEST), choose_threshold(TEST), temperature(TEST), histogram(TEST))
    for result in shown:
        html = result._repr_html_()
        assert "<table" in html
        assert "#" not in html.replace("&#", "")  # no color of its own, so that dark pages can be read
    assert "ece" in FOUND._repr_html_()


def test_an_audit_draws_both_axes():
    left, right = FOUND.plot().axes[:2]
    assert left.get_ylabel() == "accuracy"
    assert "overage" in right.get_xlabel()
    score = Outcomes.from_scores([1.0, 2.0, 3.0], [0, 1, 1], is_probability=False)
    assert len(audit(score).plot().axes) == 1
    with pytest.raises(InputError, match="no predictions any more"):
        replace(FOUND, tables=None).plot()


def test_a_comparison_draws_both_models():
    first, second, curves = compare(TEST, TEST).plot().axes[:3]
    assert (first.get_title(), second.get_title()) == ("first", "second")
    assert [text.get_text() for text in curves.get_legend().get_texts()] == ["perfect ranking", "first", "second"]


def test_a_notebook_shows_a_figure_without_pyplot():
    assert FOUND.plot()._repr_png_().startswith(b"\x89PNG")


def test_trackers_have_flat_finite_numbers(tmp_path):
    found = numbers(FOUND, prefix="test/")
    assert found["test/ece"] == FOUND["ece"].value
    assert found["test/ece/low"] == FOUND["ece"].interval.low
    assert all(np.isfinite(value) for value in found.values())
    assert "<html" in write_page(FOUND, tmp_path / "page.html").read_text()
    with pytest.raises(InputError, match="no predictions any more"):
        write_page(replace(FOUND, tables=None), tmp_path / "page.html")


def test_predictions_add_up():
    both = TEST[:100] + TEST[100:]
    assert np.array_equal(both.values, TEST.values)
    assert np.array_equal(both.labels, TEST.labels)
    with pytest.raises(InputError, match="do not have the same classes"):
        TEST + gaussian_predictions(10, 4, seed=0)
