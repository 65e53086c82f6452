"""Groups against the rest: tests and sizes that hold where confidences are near 1, and groups that select on labels."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from assay import Outcomes, Predictions, audit
from assay.grouping import chosen_by_label, group_tests, pairs_of
from assay.scale import Tally

DESIGNS = {
    "rows": lambda n: {},
    "weights": lambda n: {"weights": np.resize([1.0, 2.0], n)},
    "clusters": lambda n: {"cluster": np.arange(n) // 5},
}


def against_the_rest(confidence, correct, groups, **columns):
    rows = {str(name): np.asarray(groups) == name for name in np.unique(groups)}
    return group_tests(Outcomes.from_scores(confidence, correct, **columns), rows, by_label=False)


def near_one(rng, n):
    return np.where(rng.random(n) < 0.5, 0.9999, 0.999)


def spread_out(rng, n):
    return rng.uniform(0.5, 1, n)


def sure(rng, n):
    return np.ones(n)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_sure_group_that_is_all_wrong_is_called_over_confident(design):
    """No confidence and no answer of the group differs from another, so nothing but the number of rows is noise."""
    group = np.repeat(["bad", "good"], [50, 450])
    found = against_the_rest(np.ones(500), group == "good", group, **DESIGNS[design](500))
    over = [f for f in found.findings if (f.group, f.metric) == ("bad", "over_confidence")]
    assert len(over) == 1
    assert over[0].interval.high == 1  # 100 points are the most
    assert ("bad", "accuracy") in {(f.group, f.metric) for f in found.findings}


@pytest.mark.parametrize(
    ("law", "size", "n_groups"),
    [(near_one, 100, 20), (sure, 30, 3), (near_one, 1000, 5), (spread_out, 100, 5), (spread_out, 1000, 5)],
)
def test_over_confidence_of_the_detectable_size_is_seen_four_times_of_five(law, size, n_groups):
    rng = np.random.default_rng(3)
    group = np.arange(size * n_groups) % n_groups

    def drawn(excess):
        confidence = law(rng, len(group))
        return against_the_rest(confidence, rng.random(len(group)) < confidence - excess * (group == 0), group)

    stated = float(np.median([drawn(0).detectable["0"] for _ in range(9)]))
    seen = [any((f.group, f.metric) == ("0", "over_confidence") for f in drawn(stated).findings) for _ in range(60)]
    assert np.mean(seen) >= 0.65  # 60 draws of 80 % have errors of 5 points
    half = [any((f.group, f.metric) == ("0", "over_confidence") for f in drawn(stated / 2).findings) for _ in range(60)]
    assert np.mean(half) <= 0.6  # and it is not far too large


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_group_that_could_show_nothing_has_no_detectable_size(size, design):
    rng = np.random.default_rng(0)
    group = np.repeat(["few", "many"], [size, 400 - size])
    for law in (sure, spread_out):
        confidence = law(rng, 400)
        found = against_the_rest(confidence, rng.random(400) < confidence, group, **DESIGNS[design](400))
        assert "few" not in found.detectable
        assert all(0 < each <= 1 for each in found.detectable.values())


def test_a_weighted_group_beside_one_that_is_all_wrong_is_tested():
    """The weighted share of errors of the other group may round to a little more than 1."""
    group = np.where(np.arange(60) < 8, "new", "old")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        confidence = rng.uniform(0.5, 1, 60)
        correct = (rng.random(60) < confidence) & (group == "old")
        found = against_the_rest(confidence, correct, group, weights=rng.uniform(0.5, 2, 60))
        assert ("new", "accuracy") in {(f.group, f.metric) for f in found.findings}


def calibrated_of_two_classes(n):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 6, n)
    return p, (rng.random(n) < p).astype(int), rng.integers(0, 2, n)


def test_groups_finer_than_the_label_are_chosen_by_it():
    p, label, site = calibrated_of_two_classes(4000)
    finer = [f"{a}-{b}" for a, b in zip(label, site, strict=True)]
    found = audit(Predictions.from_binary_probabilities(p, label, group=finer), draws=20)
    assert found.by_label
    assert {finding.metric for finding in found.findings} == {"accuracy"}
    assert not chosen_by_label(pairs_of(Predictions.from_binary_probabilities(p, label, group=site)))


def test_one_group_with_one_label_is_not_chosen_by_it():
    p, label, site = calibrated_of_two_classes(4000)
    rare = np.where((label == 0) & (np.arange(4000) < 100), "healthy", site.astype(str))
    assert not chosen_by_label(pairs_of(Predictions.from_binary_probabilities(p, label, group=rare)))


def test_tiny_groups_have_one_label_each_by_chance():
    p, label, _ = calibrated_of_two_classes(40)
    assert not chosen_by_label(pairs_of(Predictions.from_binary_probabilities(p, label, group=np.arange(40))))


def test_outcomes_whose_labels_are_known_are_not_accused_of_groups_chosen_by_them():
    """A calibrated model is over-confident where the label is the rare one, whoever reduced its classes to answers."""
    p, labels, site = calibrated_of_two_classes(4000)
    named = np.where(labels == 1, "ill", "well")
    of_classes = Predictions.from_binary_probabilities(p, labels, group=named).outcomes()
    told = Outcomes.from_scores(np.maximum(p, 1 - p), (p > 0.5) == labels, group=named, labels=labels)
    for o in (of_classes, told, told[:2000] + told[2000:]):
        found = audit(o, draws=20)
        assert found.by_label
        assert {finding.metric for finding in found.findings} == {"accuracy"}
    assert not audit(Outcomes.from_scores(p, labels == 1, group=site, labels=labels), draws=20).by_label


def test_labels_of_one_row_each_choose_no_groups():
    """Every question has a right answer of its own, so each is in one group by chance."""
    n = 300
    group = np.random.default_rng(0).integers(0, 5, n)
    assert not chosen_by_label(
        pairs_of(Outcomes.from_scores(np.full(n, 0.7), np.ones(n), group=group, labels=range(n)))
    )


def test_a_tally_knows_groups_chosen_by_the_label_as_the_rows_do():
    p, label, site = calibrated_of_two_classes(4000)
    finer = np.array([f"{a}-{b}" for a, b in zip(label, site, strict=True)])
    for group in (label, finer, site, np.arange(4000) % 7):
        rows = Predictions.from_binary_probabilities(p, label, group=group)
        for known in (rows, rows.outcomes()):
            whole = Tally.of(known[:100]) + Tally.of(known[100:])
            assert Tally.from_bytes(whole.to_bytes()).by_label == chosen_by_label(pairs_of(known))


def test_a_tally_forgets_labels_that_are_too_many_to_be_classes(monkeypatch):
    monkeypatch.setattr("assay.scale._tally.MOST", 50)
    n = 120
    rows = Outcomes.from_scores(np.full(n, 0.7), np.ones(n), group=np.arange(n) % 2, labels=range(n))
    parts = [Tally.of(rows[first : first + 40]) for first in range(0, n, 40)]
    assert parts[0].label_groups
    assert Tally.of(rows).label_groups is None
    for a, b, c in permutations(parts):
        assert (a + b + c).label_groups is None
        assert not Tally.from_bytes((a + b + c).to_bytes()).by_label
