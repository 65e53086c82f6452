"""The door: what comes in, what is refused, and what the one pass makes of it."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
import torch.nn.functional as F

from assay import Outcomes, Predictions, evaluate
from assay._core import arrays
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
        (lambda: Predictions.from_logits(LOGITS, [0.5, 1.0, 1.0]), "labels must be integer class indices, got float64"),
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
    z, y = torch.from_numpy(predictions.values).to(dtype), torch.from_numpy(predictions.labels)
    o = Predictions.from_logits(z, y).outcomes()
    log_p = z.double().log_softmax(1)
    p, at_label = log_p.exp(), log_p.gather(1, y[:, None]).squeeze(1)
    tolerance = 1e-12 if dtype is torch.float64 else 3e-6
    assert o.confidence.dtype == np.float64
    np.testing.assert_allclose(o.confidence, p.amax(1), rtol=0, atol=tolerance)
    np.testing.assert_allclose(o.nll, -at_label, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(o.brier, (p - F.one_hot(y, 10)).square().sum(1), rtol=0, atol=tolerance)
    np.testing.assert_allclose(o.entropy, torch.special.entr(p).sum(1), rtol=0, atol=10 * tolerance)
    if dtype is torch.float64:
        np.testing.assert_array_equal(o.correct, p.argmax(1) == y)


def test_chunks_do_not_show(predictions):
    """A million elements take several chunks; row by row they take one each."""
    wide = Predictions.from_logits(np.tile(predictions.values, 60), predictions.labels)
    whole = wide.outcomes()
    alone = [wide[i : i + 1].outcomes() for i in (0, 217, 218, 219, 1999)]
    for row, one in zip((0, 217, 218, 219, 1999), alone, strict=True):
        assert one.confidence.item() == whole.confidence[row]
        assert one.nll.item() == pytest.approx(whole.nll[row], rel=1e-7)


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
    z, y = predictions.values.astype(np.float64), predictions.labels
    expected = evaluate(Predictions.from_logits(z, y))
    assert evaluate(Predictions.from_logits(torch.from_numpy(z), torch.from_numpy(y))) == expected
    assert evaluate(Predictions.from_logits(z.tolist(), y.tolist())) == expected
    assert evaluate(Predictions.from_logits(z[::-1], y[::-1].astype(">i4"))) == pytest.approx(expected)


def test_probabilities_are_kept_as_given():
    """A logarithm and back would move .6 off the edge it lies on."""
    p = np.array([[0.6, 0.4], [0.2, 0.8], [1.0, 0.0]])
    given = Predictions.from_probabilities(p, [0, 1, 0])
    assert given.outcomes().confidence.tolist() == [0.6, 0.8, 1.0]
    assert given.logits[2].tolist() == [0.0, -np.inf]
    assert np.shares_memory(given.values, p)


def test_logits_and_their_probabilities_agree(predictions):
    z = predictions.values.astype(np.float64)
    by_logits = evaluate(Predictions.from_logits(z, predictions.labels))
    by_probabilities = evaluate(Predictions.from_probabilities(arrays.softmax(z), predictions.labels))
    assert by_probabilities == pytest.approx(by_logits, abs=1e-9)


def test_binary_logits_are_those_of_class_one():
    one, two = (
        Predictions.from_binary_logits([2.0, -1.0], [1, 1]),
        Predictions.from_logits([[0, 2.0], [0, -1.0]], [1, 1]),
    )
    np.testing.assert_array_equal(one.values, two.values)
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
    ranked = evaluate(Outcomes.from_scores(np.log(outcomes.confidence), outcomes.correct, is_probability=False))
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
    picked = a[[2, 0]] + a[a.confidence == 0.2]
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


class OnlyDLPack:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(self, x: torch.Tensor):
        self.x = x

    def __dlpack__(self, **how):
        return self.x.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class StaysOnItsDevice(OnlyDLPack):
    """As cupy: no conversion unless it is asked for."""

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


SCORES, ANSWERS = np.array([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0]]), [0, 2]
FOREIGN = {
    "lists": lambda: (SCORES.tolist(), ANSWERS),
    "a tuple of rows": lambda: (tuple(SCORES), tuple(ANSWERS)),
    "a memoryview": lambda: (memoryview(SCORES), np.array(ANSWERS, dtype=np.uint8)),
    "long doubles": lambda: (SCORES.astype(np.longdouble), np.array(ANSWERS)),
    "another byte order": lambda: (SCORES.astype(">f4"), np.array(ANSWERS, dtype=">i2")),
    "bfloat16 of jax": lambda: (SCORES.astype(ml_dtypes.bfloat16), np.array(ANSWERS)),
    "tensors": lambda: (torch.tensor(SCORES), torch.tensor(ANSWERS)),
    "tensors with gradient": lambda: (torch.tensor(SCORES, requires_grad=True), torch.tensor(ANSWERS)),
    "parameters": lambda: (torch.nn.Parameter(torch.tensor(SCORES)), torch.tensor(ANSWERS)),
    "bfloat16 tensors": lambda: (torch.tensor(SCORES).bfloat16(), torch.tensor(ANSWERS, dtype=torch.int32)),
    "a list of tensors": lambda: (list(torch.tensor(SCORES)), list(torch.tensor(ANSWERS))),
    "a negated view": lambda: (torch._neg_view(-torch.tensor(SCORES)), torch.tensor(ANSWERS)),
    "DLPack alone": lambda: (OnlyDLPack(torch.tensor(SCORES)), OnlyDLPack(torch.tensor(ANSWERS))),
    "a device that is not left unasked": lambda: (StaysOnItsDevice(torch.tensor(SCORES)), ANSWERS),
    "pandas": lambda: (pd.DataFrame(SCORES), pd.Series(ANSWERS)),
    "pandas on Arrow": lambda: (
        pd.DataFrame(SCORES).astype("double[pyarrow]"),
        pd.Series(ANSWERS, dtype="int64[pyarrow]"),
    ),
    "pandas with missing values allowed": lambda: (
        pd.DataFrame(SCORES).astype("Float64"),
        pd.Series(ANSWERS, dtype="Int64"),
    ),
    "pandas of objects": lambda: (pd.DataFrame(SCORES).astype(object), pd.Series(ANSWERS).astype(object)),
    "a pandas column of lists": lambda: (pd.Series(SCORES.tolist()), pd.Series(ANSWERS)),
    "a pandas column of arrays": lambda: (pd.Series(list(SCORES)), pd.Series(ANSWERS).astype("category")),
    "a pandas column of Arrow lists": lambda: (
        pd.Series(SCORES.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
        pd.Series(ANSWERS),
    ),
    "polars": lambda: (pl.DataFrame(SCORES), pl.Series(ANSWERS)),
    "a polars column of lists": lambda: (pl.Series(SCORES.tolist()), pl.Series(ANSWERS)),
    "a polars column of arrays": lambda: (
        pl.Series(SCORES.tolist(), dtype=pl.Array(pl.Float64, 3)),
        pl.Series(ANSWERS),
    ),
    "an Arrow column of lists": lambda: (pa.array(SCORES.tolist()), pa.array(ANSWERS)),
    "an Arrow column of vectors": lambda: (
        pa.FixedSizeListArray.from_arrays(pa.array(SCORES.ravel()), 3),
        pa.array(ANSWERS),
    ),
    "an Arrow column in chunks": lambda: (
        pa.chunked_array([pa.array(SCORES[:1].tolist()), pa.array(SCORES[1:].tolist())]),
        pa.chunked_array([[0], [2]]),
    ),
    "an Arrow table": lambda: (pa.table({"a": SCORES[:, 0], "b": SCORES[:, 1], "c": SCORES[:, 2]}), pa.array(ANSWERS)),
}


@pytest.mark.parametrize("library", FOREIGN)
def test_arrays_of_other_libraries_enter(library):
    logits, labels = FOREIGN[library]()
    found = Predictions.from_logits(logits, labels)
    assert isinstance(found.values, np.ndarray)
    assert found.labels.tolist() == ANSWERS
    np.testing.assert_array_equal(found.values, SCORES)


def test_tensors_on_the_cpu_are_not_copied():
    logits = torch.tensor(SCORES)
    assert np.shares_memory(Predictions.from_logits(logits, ANSWERS).values, logits.numpy())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "logits must be an array, got NoneType"),
        ({"a": 1}, "logits must be an array, got dict"),
        ((row for row in SCORES), "logits must be an array, got generator"),
        (SCORES + 1j, "row 0: logits must be numbers, got '(2+1j)'"),
        (SCORES.astype("M8[s]"), "row 0: logits must be numbers"),
        (np.ma.masked_array(SCORES, [[0, 0, 1], [0, 0, 0]]), "row 0, class 2: logits is missing"),
        (torch.zeros(2, 3, device="meta"), "logits cannot be read as an array"),
        (torch.tensor(SCORES).to_sparse(), "logits cannot be read as an array"),
        (pd.DataFrame({"a": [1.0, None], "b": [2.0, 3.0]}), "row 1, class 0: logit is nan"),
        (pd.DataFrame({"a": ["1.0", "x"], "b": [2.0, 3.0]}), "row 1: logits must be numbers, got 'x'"),
        (pa.array([[1.0, 2.0], [1.0]]), "logits: rows differ in length, row 1 has 1 and row 0 2"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(values, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Predictions.from_logits(values, ANSWERS)


def test_labels_that_are_whole_numbers_may_be_floats():
    """As XGBoost has them."""
    assert Predictions.from_logits(LOGITS, [0.0, 1.0, 1.0]).labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize("make", [Predictions.from_logits, Predictions.from_probabilities])
def test_labels_can_be_names_of_the_columns(make):
    values, names = [[0.75, 0.25], [0.5, 0.5]], np.array(["dog", "cat"])
    found = make(values, ["cat", "dog"], classes=names)
    assert found.labels.tolist() == [1, 0]
    assert found.classes == ("dog", "cat")
    with pytest.raises(InputError, match="row 1: label 'eel' is none of the classes dog, cat"):
        make(values, ["cat", "eel"], classes=names)
    with pytest.raises(InputError, match="must name each of the 2 columns once"):
        make(values, ["cat", "dog"], classes=["cat"])


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"cluster": ["a", None, "b"]}, "row 1: cluster is None"),
        ({"cluster": ["a", "b", float("nan")]}, "row 2: cluster is nan"),
        ({"cluster": pd.to_datetime(["2020-01-01", None, "2020-01-02"])}, "row 1: cluster is NaT"),
        ({"group": pd.array(["a", pd.NA, "b"], dtype="string")}, "row 1: group is <NA>"),
        ({"cluster": [1.0, 2.0, float("nan")]}, "row 2: cluster is nan"),
        ({"weights": [1e308, 1.0, 1.0]}, "row 0: weight is 1e.308; weights must lie from"),
        ({"weights": [1.0, 1e-320, 1.0]}, "row 1: weight is 1e-320; weights must lie from"),
    ],
)
def test_columns_that_say_nothing_about_a_row_are_refused(columns, problem):
    with pytest.raises(InputError, match=problem):
        Outcomes.from_scores([0.9, 0.8, 0.7], [1, 0, 1], **columns)
