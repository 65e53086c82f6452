"""A shipped model gives what was calibrated: in torch, in ONNX, in scikit-learn."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import gaussian_predictions
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from assay import evaluate, maps
from assay._core.arrays import InputError
from assay.calibrators import CALIBRATORS, auto, fixed_temperature, histogram, temperature
from assay.nn.deploy import _module, _onnx, calibrate_onnx, calibrated, export_onnx, random_inputs
from assay.nn.maps import CALLS, answer, torch_map
from assay.predictions import Predictions
from assay.selective import SelectiveClassifier
from assay.sklearn import CalibratedClassifier
from assay.thresholds import choose_positive_threshold, choose_threshold

HELD_OUT, TEST = gaussian_predictions(2000, 4, seed=0), gaussian_predictions(500, 4, seed=1)
LOGITS = torch.from_numpy(TEST.logits)
FIT = maps.Fit("", 1.0, 0.0, 1, 1)


def records(k: int) -> list[maps.LogitMap | maps.ConfidenceMap]:
    """A map of every kind, with numbers that no fit would give."""
    rng = np.random.default_rng(k)
    of_confidence = [
        maps.Steps(FIT, np.array([0.1, 0.5, 0.75, 1.0]), np.array([0.0, 0.6, 0.3, 1.0])),
        maps.Steps(FIT, np.array([1.0]), np.array([0.4])),
        maps.Curve(FIT, np.array([0.1, 0.4, 0.9]), np.array([0.0, 0.5, 1.0])),
        maps.Curve(FIT, np.array([0.5]), np.array([0.7])),
        maps.Logistic(FIT, 1.5, 0.7, -0.2),
        maps.Logistic(FIT, 0.0, 40.0, 3.0),
    ]
    pairs = zip(of_confidence[::2], of_confidence[1::2], strict=True)
    return [
        maps.Temperature(FIT, 1.7, k),
        *(maps.Affine(FIT, rng.normal(1, 0.1, k), rng.normal(size=k), flag) for flag in (False, True)),
        *(
            maps.Affine(FIT, np.eye(k) / 2 + rng.normal(0, 0.01, (k, k)), rng.normal(size=k), flag)
            for flag in (False, True)
        ),
        maps.Ensemble(FIT, 2.0, np.array([0.5, 0.4, 0.1]), k),
        maps.Ensemble(FIT, 2.0, np.array([0.5, 0.5, 0.0]), k),
        *(maps.OneVsRest(FIT, (first, *[second] * (k - 1))) for first, second in pairs),
        *of_confidence,
        maps.ScoreLogistic(replace(FIT, before=None), 2.5, -1.0),
    ]


def inputs(k: int) -> np.ndarray:
    """Logits with probabilities of 0, of exactly 1, tied at the top, and very near 1."""
    z = np.random.default_rng(0).normal(0, 2, (300, k))
    z[:50, 0] = -np.inf
    z[50:100, 1:] = -np.inf
    z[100:110] = 0
    z[110:150, 1] = 100
    return z


@pytest.mark.parametrize("k", [2, 10])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_numpy_and_torch_read_a_map_alike(k, dtype, tolerance):
    z = inputs(k).astype(dtype)
    c = np.append(np.linspace(0, 1, 101), [0.1, 0.4, 0.5, 0.75, 0.9]).astype(dtype)
    kinds = set()
    for mapping in records(k):
        kinds.add(type(mapping))
        given = c if isinstance(mapping, maps.ConfidenceMap) else z
        ours, theirs = mapping(given), torch_map(mapping)(torch.from_numpy(given)).numpy()
        assert ours.dtype == theirs.dtype == dtype
        logs = isinstance(mapping, maps.LogitMap) and mapping.gives == "log-probabilities"
        assert np.allclose(*(np.exp(x) if logs else x for x in (ours, theirs)), rtol=tolerance, atol=tolerance), mapping
    assert kinds == set(CALLS)


@pytest.mark.parametrize("k", [2, 10])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_numpy_and_torch_answer_alike(k, dtype, tolerance):
    z = inputs(k).astype(dtype)
    cooled = maps.Temperature(FIT, 1.7, k)
    for mapping in (None, *records(k)[:-1], *(maps.Sequence(FIT, (cooled, last)) for last in records(k)[-7:-1])):
        ours, theirs = maps.answer(mapping, z), answer(mapping, torch.from_numpy(z))
        assert np.array_equal(ours.label, theirs.label), mapping
        assert ours.probabilities.dtype == theirs.probabilities.numpy().dtype == dtype
        assert np.allclose(ours.probabilities, theirs.probabilities, rtol=0, atol=tolerance), mapping
        assert np.allclose(ours.confidence, theirs.confidence, rtol=0, atol=tolerance), mapping


def test_half_precision_is_mapped_in_single():
    for mapping in records(4):
        given = np.float16([0.2, 0.9]) if isinstance(mapping, maps.ConfidenceMap) else np.float16(TEST.logits[:5])
        assert mapping(given).dtype == np.float32
        assert torch_map(mapping)(torch.from_numpy(given)).dtype == torch.float32


@pytest.mark.parametrize("name", CALIBRATORS)
def test_a_calibrated_module_gives_what_the_map_gives(name):
    mapping = CALIBRATORS[name](HELD_OUT)
    given = calibrated(nn.Identity(), mapping, threshold=0.8)(LOGITS)
    expected = maps.apply(mapping, TEST).outcomes()
    assert np.allclose(given.confidence, expected.confidence, atol=1e-6)
    assert np.array_equal(given.logits.argmax(1).numpy() == TEST.labels, expected.correct)
    assert np.array_equal(given.accept, expected.confidence >= 0.8)


def test_without_a_threshold_all_is_accepted():
    assert calibrated(nn.Identity(), None)(LOGITS).accept.all()
    assert not calibrated(nn.Identity(), None, choose_threshold(HELD_OUT[:20], risk=0.01))(LOGITS).accept.any()


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3 * self.layers(x)


def run(file, **inputs):
    from onnxruntime import InferenceSession

    session = InferenceSession(str(file))
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True)), session


EXPORTED = [
    *("temperature", "matrix", "ensemble_temperature", "temperature_histogram", "isotonic"),
    *("histogram_one_vs_rest", "isotonic_one_vs_rest"),
]


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_file_agrees_with_torch_at_any_batch_size(name, tmp_path):
    torch.manual_seed(0)
    model, mapping = Small().eval(), CALIBRATORS[name](HELD_OUT)
    export_onnx(
        model, mapping, tmp_path / "m.onnx", example=torch.randn(8, 1, 4, 4), threshold=0.7, metadata={"data": "none"}
    )
    x = torch.randn(33, 1, 4, 4)
    with torch.no_grad():
        expected = calibrated(model, mapping, 0.7)(x)
    found, session = run(tmp_path / "m.onnx", input=x.numpy())
    assert list(found) == ["logits", "probabilities", "confidence", "accept"]
    close = np.abs(found["confidence"] - 0.7) > 1e-5
    assert found["probabilities"] == pytest.approx(expected.probabilities.numpy(), abs=1e-5)
    assert np.array_equal(found["accept"][close], expected.accept.numpy()[close])
    about = session.get_modelmeta().custom_metadata_map
    assert about["map"] == str(mapping)
    assert about["threshold"] == "0.7"
    assert about["data"] == "none"


def test_maps_of_many_classes_are_few_nodes(tmp_path):
    """Unrolled over its classes, a file of 1,000 took a quarter of an hour to write."""
    import onnx

    logits = np.random.default_rng(0).normal(0, 3, (600, 300)).astype(np.float32)
    mapping = CALIBRATORS["isotonic_one_vs_rest"](Predictions.from_logits(logits, logits.argmax(1)))
    export_onnx(nn.Identity(), mapping, tmp_path / "m.onnx", example=torch.from_numpy(logits[:8]))
    assert len(onnx.load(str(tmp_path / "m.onnx")).graph.node) < 100


@pytest.mark.parametrize("wrong", [1e-3, np.nan])
def test_a_file_that_disagrees_is_not_written(tmp_path, monkeypatch, wrong):
    """It is held against the map in numpy: one row that onnxruntime gets wrong, or gives no number for, is enough."""
    run_rightly = _onnx.run

    def run_wrongly(*given):
        logits, probabilities = run_rightly(*given)[:2]
        probabilities[3] += wrong
        return [logits, probabilities]

    monkeypatch.setattr(_onnx, "run", run_wrongly)
    (tmp_path / "m.onnx").write_text("old")
    with pytest.raises(InputError, match="was not written"):
        export_onnx(Small(), temperature(HELD_OUT), tmp_path / "m.onnx", example=torch.randn(8, 1, 4, 4))
    assert (tmp_path / "m.onnx").read_text() == "old"


def export_module(mapping, folder):
    export_onnx(nn.Identity(), mapping, folder / "m.onnx", example=LOGITS)


def export_classifier(mapping, folder):
    pytest.importorskip("skl2onnx")
    fitted = LogisticRegression().fit(HELD_OUT.logits, HELD_OUT.labels)
    export_onnx(fitted, mapping, folder / "m.onnx", example=TEST.logits)


def add_to_a_file(mapping, folder):
    example = {"input": TEST.logits}
    export_onnx(nn.Identity(), None, folder / "plain.onnx", example=LOGITS)
    calibrate_onnx(folder / "plain.onnx", mapping, folder / "m.onnx", example=example, output="logits")


@pytest.mark.parametrize("export", [export_module, export_classifier, add_to_a_file])
def test_a_file_is_held_against_numpy_not_against_torch(tmp_path, monkeypatch, export):
    """A module that leaves its map out agrees with what is exported of it."""
    monkeypatch.setattr(_module, "answer", lambda mapping, logits: answer(None, logits))
    with pytest.raises(InputError, match="onnxruntime and the map differ"):
        export(fixed_temperature(HELD_OUT, t=3.0), tmp_path)
    assert not (tmp_path / "m.onnx").exists()


def test_a_map_is_added_to_a_finished_onnx_model(tmp_path):
    model, mapping = Small().eval(), histogram(HELD_OUT)
    export_onnx(model, None, tmp_path / "plain.onnx", example=torch.randn(8, 1, 4, 4))
    x = torch.randn(20, 1, 4, 4)
    with pytest.raises(InputError, match="several outputs"):
        calibrate_onnx(tmp_path / "plain.onnx", mapping, tmp_path / "m.onnx", example={"input": x.numpy()})
    calibrate_onnx(
        tmp_path / "plain.onnx",
        mapping,
        tmp_path / "m.onnx",
        example={"input": x.numpy()},
        output="logits",
        threshold=0.5,
    )
    fresh = torch.randn(7, 1, 4, 4)
    found, _ = run(tmp_path / "m.onnx", input=fresh.numpy())
    with torch.no_grad():
        expected = calibrated(model, mapping, 0.5)(fresh)
    assert found["probabilities"] == pytest.approx(expected.probabilities.numpy(), abs=1e-5)
    assert found["logits"] == pytest.approx(expected.logits.numpy(), abs=1e-5)


def blobs(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = rng.normal(size=(n, 8))
    x[:, :3] += 1.2 * np.eye(3)[y]
    return np.repeat(x, 2, 1), np.array(["a", "b", "c"])[y]  # doubled features: naive Bayes is over-confident


@pytest.mark.parametrize("name", ["temperature", "vector", "isotonic", "auto"])
def test_an_overconfident_estimator_is_mended(name):
    (x, y), (u, v) = blobs(2000, 0), blobs(2000, 1)
    plain = GaussianNB().fit(x, y)
    model = CalibratedClassifier(GaussianNB(), calibrator=name).fit(x, y)
    labels = np.searchsorted(model.classes_, v)
    before, after = (
        evaluate(Predictions.from_probabilities(m.predict_proba(u), labels))["ece"] for m in (plain, model)
    )
    assert after < before / 2
    assert model.score(u, v) > 0.99 * plain.score(u, v)


def test_a_fitted_estimator_is_taken_as_it_is():
    (x, y), (u, v) = blobs(500, 0), blobs(500, 1)
    plain = GaussianNB().fit(x, y)
    model = CalibratedClassifier(plain, cv="prefit").fit(u, v)
    assert model.estimator_ is plain
    assert np.array_equal(model.predict(x), plain.predict(x))


def test_zero_probabilities_of_trees_are_no_obstacle():
    x, y = blobs(400, 0)
    model = CalibratedClassifier(RandomForestClassifier(5, max_depth=2, random_state=0)).fit(x, y)
    assert np.isfinite(model.predict_proba(x)).all()


def test_an_unknown_calibrator_is_named():
    with pytest.raises(InputError, match="unknown calibrator 'tmp'"):
        CalibratedClassifier(LogisticRegression(), calibrator="tmp").fit(*blobs(50, 0))


@pytest.mark.filterwarnings("ignore:no finite temperature")  # some of their data are told apart without an error
@parametrize_with_checks([CalibratedClassifier(LogisticRegression(), cv=3)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_auto_is_a_calibrator_like_the_others():
    assert CALIBRATORS["auto"] is auto


@pytest.mark.parametrize("opset", [13, 17])
def test_an_older_onnx_model_is_raised(tmp_path, opset):
    from onnx import TensorProto, helper, save

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "z")]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "x"], ["z"])], "g", value[:1], value[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), tmp_path / "old.onnx")
    mapping = temperature(HELD_OUT)
    example = {"x": np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)}
    calibrate_onnx(tmp_path / "old.onnx", mapping, tmp_path / "new.onnx", example=example)
    found, _ = run(tmp_path / "new.onnx", **example)
    assert found["logits"] == pytest.approx(example["x"] ** 2 / mapping.t, abs=1e-5)
    of_five = temperature(gaussian_predictions(200, 5, seed=0))
    with pytest.raises(InputError, match="5 classes and these predictions have 4"):
        calibrate_onnx(tmp_path / "old.onnx", of_five, tmp_path / "other.onnx", example=example)
    with pytest.raises(InputError, match="cannot be run on x"):
        calibrate_onnx(tmp_path / "old.onnx", mapping, tmp_path / "other.onnx", example={"x": example["x"][:, :3]})


def odd_model(kind: str) -> object:
    """An ONNX model that cannot be calibrated, by what is wrong with it."""
    from onnx import TensorProto, helper

    shape = None if kind == "no shape" else ["n", 4]
    name = "probabilities" if kind == "a name" else "x"
    of_x = TensorProto.UNDEFINED if kind == "no type" else TensorProto.FLOAT
    x = [] if kind == "no input" else [helper.make_tensor_value_info(name, of_x, shape)]
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 4])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [1, 4], [np.nan if kind == "nan" else 1.0] * 4)
    if kind == "elsewhere":
        weights.ClearField("float_data")
        weights.data_location = TensorProto.EXTERNAL
        weights.external_data.add(key="location", value="../../nowhere.bin")
    inputs = ["w", "w"] if kind == "no input" else [name, "w"]
    graph = helper.make_graph([helper.make_node("Mul", inputs, ["z"])], "g", x, [z], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("kind", ["no shape", "no type", "no input", "a name", "elsewhere", "nan", "cut off"])
def test_a_model_that_cannot_be_calibrated_is_refused_before_anything_is_written(tmp_path, kind):
    content = odd_model(kind).SerializeToString()
    (tmp_path / "odd.onnx").write_bytes(content[:40] if kind == "cut off" else content)
    mapping = temperature(HELD_OUT)
    with pytest.raises(InputError, match=r"odd\.onnx: "):
        calibrate_onnx(
            tmp_path / "odd.onnx", mapping, tmp_path / "m.onnx", example=random_inputs(tmp_path / "odd.onnx")
        )
    assert not (tmp_path / "m.onnx").exists()


def test_classes_that_an_estimator_does_not_know_are_named():
    x = np.random.default_rng(0).normal(size=(60, 2))
    names = np.repeat(["a", "b", "c"], 20)
    fitted = LogisticRegression().fit(x[names != "b"], names[names != "b"])
    with pytest.raises(InputError, match="row 20: the estimator was not fitted on class b"):
        CalibratedClassifier(fitted, cv="prefit").fit(x, names)


def test_probabilities_are_not_taken_for_logits(tmp_path):
    """Dividing probabilities by a temperature would flatten them all."""
    from onnx import TensorProto, helper, save

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "p")]
    graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["p"])], "g", value[:1], value[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "p.onnx")
    example = {"x": LOGITS.float().numpy()}
    probabilities = LOGITS.float().softmax(1).numpy()
    mapping = temperature(Predictions.from_probabilities(probabilities, TEST.labels))
    with pytest.raises(InputError, match="'p' gives probabilities, not logits"):
        calibrate_onnx(tmp_path / "p.onnx", mapping, tmp_path / "m.onnx", example=example)
    with pytest.raises(InputError, match="the model gives probabilities, not logits"):
        export_onnx(nn.Softmax(1), mapping, tmp_path / "m.onnx", example=LOGITS)
    calibrate_onnx(tmp_path / "p.onnx", mapping, tmp_path / "m.onnx", example=example, gives="probabilities")
    found, _ = run(tmp_path / "m.onnx", **example)
    expected = maps.apply(mapping, Predictions.from_probabilities(probabilities, TEST.labels))
    assert found["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
    with pytest.raises(InputError, match="fitted on logits and these are probabilities"):
        calibrate_onnx(
            tmp_path / "p.onnx",
            CALIBRATORS["matrix"](HELD_OUT),
            tmp_path / "m.onnx",
            example=example,
            gives="probabilities",
        )


class TwoInputs(nn.Module):
    """As a language model has it: inputs by name, and a record of outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.last = nn.Embedding(50, 8), nn.Linear(8, 4)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        words = self.words(ids) * mask[..., None]
        return {"hidden": words, "logits": self.last(words.mean(1))}


def test_a_model_of_several_inputs_is_exported_by_name(tmp_path):
    torch.manual_seed(0)
    model, mapping = TwoInputs().eval(), temperature(HELD_OUT)
    batch = {"ids": torch.randint(50, (6, 5)), "mask": torch.ones(6, 5)}
    expected = maps.answer(mapping, model(**batch)["logits"].detach().numpy()).probabilities
    assert calibrated(model, mapping)(**batch).probabilities.detach().numpy() == pytest.approx(expected, abs=1e-6)
    export_onnx(model, mapping, tmp_path / "m.onnx", example=batch, opset=20)
    found, session = run(tmp_path / "m.onnx", **{name: x.numpy() for name, x in batch.items()})
    assert [x.name for x in session.get_inputs()] == ["ids", "mask"]
    assert found["probabilities"] == pytest.approx(expected, abs=1e-5)
    export_onnx(model, mapping, tmp_path / "m.onnx", example=tuple(batch.values()), input_names=["a", "b"])
    assert [
        x.name for x in run(tmp_path / "m.onnx", a=batch["ids"].numpy(), b=batch["mask"].numpy())[1].get_inputs()
    ] == ["a", "b"]
    unnamed = nn.Sequential(model_of := nn.Linear(3, 3))
    assert calibrated(unnamed, None, logits=lambda z: z + 1)(torch.zeros(1, 3)).logits.equal(model_of.bias[None] + 1)


def test_map_and_threshold_are_in_the_state_dict(tmp_path):
    from safetensors.torch import load_file, save_file

    fitted = calibrated(nn.Linear(4, 4), CALIBRATORS["temperature_histogram"](HELD_OUT), 0.6)
    save_file(fitted.state_dict(), tmp_path / "m.safetensors")
    fresh = calibrated(nn.Linear(4, 4), None)
    fresh.load_state_dict(load_file(tmp_path / "m.safetensors"))
    assert fresh.threshold == 0.6
    assert all(a.equal(b) for a, b in zip(fresh(LOGITS.float()), fitted(LOGITS.float()), strict=True))


def test_a_threshold_of_class_1_decides_by_its_probability(tmp_path):
    two = gaussian_predictions(3000, 2, seed=3)
    mapping = temperature(two)
    mapped = maps.apply(mapping, two)
    chosen = choose_positive_threshold(mapped, recall=0.9)
    module = calibrated(nn.Identity(), mapping, chosen)
    answer_1 = mapped.probabilities[:, 1] >= chosen.value
    assert np.array_equal(module(torch.tensor(two.logits)).accept.numpy(), answer_1)
    assert not np.array_equal(answer_1, mapped.outcomes().confidence >= chosen.value)
    again = calibrated(nn.Identity(), None)
    again.load_state_dict(module.state_dict())
    assert np.array_equal(again(torch.tensor(two.logits)).accept.numpy(), answer_1)
    export_onnx(nn.Identity(), mapping, tmp_path / "m.onnx", example=torch.tensor(two.logits), threshold=chosen)
    outputs, session = run(tmp_path / "m.onnx", input=two.logits)
    assert np.array_equal(outputs["accept"], answer_1)
    assert session.get_modelmeta().custom_metadata_map["threshold_of"] == "probability of class 1"
    with pytest.raises(InputError, match="its promise does not hold"):
        calibrated(nn.Identity(), None, chosen)
    with pytest.raises(InputError, match="from where on to answer class 1"):
        SelectiveClassifier(nn.Identity(), mapping, chosen)


def test_a_calibrated_module_survives_torch_export(tmp_path):
    fitted = calibrated(nn.Linear(4, 4), temperature(HELD_OUT), 0.6)
    torch.export.save(torch.export.export(fitted, (LOGITS.float(),)), tmp_path / "m.pt2")
    again = torch.export.load(tmp_path / "m.pt2").module()
    for a, b in zip(again(LOGITS.float()), fitted(LOGITS.float()), strict=True):
        assert torch.equal(a, b)


def of_scikit_learn(name):
    """A fitted classifier, and the rows it has not seen."""
    x, y = blobs(500, 0)
    x = x.astype(np.float32)
    if name == "probabilities":
        return make_pipeline(StandardScaler(), GaussianNB()).fit(x[:300], y[:300]), x[300:], y[300:]
    if name == "calibrated":
        forest = make_pipeline(StandardScaler(), RandomForestClassifier(10, max_depth=4, random_state=0))
        return CalibratedClassifier(forest, "temperature", cv=3).fit(x[:300], y[:300]), x[300:], y[300:]
    return CalibratedClassifier(LinearSVC(), cv=3).fit(x[:300], y[:300] == "a"), x[300:], y[300:] == "a"


@pytest.mark.parametrize("name", ["probabilities", "calibrated", "one margin"])
def test_a_classifier_of_scikit_learn_is_exported_with_its_map(name, tmp_path):
    pytest.importorskip("skl2onnx")
    model, x, y = of_scikit_learn(name)
    given = Predictions.from_probabilities(model.predict_proba(x), np.searchsorted(model.classes_, y))
    mapping = temperature(given) if name == "probabilities" else None
    after = given if mapping is None else maps.apply(mapping, given)
    export_onnx(model, mapping, tmp_path / "m.onnx", example=x[:50], threshold=choose_threshold(after, coverage=0.5))
    found, session = run(tmp_path / "m.onnx", X=x)
    assert found["probabilities"] == pytest.approx(after.probabilities, abs=1e-5)
    assert found["accept"].mean() == pytest.approx(0.5, abs=0.02)
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    if name != "probabilities":
        assert (np.array(classes)[found["logits"].argmax(1)] == model.predict(x)).all()


def test_a_map_of_logits_is_not_put_behind_probabilities_of_scikit_learn(tmp_path):
    model, x, _ = of_scikit_learn("probabilities")
    with pytest.raises(InputError, match="fitted on logits and these are probabilities"):
        export_onnx(model, CALIBRATORS["matrix"](gaussian_predictions(300, 3, seed=0)), tmp_path / "m", example=x)
