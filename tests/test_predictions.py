"""The door: what comes in, what is refused, and what the one pass makes of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from assay import Outcomes, Predictions, evaluate
from assay._core.arrays import InputError

LOGITS = [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]
HALVES = [[0.5, 0.5], [0.2, 0.8]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Predictions.from_logits([[1.0, np.nan]], [0]), "row 0, class 1: logit is nan"),
        (lambda: Predictions.from_logits([[1.0, 2.0], [np.inf, 0.0]], [0, 0]), "row 1, class 0: logit is inf"),
        (lambda: Predictions.from_logits(LOGITS, [0, 1, 2]), "row 2: label 2 is outside 0..1"),
        (lambda: Predictions.from_logits(LOGITS, [0, -1, 1]), "row 1: label -1 is outside 0..1"),
        (lambda: Predictions.from_logits(LOGITS, [0.0, 1.0, 1.0]), "labels must be integer class indices, got float64"),
        (lambda: Predictions.from_logits(LOGITS, ["a", "b", "c"]), "row 0: labels must be numbers, got 'a'"),
        (lambda: Predictions.from_logits(LOGITS, [0, 1]), "3 rows of predictions but labels of shape [2]"),
        (lambda: Predictions.from_logits([1.0, 2.0], [0, 1]), "logits must have shape [n, k], got [2]"),
        (
            lambda: Predictions.from_logits([[1.0], [2.0]], [0, 0]),
            "at least two columns, got 1; for one use from_binary",
        ),
        (lambda: Predictions.from_logits(np.zeros((0, 3)), []), "logits: no rows"),
        (
            lambda: Predictions.from_logits(LOGITS, [0, 1, 1], ids=[1, 1, 2]),
            "ids must be unique: 1 (row 0) is repeated",
        ),
        (
            lambda: Predictions.from_logits(LOGITS, [0, 1, 1], group=["a"]),
            "3 rows of predictions but group of shape [1]",
        ),
        (lambda: Predictions.from_probabilities([[-0.1, 1.1]], [0]), "row 0, class 0: probability is -0.1"),
        (
            lambda: Predictions.from_probabilities([*HALVES, [0.5, 0.4]], [0, 0, 0]),
            "row 2: probabilities sum to 0.9, not 1",
        ),
        (lambda: Predictions.from_probabilities([[0.5, np.nan]], [0]), "row 0, class 1: probability is nan"),
        (lambda: Predictions.from_binary_probabilities([0.5, 1.5], [0, 1]), "row 1: probability 1.5 is outside [0, 1]"),
        (
            lambda: Outcomes.from_scores([0.5, 1.5], [1, 0]),
            "row 1: confidence 1.5 is outside [0, 1]; a score that is no",
        ),
        (lambda: Outcomes.from_scores([0.5, np.nan], [1, 0]), "row 1: confidence is nan"),
        (lambda: Outcomes.from_scores([0.5, 0.6], [1, 2]), "row 1: correct must be 0 or 1, got 2"),
        (lambda: Outcomes.from_scores([], []), "confidence: no rows"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)


def test_one_bad_value_is_found_in_any_chunk():
    logits = torch.zeros(300_000, 2)
    logits[299_999, 1] = torch.nan
    with pytest.raises(InputError, match="row 299999, class 1: logit is nan"):
        Predictions.from_logits(logits, torch.zeros(300_000, dtype=torch.long))


def test_finite_logits_whose_sum_overflows_are_legal():
    assert len(Predictions.from_logits(torch.full((2, 2), 3e38), [0, 1])) == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_columns_match_the_plain_formulas(predictions, dtype):
    z, y = predictions.values.to(dtype), predictions.labels
    o = Predictions.from_logits(z, y).outcomes()
    log_p = z.double().log_softmax(1)
    p, at_label = log_p.exp(), log_p.gather(1, y[:, None]).squeeze(1)
    tolerance = 1e-12 if dtype is torch.float64 else 3e-6
    assert o.confidence.dtype is torch.float64
    torch.testing.assert_close(o.confidence, p.amax(1), rtol=0, atol=tolerance)
    torch.testing.assert_close(o.nll, -at_label, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(o.brier, (p - F.one_hot(y, 10)).square().sum(1), rtol=0, atol=tolerance)
    torch.testing.assert_close(o.entropy, torch.special.entr(p).sum(1), rtol=0, atol=10 * tolerance)
    if dtype is torch.float64:
        assert torch.equal(o.correct, p.argmax(1) == y)


def test_chunks_do_not_show(predictions):
    """A million elements take several chunks; row by row they take one each."""
    wide = Predictions.from_logits(predictions.values.repeat(1, 60), predictions.labels)
    whole = wide.outcomes()
    alone = [wide[i : i + 1].outcomes() for i in (0, 217, 218, 219, 1999)]
    for row, one in zip((0, 217, 218, 219, 1999), alone, strict=True):
        assert one.confidence.item() == whole.confidence[row]
        assert one.nll.item() == pytest.approx(whole.nll[row].item(), rel=1e-7)


def test_confidence_near_one_keeps_its_order():
    """In float32 both would be exactly 1 and tied."""
    o = Predictions.from_logits(torch.tensor([[20.0, 0.0], [25.0, 0.0]]), [0, 0]).outcomes()
    assert o.confidence[0] < o.confidence[1] < 1


def test_of_tied_classes_the_first_is_predicted():
    o = Predictions.from_logits([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [2.0, 2.0, 2.0]], [0, 1, 2]).outcomes()
    assert o.correct.tolist() == [True, False, False]
    o = Predictions.from_probabilities([[0.5, 0.5], [0.5, 0.5]], [0, 1]).outcomes()
    assert o.correct.tolist() == [True, False]


def test_numpy_lists_and_tensors_are_the_same(predictions):
    z, y = predictions.values.double(), predictions.labels
    expected = evaluate(Predictions.from_logits(z, y))
    assert evaluate(Predictions.from_logits(z.numpy(), y.numpy())) == expected
    assert evaluate(Predictions.from_logits(z.tolist(), y.tolist())) == expected
    reversed_view = z.numpy()[::-1]
    assert evaluate(Predictions.from_logits(reversed_view, y.numpy()[::-1].astype(">i4"))) == pytest.approx(expected)


def test_probabilities_are_kept_as_given():
    """A logarithm and back would move .6 off the edge it lies on."""
    p = np.array([[0.6, 0.4], [0.2, 0.8], [1.0, 0.0]])
    given = Predictions.from_probabilities(p, [0, 1, 0])
    assert given.outcomes().confidence.tolist() == [0.6, 0.8, 1.0]
    assert given.logits[2].tolist() == [0.0, -np.inf]
    assert given.values.data_ptr() == p.__array_interface__["data"][0]


def test_logits_and_their_probabilities_agree(predictions):
    z = predictions.values.double()
    by_logits = evaluate(Predictions.from_logits(z, predictions.labels))
    by_probabilities = evaluate(Predictions.from_probabilities(z.softmax(1), predictions.labels))
    assert by_probabilities == pytest.approx(by_logits, abs=1e-9)


def test_binary_logits_are_those_of_class_one():
    one, two = (
        Predictions.from_binary_logits([2.0, -1.0], [1, 1]),
        Predictions.from_logits([[0, 2.0], [0, -1.0]], [1, 1]),
    )
    assert torch.equal(one.values, two.values)
    assert one.outcomes().correct.tolist() == [True, False]


def test_extreme_logits_are_legal():
    found = evaluate(Predictions.from_logits(torch.tensor([[1e4, -1e4], [-1e4, 1e4], [1e4, -1e4]]), [0, 1, 1]))
    assert found["nll"] == pytest.approx(2e4 / 3)
    assert found["ece"] == pytest.approx(1 / 3)
    assert found["brier"] == pytest.approx(2 / 3)
    assert found["mean_entropy"] == 0


def test_probability_zero_of_the_true_class_is_legal():
    found = evaluate(Predictions.from_probabilities([[1.0, 0.0], [0.0, 1.0]], [0, 0]))
    assert found["nll"] == np.inf
    assert found["nll_calibration"] == np.inf
    assert found["brier"] == 1.0
    assert found["mean_entropy"] == 0.0


def test_confidence_zero_and_one_are_in_bins():
    assert evaluate(Outcomes.from_scores([0.0, 1.0], [0, 1]))["ece"] == 0
    assert evaluate(Outcomes.from_scores([0.0, 1.0], [1, 0]))["ece"] == 1


@pytest.mark.parametrize("correct", [[True] * 4, [False] * 4])
def test_all_right_or_all_wrong_has_no_auroc(correct):
    found = evaluate(Outcomes.from_scores([0.9, 0.8, 0.7, 0.6], correct))
    assert np.isnan([found["auroc"], found["fpr95"], found["confidence_gap"]]).all()
    assert found["e_aurc"] == 0
    assert found["aurc"] == 1 - correct[0]


def test_one_sample_is_legal():
    found = evaluate(Predictions.from_logits([[1.0, 0.0, 0.0]], [0]))
    assert found["accuracy"] == 1
    assert found["ece"] == pytest.approx(1 - found["mean_confidence"])
    assert found["sweep_ece"] == pytest.approx(found["ece"])


def test_an_absent_class_counts_in_classwise_ece():
    found = evaluate(Predictions.from_probabilities([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], [0, 0]))
    assert found["classwise_ece"] == pytest.approx((0.5 + 0.3 + 0.2) / 3)


def test_what_the_input_does_not_allow_is_absent(predictions):
    outcomes = predictions.outcomes()
    known = evaluate(predictions)
    assert set(known) - set(evaluate(outcomes)) == {"classwise_ece", "tace"}
    bare = evaluate(Outcomes.from_scores(outcomes.confidence, outcomes.correct))
    assert set(evaluate(outcomes)) - set(bare) == {"nll", "brier", "mean_entropy"}
    ranked = evaluate(Outcomes.from_scores(outcomes.confidence.log(), outcomes.correct, is_probability=False))
    assert "ece" not in ranked
    assert all(ranked[key] == pytest.approx(known[key]) for key in ranked)


def test_only_two_classes_have_a_positive_one(predictions):
    assert "ece_positive" not in evaluate(predictions)
    two = Predictions.from_binary_probabilities([0.9, 0.2, 0.4], [1, 0, 1])
    found = evaluate(two)
    assert found["ece"] == pytest.approx((0.1 + 0.2 + 0.6) / 3)
    assert found["ece_positive"] == pytest.approx((0.1 + 0.2 + 0.6) / 3)
    skewed = Predictions.from_binary_probabilities([0.6, 0.4], [1, 1])
    assert evaluate(skewed)["ece"] == pytest.approx(0.1)  # both answers are claimed at .6 and one is right
    assert evaluate(skewed)["ece_positive"] == pytest.approx(0.5)


def test_rows_are_picked_and_joined_with_their_tags():
    a = Outcomes.from_scores([0.1, 0.2, 0.3], [1, 0, 1], ids=["x", "y", "z"], group=[1, 2, 2])
    picked = a[torch.tensor([2, 0])] + a[a.confidence == 0.2]
    assert picked.ids.tolist() == ["z", "x", "y"]
    assert picked.group.tolist() == [2, 1, 2]
    assert picked.confidence.tolist() == [0.3, 0.1, 0.2]


def test_binary_probabilities_a_rounding_above_one_are_legal():
    p = np.array([[0, 1.0000001], [0.3, 0.7]], dtype=np.float32)
    assert evaluate(Predictions.from_probabilities(p, [1, 1]))["ece_positive"] == pytest.approx(0.15, abs=1e-6)


def test_ties_are_settled_in_half_precision_too():
    p = torch.full((2, 2), 0.50390625, dtype=torch.bfloat16)
    assert Predictions.from_probabilities(p, [0, 1]).outcomes().correct.tolist() == [True, False]


def test_logits_whose_distance_overflows_have_an_entropy():
    found = evaluate(Predictions.from_logits(torch.tensor([[3e38, -3e38, 3e38]]), [0]))
    assert found["mean_entropy"] == pytest.approx(np.log(2))


def test_no_rows_are_an_error():
    with pytest.raises(InputError, match="no rows"):
        evaluate(Outcomes.from_scores([0.5], [1])[:0])


@pytest.mark.parametrize("values", [[[1.0, None]], [[1.0], [1.0, 2.0]], [["1", "x"]]])
def test_lists_that_are_no_table_of_numbers_are_refused(values):
    with pytest.raises(InputError, match=r"must be numbers, got|rows differ in length"):
        Predictions.from_logits(values, [0] * len(values))
