"""Inputs as people have them: each is read with the right numbers, or refused in one line that says what to do."""

from __future__ import annotations

import gzip
import json
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy.special import softmax
from test_cli import run as run

from assay import Outcomes, Predictions, audit, compare, evaluate, files
from assay._core.arrays import InputError
from assay.files import Columns
from assay.study import read_study

N = 40
RNG = np.random.default_rng(0)
Z = RNG.normal(0, 2, (N, 3)).round(3)
P = softmax(Z, 1)
Y = RNG.integers(0, 3, N)
NAMES = np.array(["cat", "dog", "eel"])
TWO = (RNG.random(N) < 0.4).astype(int)
ONE = np.clip(0.6 * RNG.random(N) + 0.3 * TWO, 0.01, 0.99).round(3)  # of class 1
SURE, RIGHT = P.max(1).round(4), P.argmax(1) == Y
HIT = RIGHT.astype(int)

LOGITS = Predictions.from_logits(Z, Y)
PROBABILITIES = Predictions.from_probabilities(P, Y)
BINARY = Predictions.from_binary_probabilities(ONE, TWO)
SCORES = Outcomes.from_scores(SURE, RIGHT)
Z_, P_ = ["--logits", "z_*", "--label", "y"], ["--probabilities", "p_*", "--label", "y"]
B_, C_ = ["--positive", "p", "--label", "y"], ["--confidence", "c", "--correct", "ok"]


def frame(values=Z, prefix="z", labels=Y, names=range(3)):
    return pd.DataFrame(values, columns=[f"{prefix}_{name}" for name in names]).assign(y=labels)


def two(labels=TWO, p=ONE):
    return pd.DataFrame({"p": p, "y": labels})


def scored(correct=HIT, c=SURE):
    return pd.DataFrame({"c": c, "ok": correct})


def csv(table, **options):
    return lambda path: table.to_csv(path, index=False, **options)


def text(content):
    return lambda path: path.write_text(content)


def gz(content):
    return lambda path: path.write_bytes(gzip.compress(content.encode()))


def zstd(content):
    def write(path):
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(content.encode())

    return write


def lines(table):
    return "".join(json.dumps(row) + "\n" for row in table.to_dict("records"))


def npz(**arrays):
    return lambda path: np.savez(path, **arrays)


def npy(**arrays):
    """Arrays beside each other, one a file."""

    def write(path):
        for name, x in arrays.items():
            np.save(path.parent / f"{name}.npy", x)

    return write


def damaged(path):
    npy(labels=Y)(path)
    path.write_text("no array")


def arrow(table):
    def write(path):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.schema(table.schema)) as writer:
            writer.write_table(table)

    return write


COMMA = scored(c=[f"{x:.4f}".replace(".", ",") for x in SURE])
PER_CENT = scored(c=[f"{100 * x:.2f}%" for x in SURE])
WORDS = np.where(RIGHT, "yes", "no")
WITH_IGNORED = pd.concat([frame(), frame(Z[:5], labels=-100)])
ROUNDED = P.round(2) + np.array([0.01, 0, 0])
ANSWERS = pd.DataFrame({"c": SURE, "answer": NAMES[P.argmax(1)], "y": NAMES[Y]})

ACCEPTED = {
    "csv of logits": ("x.csv", csv(frame()), Z_, LOGITS),
    "csv of probabilities": ("x.csv", csv(frame(P, "p")), P_, PROBABILITIES),
    "tsv": ("x.tsv", csv(frame(), sep="\t"), Z_, LOGITS),
    "csv with semicolons": ("x.csv", csv(frame(), sep=";"), Z_, LOGITS),
    "csv with tabs": ("x.csv", csv(frame(), sep="\t"), Z_, LOGITS),
    "csv with pipes": ("x.csv", csv(frame(), sep="|"), Z_, LOGITS),
    "Excel's csv with a byte order mark": ("x.csv", csv(frame(), encoding="utf-8-sig"), Z_, LOGITS),
    "csv with Windows line ends": ("x.csv", csv(frame(), lineterminator="\r\n"), Z_, LOGITS),
    "semicolons and decimal commas": ("x.csv", csv(COMMA, sep=";"), [*C_, "--decimal", ","], SCORES),
    "quoted decimal commas": ("x.csv", csv(COMMA), [*C_, "--decimal", ","], SCORES),
    "85%": ("x.csv", csv(PER_CENT), [*C_, "--percent"], SCORES),
    "per cents without the sign": ("x.csv", csv(scored(c=100 * SURE)), [*C_, "--percent"], SCORES),
    "per cents of classes": ("x.csv", csv(frame(100 * P, "p")), [*P_, "--percent"], PROBABILITIES),
    "csv.gz": ("x.csv.gz", gz(frame().to_csv(index=False)), Z_, LOGITS),
    "csv.zst": ("x.csv.zst", zstd(frame().to_csv(index=False)), Z_, LOGITS),
    "JSON Lines": ("x.jsonl", text(lines(scored())), C_, SCORES),
    "JSON Lines of vectors": (
        "x.jsonl",
        text("".join(json.dumps({"logits": z, "labels": int(y)}) + "\n" for z, y in zip(Z.tolist(), Y, strict=True))),
        [],
        LOGITS,
    ),
    "JSON Lines, gz": ("x.jsonl.gz", gz(lines(scored())), C_, SCORES),
    "JSON Lines, zst": ("x.jsonl.zst", zstd(lines(scored())), C_, SCORES),
    "Feather": ("x.feather", lambda path: pa.feather.write_feather(frame(), str(path)), Z_, LOGITS),
    "Arrow": ("x.arrow", arrow(pa.table({"logits": Z.tolist(), "labels": Y})), [], LOGITS),
    "Parquet of pandas": ("x.parquet", lambda path: frame().to_parquet(path), Z_, LOGITS),
    "Parquet of polars": ("x.parquet", lambda path: pl.DataFrame(frame()).write_parquet(path), Z_, LOGITS),
    "npz": ("x.npz", npz(logits=Z, labels=Y), [], LOGITS),
    "npz in half precision": ("x.npz", npz(logits=Z.astype(np.float16), labels=Y), [], None),
    "npz with names of classes": ("x.npz", npz(logits=Z, labels=NAMES[Y], classes=NAMES), [], LOGITS),
    "a pair of npy": ("logits.npy", npy(logits=Z, labels=Y), [], LOGITS),
    "npy under other names": ("val_z.npy", npy(val_z=Z, val_y=Y), ["--logits", "val_z", "--label", "val_y"], LOGITS),
    "labels as names of the columns": ("x.csv", csv(frame(labels=NAMES[Y], names=NAMES)), Z_, LOGITS),
    "names by flag": ("x.csv", csv(frame(labels=NAMES[Y])), [*Z_, "--classes", "cat,dog,eel"], LOGITS),
    "labels 3.0": ("x.csv", csv(frame(labels=Y.astype(float))), Z_, LOGITS),
    "yes and no": ("x.csv", csv(two(np.where(TWO, "yes", "no"))), B_, BINARY),
    "True and False": ("x.csv", csv(two(TWO.astype(bool))), B_, BINARY),
    "Y and N": ("x.csv", csv(two(np.where(TWO, "Y", "N"))), B_, BINARY),
    "two names": ("x.csv", csv(two(np.where(TWO, "spam", "ham"))), [*B_, "--positive-label", "spam"], BINARY),
    "correct as yes and no": ("x.csv", csv(scored(WORDS)), C_, SCORES),
    "correct as true and false": ("x.csv", csv(scored(RIGHT)), C_, SCORES),
    "answers and labels": ("x.csv", csv(ANSWERS), ["--confidence", "c", "--answer", "answer", "--label", "y"], SCORES),
    "-100 as ignore": ("x.csv", csv(WITH_IGNORED), [*Z_, "--ignore", "-100"], LOGITS),
    "rows that sum to .99": ("x.csv", csv(frame(ROUNDED, "p")), [*P_, "--normalize"],
                             Predictions.from_probabilities(ROUNDED / ROUNDED.sum(1, keepdims=True), Y)),
    "logits that sum to 1 by chance": ("x.csv", csv(frame(P)), [*Z_, "--yes"], Predictions.from_logits(P, Y)),
}  # fmt: skip

SEVERAL = (RNG.random((N, 3)) < 0.5).astype(int)
LABELS = pd.DataFrame(SEVERAL, columns=["y_0", "y_1", "y_2"])
REFUSED = {
    "85% without a flag": ("x.csv", csv(PER_CENT), C_, "%' is read by --percent"),
    "0,85 without a flag": ("x.csv", csv(COMMA, sep=";"), C_, "is read by --decimal ,"),
    "--percent of shares": ("x.csv", csv(scored()), [*C_, "--percent"], "there are no per cents: the largest is 0.9"),
    "per cents": ("x.csv", csv(scored(c=100 * SURE)), C_, "divide per cents by 100"),
    "per cents of classes": ("x.csv", csv(frame(100 * P, "p")), P_, "divide per cents by 100, or say --percent"),
    "probabilities as logits": ("x.csv", csv(frame(P)), Z_, "look like probabilities, each row sums to 1; say --prob"),
    "logits as probabilities": ("x.csv", csv(frame(Z, "p")), P_, "these look like logits"),
    "rows that sum to .99": ("x.csv", csv(frame(ROUNDED, "p")), P_, "rounded ones need --normalize"),
    "--normalize of more than rounding": ("x.csv", csv(frame(2 * P, "p")), [*P_, "--normalize"], "more than rounding"),
    "several labels a row": ("x.csv", csv(frame(P, "p").join(LABELS)), ["--probabilities", "p_*", "--label", "y_*"],
                             "audit each label as two classes, by --positive"),
    "independent probabilities": ("x.csv", csv(frame(RNG.random((N, 3)), "p")), P_, "several labels a row, audit each"),
    "one-hot columns": ("x.csv", csv(frame(P, "p").join(pd.DataFrame(np.eye(3)[Y], columns=["y_0", "y_1", "y_2"]))),
                        ["--probabilities", "p_*", "--label", "y_*"], "write the class of each row in one"),
    "one-hot array": ("x.npz", npz(logits=Z, labels=np.eye(3)[Y]), [], "of one-hot rows give labels.argmax(1)"),
    "several labels in an array": ("x.npz", npz(logits=Z, labels=SEVERAL), [], "with several labels audit each as two"),
    "transposed": ("x.npz", npz(logits=Z.T, labels=Y), [], "they seem transposed: one row a sample is needed"),
    "-100": ("x.csv", csv(WITH_IGNORED), Z_, "rows labelled -100 are left out by --ignore -100"),
    "labels from 1": ("x.csv", csv(frame(labels=1 + np.arange(N) % 3)), Z_, "classes count from 0, so take 1 off"),
    "two unknown names": ("x.csv", csv(two(np.where(TWO, "spam", "ham"))), B_, "as in --positive-label spam"),
    "a class that no label has": ("x.csv", csv(frame(labels=NAMES[Y])), [*Z_, "--classes", "cat,dog,fox"],
                                  "label 'eel' is none of the classes cat, dog, fox"),
    "one class too many": ("x.csv", csv(frame()), [*Z_, "--classes", "a,b,c,d"], "4 classes are named, but"),
    "no correctness": ("x.csv", csv(ANSWERS.rename(columns={"y": "labels"})), ["--confidence", "c"],
                       "not whether it is right; name the column of 0 and 1 by --correct, or that of the answers"),
    "no flags, one column a class": ("x.csv", csv(frame(P, "prob", NAMES[Y], NAMES)), [],
                                     "by flags, as in --probabilities 'prob_*' --label y"),
    "no flags, logits": ("x.csv", csv(frame()), [], "by flags, as in --logits 'z_*' --label y"),
    "no flags, two classes": ("x.csv", csv(two().rename(columns={"p": "probability", "y": "is_fraud"})), [],
                              "by flags, as in --positive probability --label is_fraud"),
    "no flags, a confidence": ("x.csv", csv(scored().rename(columns={"c": "my_conf", "ok": "was_right"})), [],
                               "by flags, as in --confidence my_conf --correct was_right"),
    "a score and labels": ("x.csv", csv(two().rename(columns={"p": "score", "y": "target"})), [],
                           "if 'score' is the probability of class 1, say --positive score and name the --label"),
    "a column that is not there": ("x.csv", csv(frame()), ["--logits", "z_*"], "no column 'labels'"),
    "npz.gz": ("x.npz.gz", text("x"), [], "unpack it first; of packed files only .csv, .tsv"),
    "damaged gz": ("x.csv.gz", text("no gzip"), Z_, "cannot be read as csv"),
    "damaged npy": ("logits.npy", damaged, [], "no array, as np.save writes it"),
    "Excel": ("x.xlsx", text("PK"), [], "unknown kind of file '.xlsx'; use .npz"),
    "empty": ("x.csv", text(""), Z_, "is empty"),
    "only a head": ("x.csv", text("y,z_0,z_1,z_2\n"), Z_, "no rows"),
    "a file that is not there": ("x.csv", lambda path: None, Z_, "no such file"),
}  # fmt: skip


def said(words, expected):
    """The values of the audit that the command writes."""
    found = json.loads(words.read_text())
    return {key: m["value"] for key, m in next(iter(found.values()))["measurements"].items() if key in expected}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ACCEPTED)
def test_it_is_read_with_the_right_numbers(run, tmp_path, name):
    file, write, flags, same = ACCEPTED[name]
    write(tmp_path / file)
    code, _, err = run("audit", tmp_path / file, *flags, "--json", tmp_path / "out.json")
    assert (code, "Traceback" in err) == (0, False), err
    if same is not None:
        expected = evaluate(same, ["accuracy", "ece", "auroc"])
        assert said(tmp_path / "out.json", expected) == pytest.approx(expected, rel=1e-6)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_the_right_hint(run, tmp_path, name):
    file, write, flags, hint = REFUSED[name]
    write(tmp_path / file)
    code, _, err = run("audit", tmp_path / file, *flags)
    assert (code, err.count("\n") <= 2) == (2, True)
    assert hint in err


def test_there_are_at_least_forty():
    assert len(ACCEPTED) >= 40
    assert len(REFUSED) >= 25


def test_what_is_seen_is_said(tmp_path):
    frame().to_csv(tmp_path / "x.csv", sep=";", index=False)
    with pytest.warns(UserWarning, match="columns are separated by ';'"):
        files.read(tmp_path / "x.csv", Columns(logits="z_*", label="y"))
    WITH_IGNORED.to_csv(tmp_path / "y.csv", index=False)
    with pytest.warns(UserWarning, match="5 of 45 rows are ignored"):
        files.read(tmp_path / "y.csv", Columns(logits="z_*", label="y", ignore="-100"))
    frame(ROUNDED, "p").to_csv(tmp_path / "z.csv", index=False)
    with pytest.warns(UserWarning, match="they are divided by their sum"):
        files.read(tmp_path / "z.csv", Columns(probabilities="p_*", label="y", normalize=True))


class ModelOutput:
    logits = Z


PYTHON = {
    "a data frame": (lambda: audit(frame()), "expected Predictions or Outcomes, got DataFrame; make them by"),
    "two data frames": (lambda: compare(frame(), frame()), "expected Predictions or Outcomes, got DataFrame"),
    "an array": (lambda: evaluate(Z), "expected Predictions or Outcomes, got ndarray"),
    "no data frame": (lambda: Predictions.from_dataframe(Z, label="y"), "expected a data frame, got ndarray"),
    "the output of a model": (lambda: Predictions.from_logits(ModelOutput(), Y), "got ModelOutput; give its .logits"),
    "the output of a trainer": (
        lambda: Predictions.from_logits(SimpleNamespace(predictions=Z, label_ids=Y), Y),
        "got SimpleNamespace; give its .predictions",
    ),
    "names as labels": (lambda: Predictions.from_logits(Z, NAMES[Y]), "number the classes from 0 in the order of the"),
    "a transposed matrix": (lambda: Predictions.from_logits(Z.T, Y), "they seem transposed"),
    "per cents": (lambda: Predictions.from_binary_probabilities(100 * ONE, TWO), "divide per cents by 100"),
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_says_what_to_give_instead(name):
    call, hint = PYTHON[name]
    with pytest.raises(InputError) as problem:
        call()
    assert hint in str(problem.value)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_data_frames_with_names_as_labels(library):
    table = library(frame(labels=NAMES[Y], names=NAMES))
    read = Predictions.from_dataframe(table, logits="z_*", label="y")
    assert read.classes == tuple(NAMES)
    assert evaluate(read) == pytest.approx(evaluate(LOGITS), nan_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = library(two(np.where(TWO, "yes", "no")))
        assert Predictions.from_dataframe(told, positive="p", label="y").classes == ("no", "yes")


def with_ids(path, ids, z):
    np.savez(path, logits=z, labels=Y[ids], ids=ids)
    return path


def test_compare_on_the_rows_that_both_have(run, tmp_path):
    a = with_ids(tmp_path / "a.npz", np.arange(30), Z[:30])
    b = with_ids(tmp_path / "b.npz", np.arange(39, 9, -1), Z[39:9:-1] / 2)
    assert run("compare", a, b)[0] == 2
    code, out, _ = run("compare", a, b, "--common")
    assert code == 0
    assert "20 rows are in all files (30 of a, 30 of b)" in out
    assert "20 samples" in out


def test_compare_three_models_with_the_first(run, tmp_path):
    rng = np.random.default_rng(0)
    z, y = rng.normal(0, 3, (2000, 3)), rng.integers(0, 3, 2000)
    y = np.where(rng.random(2000) < 0.8, z.argmax(1), y)
    for name, values in (("first", z), ("same", z + 1), ("worse", z + rng.normal(0, 4, z.shape))):
        np.savez(tmp_path / f"{name}.npz", logits=values, labels=y)
    names = [tmp_path / f"{name}.npz" for name in ("first", "same", "worse")]
    code, out, _ = run("compare", *names, "--json", tmp_path / "x.json")
    assert code == 0
    assert "Cannot be told apart from first: same." in out
    assert next(line for line in out.splitlines() if line.startswith(" worse")).rstrip().endswith("▼ ▼ ▲")
    assert set(json.loads((tmp_path / "x.json").read_text())) == {"same", "worse"}


def test_a_map_that_is_not_there_says_how_to_make_one(run, tmp_path):
    two().to_csv(tmp_path / "x.csv", index=False)
    code, _, err = run("threshold", tmp_path / "x.csv", *B_, "--map", tmp_path / "map.json")
    assert code == 2
    assert "no such file; `assay calibrate HELD_OUT --save" in err


STUDY = 'name = "x"\ndata = "digits"\nnetworks = "mlp"\nrecipes = "cross_entropy"\n'


def test_one_value_is_a_list_of_one_and_a_misspelled_key_is_named(tmp_path):
    (tmp_path / "x.toml").write_text(f"{STUDY}seeds = 3\n")
    study = read_study(tmp_path / "x.toml")
    assert (study.seeds, study.data, study.recipes) == ([3], ["digits"], ["cross_entropy"])
    (tmp_path / "x.toml").write_text(f"{STUDY}seed = [3]\n")
    with pytest.raises(InputError, match="unknown key 'seed'; did you mean 'seeds'"):
        read_study(tmp_path / "x.toml")
