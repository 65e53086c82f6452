"""One record a metric, one function, and tables that are computed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert all(getattr(metrics, key, metric.of) is metric.of for key, metric in METRICS.items())


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
    source = binary() if key.endswith("positive") or key in ("roc_auc", "average_precision") else predictions
    found = evaluate(source)[key]
    assert METRICS[key].of(source) == pytest.approx(found, rel=1e-12)
    assert evaluate(source, [key]) == pytest.approx({key: found}, rel=1e-12)
    if METRICS[key].needs(Tables(source.outcomes())):
        assert METRICS[key].of(source.outcomes()) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("key", [key for key, m in METRICS.items() if m.axis == "refinement" or key in ("ece", "mmce")])
def test_a_metric_is_read_off_a_ranking_too(key, predictions):
    assert METRICS[key].of(metrics.ranking(predictions)) == pytest.approx(evaluate(predictions)[key], rel=1e-12)


def test_binned_metrics_are_read_off_bins_too(predictions):
    known = evaluate(predictions)
    width, mass = metrics.equal_width(predictions), metrics.equal_mass(predictions)
    assert [metrics.ece(width), metrics.mce(width), metrics.oe(width)] == [known["ece"], known["mce"], known["oe"]]
    assert [metrics.ada_ece(mass), metrics.debiased_ece(mass)] == [known["ada_ece"], known["debiased_ece"]]


def test_everything_takes_one_pass_and_one_sort(counted, predictions):
    evaluate(predictions)
    assert counted == {"passes": 1, "classwise": 1, "sorts": 1}


def test_threads_share_one_pass_and_one_sort_and_change_no_number(counted, predictions, monkeypatch):
    expected = evaluate(predictions)
    monkeypatch.setattr("assay.metrics._records.MANY_ROWS", 1)
    counted.update(dict.fromkeys(counted, 0))
    with loops.threads(3):
        found = evaluate(predictions)
    assert (counted["passes"], counted["sorts"]) == (1, 1)
    np.testing.assert_array_equal([*found.values()], [*expected.values()])
    assert [*found] == [*expected]


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
    for table in (_records._METRICS, _records._COMPARED):
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


def bins_by_hand(c: list[float], right: list[bool], index: list[int]) -> list[tuple[int, float, float]]:
    """Count, mean confidence and accuracy of each bin that has samples."""
    found = []
    for b in sorted(set(index)):
        rows = [i for i, j in enumerate(index) if j == b]
        found.append((len(rows), sum(c[i] for i in rows) / len(rows), sum(right[i] for i in rows) / len(rows)))
    return found


def by_hand(c: list[float], right: list[bool]) -> dict[str, float]:
    """The definitions, sample by sample, in plain Python."""
    n, wrong = len(c), [not a for a in right]
    edges = [j / 15 for j in range(1, 15)]
    width_index = [sum(x > edge for edge in edges) for x in c]
    order = sorted(c)
    mass_index = [order.index(x) * 15 // n for x in c]  # of tied samples the first rank counts
    width, mass = bins_by_hand(c, right, width_index), bins_by_hand(c, right, mass_index)
    accuracy_of = {b: a for b, (_, _, a) in zip(sorted(set(mass_index)), mass, strict=True)}
    to_bin = [abs(x - accuracy_of[b]) for x, b in zip(c, mass_index, strict=True)]
    unbiased = sum(m / n * ((p - a) ** 2 - a * (1 - a) / (m - 1)) for m, p, a in mass if m > 1)
    hits, misses = [x for x, a in zip(c, right, strict=True) if a], [x for x, a in zip(c, right, strict=True) if not a]
    surest = [a for x, a in zip(c, right, strict=True) if x >= 0.99]
    found = {
        "accuracy": sum(right) / n,
        "mean_confidence": sum(c) / n,
        "ece": sum(m / n * abs(p - a) for m, p, a in width),
        "mce": max(abs(p - a) for _, p, a in width),
        "oe": sum(m / n * p * max(p - a, 0) for m, p, a in width),
        "rmsce": sum(m / n * (p - a) ** 2 for m, p, a in width) ** 0.5,
        "ada_ece": sum(m / n * abs(p - a) for m, p, a in mass),
        "ece_l2_mass": sum(m / n * (p - a) ** 2 for m, p, a in mass) ** 0.5,
        "debiased_ece": max(unbiased, 0) ** 0.5,
        "ece_lb_l1": sum(to_bin) / n,
        "ece_lb_l2": (sum(x * x for x in to_bin) / n) ** 0.5,
        "s99": len(surest) / n,
        "ece_gamma": (sum(right) ** 2 + sum(wrong) ** 2) / (2 * n**2),
        "overconfident_bins": overconfident_by_hand(c, right),
        "aurc": sum(expected_risk(c, wrong, k) for k in range(1, n + 1)) / n,
        "augrc": sum(wrong[i] * (sum(x < c[i] for x in c) + sum(x == c[i] for x in c) / 2) for i in range(n)) / n**2,
        "risk_at_80": expected_risk(c, wrong, -(-8 * n // 10)),
        "risk_at_90": expected_risk(c, wrong, -(-9 * n // 10)),
        "risk_at_95": expected_risk(c, wrong, -(-19 * n // 20)),
    }
    found["e_aurc"] = found["aurc"] - sum(max(0, k - sum(right)) / k for k in range(1, n + 1)) / n
    if surest:
        found["s99_accuracy"] = sum(surest) / len(surest)
    if hits and misses:
        found |= {
            "ece_beta": sum((x > y) + (x == y) / 2 for x in hits for y in misses) * 2 / n**2,
            "ece_correct": 1 - sum(hits) / len(hits),
            "ece_wrong": sum(misses) / len(misses),
            "confidence_gap": sum(hits) / len(hits) - sum(misses) / len(misses),
            "auroc": sum((x > y) + (x == y) / 2 for x in hits for y in misses) / len(hits) / len(misses),
            "fpr95": min(
                sum(y >= t for y in misses) / len(misses) for t in c if 20 * sum(x >= t for x in hits) >= 19 * len(hits)
            ),
            "aupr_success": sum(sum(x >= t for x in hits) / sum(x >= t for x in c) for t in hits) / len(hits),
            "aupr_error": sum(sum(y <= t for y in misses) / sum(x <= t for x in c) for t in misses) / len(misses),
        }
    return found


def overconfident_by_hand(c: list[float], right: list[bool]) -> float:
    """Share of the filled bins, of 100, that are at most as accurate as they are confident."""
    index = [sum(x > j / 100 for j in range(1, 100)) for x in c]
    return sum(a <= p + 1e-12 for _, p, a in bins_by_hand(c, right, index)) / len(set(index))


def expected_risk(c: list[float], wrong: list[bool], k: int) -> float:
    """Mean error rate among the k most confident over all orders of tied samples."""
    total = 0.0
    for x, error in zip(c, wrong, strict=True):
        above, tied = sum(y > x for y in c), sum(y == x for y in c)
        total += error * min(max((k - above) / tied, 0), 1)
    return total / k


LEVELS = st.sampled_from([0.0, 0.05, 1 / 15, 0.2, 0.3, 0.5, 0.6, 0.77, 0.9, 0.99, 0.9901, 0.9999, 1.0])


@given(st.lists(st.tuples(LEVELS, st.booleans()), min_size=1, max_size=40))
def test_every_metric_is_its_definition(rows):
    c, right = [x for x, _ in rows], [a for _, a in rows]
    found = evaluate(Outcomes.from_scores(c, right))
    for key, expected in by_hand(c, right).items():
        assert found[key] == pytest.approx(expected, abs=1e-9), key


def test_which_way_is_better():
    higher = ("accuracy", "auroc", "aupr_success", "aupr_error", "confidence_gap", "s99_accuracy")
    higher += ("roc_auc", "average_precision")
    neither = ("mean_confidence", "mean_entropy", "s99", "ece_beta", "ece_gamma", "overconfident_bins")
    for key, metric in METRICS.items():
        assert metric.better == ("higher" if key in higher else "-" if key in neither else "lower"), key
