"""One record a metric, one function, and tables that are computed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assay import Outcomes, Predictions, audit, compare, evaluate, metrics
from assay._core import loops
from assay._core.arrays import InputError
from assay.metrics import COMPARED, METRICS, Tables, _ranking, _records, _tables


@pytest.fixture
def counted(monkeypatch):
    """How often rows were passed over, and confidences sorted."""
    counts = {"passes": 0, "classwise": 0, "sorts": 0}
    reduce, ranking_of = loops.reduce, _ranking.ranking_of

    def counting_reduce(*args, sums=None, **how):
        counts["passes"] += 1
        counts["classwise"] += sums is not None
        return reduce(*args, sums=sums, **how)

    def counting_ranking(outcomes):
        counts["sorts"] += 1
        return ranking_of(outcomes)

    monkeypatch.setattr(loops, "reduce", counting_reduce)
    monkeypatch.setattr(_tables, "ranking_of", counting_ranking)
    return counts


def binary(n: int = 500) -> Predictions:
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    return Predictions.from_binary_logits(2 * z, rng.random(n) < 1 / (1 + np.exp(-z)))


def test_a_record_knows_its_function():
    assert all(metric.key == key for key, metric in COMPARED.items())
    assert all(getattr(metrics, key) is metric.of for key, metric in METRICS.items())


def test_records_say_how_they_are_shown():
    for metric in COMPARED.values():
        assert metric.axis in ("scoring", "calibration", "refinement", "description")
        assert metric.better in ("higher", "lower", "-")
        assert metric.title
        assert metric.line
    assert METRICS["augrc"].unit(0.0126) == "12.60‰"
    assert METRICS["ece"].unit(0.1586) == "15.86%"
    assert METRICS["nll"].unit(1 / 3) == "0.3333"


@pytest.mark.parametrize("key", METRICS)
def test_the_function_and_evaluate_are_one(key, predictions):
    source = binary() if key.endswith("positive") else predictions
    found = evaluate(source)[key]
    assert getattr(metrics, key)(source) == pytest.approx(found, rel=1e-12)
    assert evaluate(source, [key]) == pytest.approx({key: found}, rel=1e-12)
    if METRICS[key].needs(Tables(source.outcomes())):
        assert getattr(metrics, key)(source.outcomes()) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("key", [key for key, m in METRICS.items() if m.axis == "refinement" or key in ("ece", "mmce")])
def test_a_metric_is_read_off_a_ranking_too(key, predictions):
    assert getattr(metrics, key)(metrics.ranking(predictions)) == pytest.approx(evaluate(predictions)[key], rel=1e-12)


def test_binned_metrics_are_read_off_bins_too(predictions):
    known = evaluate(predictions)
    width, mass = metrics.equal_width(predictions), metrics.equal_mass(predictions)
    assert [metrics.ece(width), metrics.mce(width), metrics.oe(width)] == [known["ece"], known["mce"], known["oe"]]
    assert [metrics.ada_ece(mass), metrics.debiased_ece(mass)] == [known["ada_ece"], known["debiased_ece"]]


def test_everything_takes_one_pass_and_one_sort(counted, predictions):
    evaluate(predictions)
    assert counted == {"passes": 1, "classwise": 1, "sorts": 1}


def test_an_audit_takes_one_pass_and_one_sort(counted, predictions):
    audit(predictions, draws=10)
    assert counted == {"passes": 1, "classwise": 1, "sorts": 1}


def test_a_comparison_takes_one_pass_and_one_sort_a_model(counted, predictions):
    compare(predictions, predictions)
    assert counted == {"passes": 2, "classwise": 2, "sorts": 2}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("ece", {"passes": 1, "classwise": 0, "sorts": 0}),
        ("nll", {"passes": 1, "classwise": 0, "sorts": 0}),
        ("aurc", {"passes": 1, "classwise": 0, "sorts": 1}),
        ("classwise_ece", {"passes": 1, "classwise": 1, "sorts": 0}),
    ],
)
def test_only_what_is_asked_for_is_computed(counted, predictions, key, expected):
    evaluate(predictions, [key])
    assert counted == expected


def test_unknown_keys_are_answered_by_the_nearest(predictions):
    with pytest.raises(InputError, match="unknown metric 'eec'; did you mean 'ece'"):
        evaluate(predictions, ["eec"])


def test_what_the_input_does_not_give_is_refused(predictions):
    with pytest.raises(InputError, match="do not give 'classwise_ece'"):
        evaluate(predictions.outcomes(), ["classwise_ece"])
    with pytest.raises(InputError, match="do not give 'ece'"):
        evaluate(Outcomes.from_scores([3.0, 4.0], [True, False], is_probability=False), ["ece"])
    with pytest.raises(InputError, match="probabilities of all classes"):
        metrics.nll(Outcomes.from_scores([0.5], [True]))


def test_one_record_adds_a_metric_everywhere(monkeypatch, predictions):
    """As in CONTRIBUTING: a function and a line."""

    def mean_doubt(x):
        return 1 - metrics.mean_confidence(x)

    metric = replace(
        METRICS["mean_confidence"], key="mean_doubt", title="mean doubt", line="1 - confidence", of=mean_doubt
    )
    for table in (METRICS, COMPARED):
        monkeypatch.setitem(table, "mean_doubt", metric)
    expected = 1 - metrics.mean_confidence(predictions)
    assert evaluate(predictions)["mean_doubt"] == expected
    assert audit(predictions, draws=10)["mean_doubt"].value == expected
    assert compare(predictions, predictions)["mean_doubt"].a == expected


def test_halves_of_a_table_are_read_like_the_whole(predictions):
    first, second = predictions[:700], predictions[700:]
    merged = metrics.ranking(first) + metrics.ranking(second)
    assert metrics.aurc(merged) == pytest.approx(metrics.aurc(predictions), rel=1e-12)
    bins = metrics.equal_width(first) + metrics.equal_width(second)
    assert metrics.ece(bins) == pytest.approx(metrics.ece(predictions), rel=1e-12)


def test_units_are_the_records_own():
    units = {metric.unit for metric in COMPARED.values()}
    assert units == {_records.PERCENT, _records.PER_MILLE, _records.PLAIN, _records.SMALL_PERCENT}
