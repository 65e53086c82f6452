"""Predictions, thresholds and deployed models know which map they belong to, and refuse another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import gaussian_predictions
from sklearn.linear_model import LogisticRegression
from torch import nn

import assay
from assay import files, maps
from assay._core.arrays import InputError
from assay.calibrators import CALIBRATORS, cross_validated, fixed_temperature, histogram, temperature
from assay.maps import digest
from assay.metrics import Tables, ranking
from assay.nn.deploy import calibrated, export_onnx
from assay.report.jsons import write_json
from assay.scale import Tally, tally
from assay.selective import SelectiveClassifier
from assay.thresholds import Threshold, choose_threshold, load_threshold, threshold_under

HELD_OUT, TEST = gaussian_predictions(2000, 4, seed=0), gaussian_predictions(500, 4, seed=1)
COOLED, COOLER = fixed_temperature(HELD_OUT, t=2.0), fixed_temperature(HELD_OUT, t=3.0)


@pytest.mark.parametrize(
    "use", [lambda m, t: SelectiveClassifier(np.asarray, m, t), lambda m, t: calibrated(nn.Identity(), m, t)]
)
def test_a_threshold_is_refused_under_another_map(use):
    after, before = choose_threshold(maps.apply(COOLED, HELD_OUT), risk=0.1), choose_threshold(HELD_OUT, risk=0.1)
    assert use(COOLED, after).threshold == after.value
    assert use(None, before).threshold == before.value
    for mapping, threshold in ((None, after), (COOLER, after), (COOLED, before)):
        with pytest.raises(InputError, match="its promise does not hold"):
            use(mapping, threshold)


def test_a_threshold_of_another_map_is_not_exported(tmp_path):
    after = choose_threshold(maps.apply(COOLED, HELD_OUT), risk=0.1)
    fitted = LogisticRegression().fit(HELD_OUT.logits, HELD_OUT.labels)
    for model, example in ((nn.Identity(), torch.tensor(TEST.logits)), (fitted, TEST.logits)):
        with pytest.raises(InputError, match="its promise does not hold"):
            export_onnx(model, COOLER, tmp_path / "m.onnx", example=example, threshold=after)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("confidence_alone", [False, True])
def test_a_threshold_of_many_files_knows_their_map(tmp_path, confidence_alone):
    """Also if they have a confidence and nothing else, which is read in a way of its own."""
    rows = maps.apply(COOLED, HELD_OUT)
    given = replace(rows.outcomes(), nll=None, brier=None, entropy=None) if confidence_alone else rows
    for i, part in enumerate((given[:500], given[500:])):
        files.write(part, tmp_path / f"{i}.parquet")
    found = choose_threshold(tally(tmp_path), risk=0.3)
    assert found.map_digest == digest(COOLED)
    assert Tally.from_bytes(tally(tmp_path).to_bytes()).map_digest == digest(COOLED)
    files.write(HELD_OUT.outcomes() if confidence_alone else HELD_OUT, tmp_path / "2.parquet")
    mixed = tally(tmp_path)
    assert mixed.map_digest is None
    assert Tally.from_bytes(mixed.to_bytes()).map_digest is None


def test_every_calibrator_stamps_what_it_mapped():
    fitted = {
        name: CALIBRATORS[name](HELD_OUT) for name in ("temperature", "matrix", "isotonic", "histogram_one_vs_rest")
    }
    digests = {digest(mapping) for mapping in fitted.values()}
    assert len(digests) == len(fitted)
    for mapping in fitted.values():
        assert choose_threshold(maps.apply(mapping, TEST)).map_digest == digest(mapping)


def test_a_digest_is_of_the_numbers_alone(tmp_path):
    again = replace(COOLED, fit=replace(COOLED.fit, n=7))
    assert digest(again) == digest(COOLED) != digest(COOLER)
    for mapping in (CALIBRATORS["matrix"](HELD_OUT), CALIBRATORS["temperature_histogram"](HELD_OUT)):
        maps.save(mapping, tmp_path / "map.json")
        assert digest(maps.load(tmp_path / "map.json")) == digest(mapping)


def test_one_after_the_other_is_the_sequence():
    stepped = histogram(HELD_OUT)
    both = maps.Sequence(COOLED.fit, (COOLED, stepped))
    one_by_one = maps.apply(stepped, maps.apply(COOLED, TEST))
    assert one_by_one.map_digest == maps.apply(both, TEST).map_digest == digest(both)
    assert digest(maps.Sequence(COOLED.fit, ())) == digest(None) == ""


def test_a_map_is_not_applied_twice():
    with pytest.raises(InputError, match="applied to these predictions before"):
        maps.apply(COOLED, maps.apply(COOLED, TEST))


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
def test_files_keep_the_digest(tmp_path, ending):
    for rows in (maps.apply(COOLED, TEST), maps.apply(histogram(HELD_OUT), TEST), TEST):
        files.write(rows, tmp_path / f"rows.{ending}")
        assert files.read(tmp_path / f"rows.{ending}").map_digest == rows.map_digest


def test_rows_of_several_maps_have_no_digest():
    crossed = cross_validated(HELD_OUT, temperature)
    assert crossed.map_digest is None
    assert maps.apply(histogram(HELD_OUT), crossed).map_digest is None
    assert threshold_under(COOLED, choose_threshold(crossed)) == choose_threshold(crossed).value


def test_tables_know_the_map_and_a_ranking_does_not():
    mapped = maps.apply(COOLED, TEST)
    assert choose_threshold(Tables(mapped)).map_digest == digest(COOLED)
    assert choose_threshold(ranking(mapped)).map_digest is None


@pytest.mark.parametrize("risk", [0.1, 1e-6])
def test_a_threshold_is_read_back(tmp_path, risk):
    chosen = choose_threshold(maps.apply(COOLED, TEST), risk=risk)
    write_json(chosen, tmp_path / "threshold.json")
    assert load_threshold(tmp_path / "threshold.json") == replace(chosen, instead=None, broken=())
    (tmp_path / "threshold.json").write_text("{}")
    with pytest.raises(InputError, match="is no threshold"):
        load_threshold(tmp_path / "threshold.json")


def test_a_map_of_logits_refuses_probabilities():
    of_logits, of_probabilities = (CALIBRATORS["matrix"](rows) for rows in (HELD_OUT, normalized(HELD_OUT)))
    with pytest.raises(InputError, match="fitted on logits and these are probabilities"):
        maps.apply(of_logits, normalized(TEST))
    # Shifted logits are the same predictions.
    shifted = replace(TEST, values=TEST.values + 5)
    found = maps.apply(of_probabilities, shifted).probabilities
    assert found == pytest.approx(maps.apply(of_probabilities, normalized(TEST)).probabilities, abs=1e-6)


def normalized(predictions):
    return replace(predictions, values=predictions.probabilities, normalized=True)


def test_a_number_is_taken_as_it_is():
    assert threshold_under(COOLED, 0.7) == 0.7
    assert isinstance(choose_threshold(TEST), Threshold)


@pytest.mark.parametrize("threshold", [0.7, float("inf"), float("-inf")])
def test_a_selective_classifier_is_saved_without_its_model(tmp_path, threshold):
    model = SelectiveClassifier(np.asarray, CALIBRATORS["temperature_histogram"](HELD_OUT), threshold)
    model.save(tmp_path / "selective.json")
    again = SelectiveClassifier.load(tmp_path / "selective.json", np.asarray)
    assert np.array_equal(again(TEST.logits).label, model.decide(TEST.logits).label)
    (tmp_path / "selective.json").write_text("{}")
    with pytest.raises(InputError, match="holds no map and threshold"):
        SelectiveClassifier.load(tmp_path / "selective.json", np.asarray)


def test_first_guesses_are_told_where_to_look():
    with pytest.raises(AttributeError, match=r"it is assay\.nn\.losses"):
        assay.losses  # noqa: B018
    with pytest.raises(InputError, match=r"use maps\.answer"):
        maps.apply(COOLED, TEST.logits)
    assert assay.evaluate(logits=TEST.logits, labels=TEST.labels, keys=["ece"]) == assay.evaluate(TEST, ["ece"])
    with pytest.raises(InputError, match="labels with either logits or probabilities"):
        assay.evaluate(logits=TEST.logits)
    with pytest.raises(InputError, match="not both"):
        assay.evaluate(TEST, labels=TEST.labels)
