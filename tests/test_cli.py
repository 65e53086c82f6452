"""The command as a user runs it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import gaussian_predictions

from assay import Outcomes, Predictions, audit, cli, compare, files, maps
from assay.calibrators import CALIBRATORS, temperature
from assay.cli.list import lines
from assay.metrics import METRICS
from assay.nn import names
from assay.nn.data import DATA
from assay.nn.deploy import export_onnx
from assay.nn.networks import NETWORKS
from assay.nn.recipes import ABOUT, METHODS, PRIMARIES, SECONDARIES
from assay.scale import tally_files
from assay.study import expand, read_study, write_rows
from assay.thresholds import choose_threshold


def widest(out: str) -> int:
    """Characters of the longest line, except the next command: it is in one line, to be copied."""
    return max(len(line) for line in out.splitlines() if not line.startswith("next: "))


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `assay ...` in this process; gives exit code, output and errors."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["assay", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def file(tmp_path, predictions):
    path = tmp_path / "model.npz"
    files.write(predictions, path)
    return path


def test_audit_prints_one_table_and_the_verdict(run, file, predictions):
    code, out, _ = run("audit", file)
    assert code == 0
    lines = out.splitlines()
    headings = [line.strip() for line in lines if line.strip() in ("calibration", "refinement", "scoring")]
    assert headings == ["calibration", "refinement", "scoring"]
    row = next(line for line in lines if line.strip().startswith("ece ↓"))
    ece = audit(predictions)["ece"]
    numbers = [f"{100 * x:.2f}" for x in (ece.value, ece.interval.low, ece.interval.high, ece.floor)]
    assert all(number in row for number in numbers)
    assert "Over-confident by" in out
    assert "no interval of known coverage: smooth_ece, classwise_ece" in out
    assert widest(out) <= 80


def test_audit_without_a_file_shows_the_example(run):
    code, out, _ = run("audit")
    assert code == 0
    assert "embedded example" in out
    assert "10,000 samples" in out


def test_audit_of_several_models_has_a_column_each(run, file, tmp_path, predictions):
    others = [tmp_path / f"other{i}.npz" for i in range(4)]
    for other in others:
        files.write(Predictions.from_logits(predictions.values / 2, predictions.labels), other)
    code, out, _ = run("audit", file, *others)
    assert code == 0
    assert all(name in out for name in ("model", "other0", "other3"))
    assert widest(out) <= 80


def test_audit_writes_json_with_every_number(run, file, tmp_path, predictions):
    target = tmp_path / "out.json"
    assert run("audit", file, "--json", target)[0] == 0
    found = json.loads(target.read_text())["model"]
    expected = audit(predictions)
    assert found["measurements"]["ece"]["value"] == expected["ece"].value
    assert found["measurements"]["aurc"]["interval"]["low"] == expected["aurc"].interval.low
    assert found["verdict"] == str(expected)


def test_json_has_no_bare_nan_or_infinity(run, tmp_path):
    files.write(Predictions.from_probabilities([[1.0, 0.0]] * 3, [0, 0, 1]), tmp_path / "x.npz")
    assert run("audit", tmp_path / "x.npz", "--json", tmp_path / "x.json")[0] == 0
    found = json.loads((tmp_path / "x.json").read_text(), parse_constant=pytest.fail)["x"]["measurements"]
    assert found["nll"]["value"] == "inf"
    assert found["s99_accuracy"]["value"] == pytest.approx(2 / 3)


def test_all_prints_every_metric(run, file):
    _, out, _ = run("audit", file, "--all")
    binary = {"ece_positive", "ada_ece_positive", "roc_auc", "average_precision"}
    assert all(f" {key} " in out for key in METRICS if key not in binary)


def test_groups_are_printed_and_the_worse_named(run, tmp_path):
    rng = np.random.default_rng(0)
    c = rng.uniform(0.4, 1, 3000)
    where = np.repeat(["here", "there", "[red]<b>"], 1000)
    correct = (rng.random(3000) < np.where(where == "there", 0.4, c)).astype(int)
    rows = "\n".join(f"{x},{a},{g}" for x, a, g in zip(c, correct, where, strict=True))
    (tmp_path / "x.csv").write_text(f"conf,hit,place\n{rows}\n")
    code, out, _ = run(
        "audit", tmp_path / "x.csv", "--confidence", "conf", "--correct", "hit", "--group", "place"
    )  # fmt: skip
    assert code == 0
    assert "[red]<b>" in out
    assert "there: accuracy 0." in out
    assert "here: accuracy 0." not in out.replace("there", "")


@pytest.mark.parametrize("right", [["--answer", "said"], ["--correct", "hit"]])
@pytest.mark.parametrize("folder", [False, True])
def test_answers_grouped_by_their_label_are_judged_by_accuracy_alone(run, tmp_path, right, folder):
    """Of a calibrated model the answers to a rare label are over-confident."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 6, 3000)
    ill = rng.random(3000) < p
    words = np.array(["well", "ill"])
    columns = zip(np.maximum(p, 1 - p), words[(p > 0.5) * 1], words[ill * 1], ((p > 0.5) == ill) * 1, strict=True)
    rows = "\n".join(f"{c},{said},{label},{hit}" for c, said, label, hit in columns)
    (tmp_path / "x.csv").write_text(f"c,said,label,hit\n{rows}\n")
    file = tmp_path if folder else tmp_path / "x.csv"
    code, out, _ = run("audit", file, "--confidence", "c", *right, "--label", "label", "--group", "label")
    assert code == 0
    assert "over-confident by" not in out
    assert "chosen by the true label, so only their accuracy is judged" in " ".join(out.split())


def groups_csv(folder, names):
    """Forty rows a group; of the last few groups hardly one is right."""
    rng = np.random.default_rng(0)
    where = np.repeat(names, 40)
    c = rng.uniform(0.5, 1, len(where))
    correct = np.where(np.isin(where, names[-3:]), rng.random(len(where)) < 0.1, rng.random(len(where)) < c)
    rows = "\n".join(f"{x},{int(a)},{g}" for x, a, g in zip(c, correct, where, strict=True))
    (folder / "x.csv").write_text(f"confidence,correct,group\n{rows}\n")
    return folder / "x.csv"


def test_a_table_of_groups_breaks_no_number_and_no_head(run, tmp_path):
    names = ["a", "a rather long name of a group, longer than a line of a terminal can take beside numbers", "c", "d"]
    file = groups_csv(tmp_path, [name.replace(",", ";") for name in names])
    with file.open("a") as rows:
        rows.write("0.9,1,all right\n0.8,1,all right\n")
    out = run("audit", file)[1]
    lines = out.splitlines()
    assert widest(out) <= 80
    head = next(line for line in lines if line.split()[:2] == ["group", "samples"])
    assert head.split() == ["group", "samples", "accuracy", "ece", "(errors)"]
    assert "undefined" in next(line for line in lines if line.strip().startswith("all right"))


def test_of_many_groups_the_worst_are_printed_and_the_rest_counted(run, tmp_path):
    names = [f"g{i:02}" for i in range(40)]
    file = groups_csv(tmp_path, names)
    out = run("audit", file, "--json", tmp_path / "x.json")[1]
    assert "The 5 worst groups by p-value; 35 more: --all shows, --json has all." in out
    rows = [line.split()[0] for line in out.splitlines() if line.strip().startswith("g") and "40" in line.split()[1:2]]
    assert len(rows) == 5
    assert set(rows[:3]) == {"g37", "g38", "g39"}
    assert set(json.loads((tmp_path / "x.json").read_text())["x"]["groups"]) == set(names)


def test_compare_prints_the_verdict(run, file, tmp_path, predictions):
    other = tmp_path / "cooler.parquet"
    files.write(Predictions.from_logits(predictions.values / 2, predictions.labels, ids=predictions.ids), other)
    code, out, _ = run("compare", file, other, "--json", tmp_path / "c.json")
    assert code == 0
    assert "calibration: better (calibration_part, p = " in out
    assert widest(out) <= 80
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["differences"]["calibration_part"]["p_value"] < 0.05
    assert found["verdict"].startswith("accuracy none shown, calibration better")


def test_compare_without_files_shows_the_example(run):
    code, out, _ = run("compare")
    assert code == 0
    assert "B = label_smoothing" in out


def test_compare_says_that_rows_without_ids_are_paired_in_order(run, file, tmp_path, predictions):
    bare = Predictions.from_logits(predictions.values, predictions.labels)
    files.write(bare, tmp_path / "a.npz")
    files.write(bare, tmp_path / "b.npz")
    assert "no ids: rows are paired in order" in run("compare", tmp_path / "a.npz", tmp_path / "b.npz")[1]
    files.write(predictions, tmp_path / "c.npz")
    assert "no ids" not in run("compare", file, tmp_path / "c.npz")[1]


def sharded(folder, rows, parts=2):
    """The rows in several files of a folder."""
    folder.mkdir()
    for i in range(parts):
        files.write(rows[i * len(rows) // parts : (i + 1) * len(rows) // parts], folder / f"{i}.parquet")
    return folder


def answers(n=800, seed=0, **tags):
    """Calibrated confidences, not to be advised against."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.3, 1, n)
    return Outcomes.from_scores(p, rng.random(n) < p, **tags)


def advised(out):
    return shlex.split(out.splitlines()[-1].removeprefix("next: assay "))


def test_a_folder_has_a_page(run, tmp_path):
    folder = sharded(tmp_path / "answers", answers())
    assert run("audit", folder, "--html", tmp_path / "x.html")[0] == 0
    page = (tmp_path / "x.html").read_text()
    assert f"assay threshold {folder}" in page
    assert "Every number is exact" in page
    code, _, err = run("audit", folder, "--html", tmp_path / "x.html", "--show", "text")
    assert (code, "--show needs the rows" in err) == (2, True)


def test_what_is_not_exact_is_named_among_all_that_is_printed(run, tmp_path):
    folder = sharded(tmp_path / "answers", answers(24000), parts=1)  # of more distinct confidences than a tally keeps
    said = {words: " ".join(run("audit", folder, *words)[1].split()) for words in [(), ("--all",)]}
    brief, every = (text.partition("without a known bound: ")[2].partition(";")[0] for text in said.values())
    assert brief.split(", ") == ["ada_ece", "ece_l2_mass", "debiased_ece", "smooth_ece"]
    bounds = tally_files(folder).bounds()
    assert every.split(", ") == [key for key in audit(tally_files(folder)).measurements if key not in bounds]
    assert {"sweep_ece", "ece_lb_l1", "mmce", "brier_refinement"} <= set(every.split(", "))


@pytest.mark.parametrize("tags", [{}, {"weights": np.linspace(0.5, 1.5, 800)}])
def test_after_the_audit_of_a_folder_the_advised_command_runs(run, tmp_path, tags):
    folder = sharded(tmp_path / "answers", answers(**tags))
    files.write(answers(**tags), tmp_path / "one.parquet")
    words = advised(run("audit", folder)[1])
    assert words[:2] == ["threshold", "ONE_FILE" if tags else str(folder)]
    places = {"ONE_FILE": tmp_path / "one.parquet", "threshold.json": tmp_path / "threshold.json"}
    assert run(*(places.get(word, word) for word in words))[0] == 0


def test_two_folders_with_the_same_files_are_compared_in_pairs(run, tmp_path):
    a = answers(ids=np.arange(800))
    b = replace(a, confidence=a.confidence**2, correct=a.correct & (np.arange(800) % 9 > 0))
    shuffled = b[np.append(np.random.default_rng(1).permutation(400), np.arange(400, 800))]  # within a file
    first, second = sharded(tmp_path / "a", a), sharded(tmp_path / "b", shuffled)
    out_files = ("--json", tmp_path / "c.json", "--html", tmp_path / "c.html")
    code, out, _ = run("compare", first, f"{second}/*.parquet", *out_files)
    assert code == 0
    assert "A = a\nB = b\n800 samples. B against A:" in out
    assert "b: every number is exact." in out
    found, rows = json.loads((tmp_path / "c.json").read_text()), compare(a, b)
    assert found["differences"]["accuracy"]["p_value"] == rows["accuracy"].p_value
    assert found["differences"]["ece"]["b"] == pytest.approx(rows["ece"].b)
    assert [verdict["word"] for verdict in found["verdicts"]] == ["worse", "cannot tell", "cannot tell"]


@pytest.mark.parametrize(("parts", "ids", "reason"), [(3, None, "is 3."), (2, np.arange(800), "has ids")])
def test_folders_that_do_not_pair_are_compared_side_by_side_with_a_hint(run, tmp_path, parts, ids, reason):
    first, second = sharded(tmp_path / "a", answers()), sharded(tmp_path / "b", answers(ids=ids), parts)
    code, out, _ = run("compare", first, second)
    assert code == 0
    told = " ".join(out.split())
    assert "Rows are not paired file by file" in told
    assert reason in told
    assert "assay.scale.Joint" in told
    assert "accuracy: cannot tell" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("check", "{a}", "--require", "ece<=1"), "give one file"),
        (("check", "{file}", "--baseline", "{a}", "--no-worse"), "give one file"),
        (("plan", "{a}/*.parquet", "--detect", "ece=0.1"), "give one file"),
        (("plan", "--detect", "ece=0.1", "{file}"), "files come before it"),
        (("plan", "--detect", "ece=0.1", "{file}", "--weight", "w"), "files come before it"),
        (("compare", "{a}", "{file}", "{b}"), "two are compared, one for each model"),
        (("compare", "{a}", "{b}", "--common"), "--common needs the rows"),
        (("audit", "{a}", "--json", "{a}/out.json"), "read as predictions the next time"),
        (("audit", "{a}", "--json", "{a}/sub/out.json"), "read as predictions the next time"),
        (("audit", "{a}/*", "--html", "{a}/out.html"), "read as predictions the next time"),
        (("audit", "{a}/**", "--json", "{a}/sub/out.json"), "read as predictions the next time"),
        (("audit", "{b}", "{a}", "--json", "{a}/out.json"), "read as predictions the next time"),
        (("audit", "{a}", "--state", "{a}/state.npz"), "read as predictions the next time"),
        (("compare", "{a}", "{b}", "--json", "{b}/out.json"), "read as predictions the next time"),
        (("threshold", "{a}", "--json", "{a}/out.json"), "read as predictions the next time"),
        (("threshold", "{a}/*", "--html", "{a}/out.html"), "read as predictions the next time"),
        (("calibrate", "{a}", "--save", "{a}/map.json"), "read as predictions the next time"),
        (("calibrate", "{b}", "--apply", "{a}", "--json", "{a}/out.json"), "read as predictions the next time"),
    ],
)
def test_what_a_folder_cannot_do_is_said_before_the_work(run, tmp_path, words, message):
    a, b = sharded(tmp_path / "a", answers()), sharded(tmp_path / "b", answers())
    (a / "sub").mkdir()
    files.write(answers(), tmp_path / "one.parquet")
    names = {"a": a, "b": b, "file": tmp_path / "one.parquet"}
    code, out, err = run(*(word.format(**names) for word in words))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    "words",
    [
        ("{a}/*.parquet", "--json", "{a}/out.json"),
        ("{a}", "--html", "{a}/out.html"),
        ("{a}", "--json", "{a}/_out.json"),
        ("{a}", "--state", "{a}/audit.state"),
    ],
)
def test_what_the_next_run_would_not_read_may_lie_beside_its_input(run, tmp_path, words):
    folder = sharded(tmp_path / "a", answers())
    words = [word.format(a=folder) for word in words]
    first, second = run("audit", *words), run("audit", *words)
    assert first[0] == second[0] == 0
    assert first[1] == second[1]


def test_a_pattern_is_called_by_its_folder(run, tmp_path, monkeypatch):
    shards = sharded(tmp_path / "shards", answers())
    assert run("audit", f"{shards}/*.parquet")[1].startswith("shards  800 samples")
    both = run("audit", f"{shards}/0*.parquet", f"{shards}/1*.parquet")[1]
    assert f"{shards}/0*.parquet" in both.replace("\n", "")
    monkeypatch.chdir(shards)
    assert run("audit", "*.parquet")[1].startswith("shards  800 samples")


def test_list_metrics_explains_each(run):
    _, out, _ = run("list", "metrics")
    assert all(key in out for key in METRICS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "missing.npz"], "missing.npz: no such file"),
        (["audit", "{file}", "{file}"], "the same file is given twice"),
        (["audit", "{file}", "--group", "colour"], "no column 'colour'"),
        (["audit", "{file}", "--json", "{dir}/no/where.json"], "where.json: cannot be written: No such file"),
        (["audit", "{bad}"], "bad.npz: row 1, class 0: logit is nan"),
        (["compare", "{file}"], "compare needs two files"),
        (["compare", "{file}", "{bad}"], "bad.npz: row 1, class 0: logit is nan"),
        (["audit", "--lable", "x"], "Did you mean --label?"),
        (["audit", "--group", "x"], "columns are named but no file is given"),
        (["compare", "--group", "x"], "columns are named but no file is given"),
        (["audit", "{file}", "--seed", "-1"], "--seed must be 0 or more, got -1"),
        (["audit", "{file}", "--json", ""], "names no file to write to"),
        (["list", "metric"], "metrics"),
        (["adit"], "Did you mean"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(run, file, tmp_path, words, message):
    bad = tmp_path / "bad.npz"
    np.savez(bad, logits=np.array([[0.0, 1.0], [np.nan, 1.0]]), labels=np.array([0, 1]))
    places = {"file": file, "bad": bad, "dir": tmp_path}
    before = set(tmp_path.iterdir())
    code, _, err = run(*(word.format(**places) for word in words))
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("assay: ")
    assert set(tmp_path.iterdir()) == before


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "assay", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("0.1.0, with compiled loops", "0.1.0, without compiled loops")


HEAVY = ("torch", "pyarrow", "scipy.stats", "scipy.optimize", "pydantic", "matplotlib", "sklearn", "lightning")


def test_the_version_costs_little():
    heavy = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    code = f"from assay import cli\ntry:\n    cli.main()\nfinally:\n    {heavy}"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"


WITHOUT = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "lightning", "sklearn", "matplotlib", "ray", "onnx"):
            raise ModuleNotFoundError(f"No module named {name}", name=name)

sys.meta_path.insert(0, Refusing())
from assay import cli

for words in sys.argv[1].split(";"):
    sys.argv = ["assay", *words.split()]
    try:
        cli.main()
    except SystemExit as stop:
        print("exit", stop.code or 0, flush=True)
    else:
        print("exit 0", flush=True)
"""


def without_extras(*commands: str) -> tuple[list[str], list[str]]:
    """Exit codes and lines on stderr of commands in a process that can import no optional package."""
    done = subprocess.run([sys.executable, "-c", WITHOUT, ";".join(commands)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    codes = [line.removeprefix("exit ") for line in done.stdout.splitlines() if line.startswith("exit ")]
    return codes, done.stderr.splitlines()


def study_file(folder) -> str:
    lines = ['name = "s"', 'data = ["digits"]', 'networks = ["mlp"]', 'recipes = ["focal"]', "seeds = [0]"]
    (folder / "s.toml").write_text("\n".join(lines))
    return str(folder / "s.toml")


def test_everything_but_training_works_without_the_extras(split, tmp_path):
    held_out, test = split
    study = study_file(tmp_path)
    codes, errors = without_extras(
        f"audit {test} --json {tmp_path}/a.json --html {tmp_path}/a.html --threads 2",
        f"compare --html {tmp_path}/c.html",
        f"calibrate {held_out} --apply {test} --method all --threads 1",
        f"calibrate {held_out} --save {tmp_path}/map.json",
        f"threshold {test} --map {tmp_path}/map.json --risk 0.2 --threads 1",
        *(f"list {what}" for what in ("metrics", "calibrators", "scores", "recipes", "networks", "data")),
        f"study status {study} --out {tmp_path}/runs",
    )
    assert codes == ["0"] * 12, errors


def test_a_study_is_reported_without_the_extras(tmp_path, predictions):
    file = study_file(tmp_path)
    study = read_study(file)
    for run in expand(study):
        folder = tmp_path / "runs" / run.folder
        folder.mkdir(parents=True)
        for name in ("held_out", "test"):
            files.write(predictions, folder / f"{name}.npz")
        write_rows(study, run, folder)
    out = f"--out {tmp_path}/runs"
    codes, errors = without_extras(
        f"study report {file} {out}",
        f"study report {file} {out} --to {tmp_path}/t.md --html {tmp_path}/s.html --pages",
        f"study rows {file} {out} --to {tmp_path}/rows.csv",
    )
    assert codes == ["0"] * 3, errors
    assert "focal" in (tmp_path / "t.md").read_text()


def test_a_missing_extra_is_named_in_a_line(split, tmp_path):
    study = study_file(tmp_path)
    maps.save(temperature(files.read(split[0])), tmp_path / "map.json")
    (tmp_path / "net.onnx").write_bytes(b"")
    codes, errors = without_extras(
        f"train --data digits --network mlp --recipe focal --out {tmp_path}/run",
        f"study run {study}",
        f"study check {study}",
        f"study tune {study} --to {tmp_path}/tuned.toml",
        f"study report {study} --figures {tmp_path}/figures",
        f"export {tmp_path}/net.onnx --map {tmp_path}/map.json --out {tmp_path}/out.onnx",
    )
    assert codes == ["2"] * 6
    training = "assay: training needs torch: pip install 'assay-ml[train]'"
    figures = "assay: figures need matplotlib: pip install 'assay-ml[figures]'"
    assert errors == [training] * 4 + [figures, "assay: ONNX export needs onnx: pip install 'assay-ml[onnx]'"]


def test_the_lists_of_networks_and_data_are_those_of_their_tables():
    for what, table in (("networks", NETWORKS), ("data", DATA)):
        assert lines(what) == {name: function.__doc__.splitlines()[0] for name, function in table.items()}


@pytest.mark.parametrize("command", ["audit", "compare", "calibrate", "threshold"])
def test_threads_change_no_number(run, split, command):
    words = [] if command in ("audit", "compare") else [split[0]]
    (code, one, _), (_, several, _) = (run(command, *words, "--threads", threads) for threads in (1, 3))
    assert code == 0
    assert one == several
    code, _, err = run(command, *words, "--threads", 0)
    assert (code, err) == (2, "assay: threads must be at least 1, got 0\n")


@pytest.fixture
def split(tmp_path):
    """Held-out and test predictions of one law in two files."""
    rows = gaussian_predictions(4000, 10, seed=1)
    names = (tmp_path / "held_out.npz", tmp_path / "test.npz")
    for path, part in zip(names, (rows[:2000], rows[2000:]), strict=True):
        files.write(Predictions.from_logits(part.values, part.labels), path)
    return names


def test_calibrate_judges_on_the_test_set_and_writes_what_it_is_told(run, split, tmp_path):
    held_out, test = split
    done = run("calibrate", held_out, "--apply", test, "--out", tmp_path / "c.npz", "--save", tmp_path / "map.json")
    assert done[0] == 0
    assert "Judged on 2,000 rows, of the test set" in done[1]
    mapping = maps.load(tmp_path / "map.json")
    assert mapping.t == pytest.approx(2.0, rel=0.1)
    expected = maps.apply(mapping, files.read(test))
    assert np.array_equal(files.read(tmp_path / "c.npz").values, expected.values)


def test_calibrate_without_a_test_set_cross_validates(run, split):
    code, out, _ = run("calibrate", split[0])
    assert code == 0
    assert "by cross-validation" in out
    assert "better" in out


def test_calibrate_all_shows_both_axes_of_the_whole_family(run, split):
    code, out, _ = run("calibrate", split[0], "--apply", split[1], "--method", "all")
    assert code == 0
    assert all(f" {name} " in out for name in CALIBRATORS)
    row = next(line for line in out.splitlines() if line.strip().startswith("histogram "))
    assert row.split()[-4:-1] == ["·", "▲", "▼"]
    assert widest(out) <= 80


def test_calibrate_takes_bare_confidences(run, tmp_path):
    rng = np.random.default_rng(0)
    c = rng.uniform(0.5, 1, 500)
    rows = "\n".join(f"{x},{int(a)}" for x, a in zip(c, rng.random(500) < c - 0.2, strict=True))
    (tmp_path / "x.csv").write_text(f"confidence,correct\n{rows}\n")
    assert run("calibrate", tmp_path / "x.csv", "--method", "platt")[0] == 0
    code, _, err = run("calibrate", tmp_path / "x.csv")
    assert code == 2
    assert "temperature needs the logits of all classes; confidences allow histogram" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{held_out}", "--apply", "{held_out}"], "2000 of 2000 test rows were fitted on"),
        (["{held_out}", "--method", "tempreature"], "unknown calibrator 'tempreature'; did you mean 'temperature'?"),
        (["{held_out}", "--out", "{dir}/x.npz"], "--out needs --apply"),
        (["{held_out}", "--method", "all", "--save", "{dir}/m.json"], "need one method, not all"),
    ],
)
def test_calibrate_refuses_what_makes_no_sense(run, split, tmp_path, words, message):
    before = set(tmp_path.iterdir())
    code, _, err = run("calibrate", *(word.format(held_out=split[0], dir=tmp_path) for word in words))
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert set(tmp_path.iterdir()) == before


def test_in_sample_is_possible_when_said(run, split):
    assert run("calibrate", split[0], "--apply", split[0], "--in-sample")[0] == 0


def test_threshold_says_what_it_promises(run, split, tmp_path):
    mapping = tmp_path / "map.json"
    run("calibrate", split[0], "--save", mapping)
    code, out, _ = run("threshold", split[1], "--map", mapping, "--risk", "0.1", "--json", tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text())
    assert code == 0
    assert "at most, at 95% confidence" in out
    assert f"{found['accepted']:,} of 2,000" in out
    assert found["guaranteed_risk"] == 0.1
    expected = choose_threshold(maps.apply(maps.load(mapping), files.read(split[1])), risk=0.1)
    assert found["value"] == pytest.approx(expected.value, abs=1e-12)


@pytest.mark.parametrize("method", ["temperature", "structured_vector"])  # one map, and several in sequence
def test_threshold_knows_the_map_that_rows_already_have(run, split, tmp_path, method):
    mapping, rows = tmp_path / "map.json", tmp_path / "mapped.npz"
    run("calibrate", split[0], "--method", method, "--save", mapping)
    files.write(maps.apply(maps.load(mapping), files.read(split[1])), rows)
    assert run("threshold", rows, "--risk", 0.2, "--json", tmp_path / "t.json")[0] == 0
    assert json.loads((tmp_path / "t.json").read_text())["map_digest"] == maps.digest(maps.load(mapping))
    code, _, err = run("threshold", rows, "--risk", 0.2, "--map", mapping)
    assert code == 2
    assert "applied to these predictions before" in err


@pytest.mark.parametrize("goal", [("--coverage", "0.5"), ("--error-cost", "5.0")])
def test_the_next_command_has_the_goal_that_was_asked_for(run, split, goal):
    held_out, _ = split
    assert f"{' '.join(goal)} --json threshold.json" in " ".join(run("threshold", held_out, *goal)[1].split())


def test_threshold_says_why_there_is_none(run, split):
    code, out, _ = run("threshold", split[1], "--risk", "0.0001")
    assert code == 0
    assert "No threshold keeps the promise" in out
    assert "takes 29956 samples" in " ".join(out.split())


def test_export_puts_a_map_into_an_onnx_model(run, split, tmp_path):
    run("calibrate", split[0], "--save", tmp_path / "map.json")
    export_onnx(torch.nn.Linear(6, 10), None, tmp_path / "plain.onnx", example=torch.randn(8, 6))
    words = ["export", tmp_path / "plain.onnx", "--map", tmp_path / "map.json", "--out", tmp_path / "out.onnx"]
    code, _, err = run(*words)
    assert code == 2
    assert "say which holds the logits" in err
    code, out, _ = run(*words, "--output", "logits", "--threshold", "0.9")
    assert code == 0
    assert "the probabilities of 32 inputs agree with the map" in " ".join(out.split())
    run("threshold", split[1], "--risk", 0.2, "--json", tmp_path / "unmapped.json")
    code, _, err = run(*words, "--output", "logits", "--threshold", tmp_path / "unmapped.json")
    assert code == 2
    assert "the threshold was chosen without a map" in err
    run("threshold", split[1], "--risk", 0.2, "--map", words[3], "--json", tmp_path / "mapped.json")
    assert run(*words, "--output", "logits", "--threshold", tmp_path / "mapped.json")[0] == 0
    (tmp_path / "bad.onnx").write_text("not that")
    code, _, err = run("export", tmp_path / "bad.onnx", *words[2:])
    assert code == 2
    assert "is no ONNX model" in err


def test_export_puts_a_map_behind_probabilities_only_when_told(run, split, tmp_path):
    """A temperature that divides the probabilities themselves would flatten them all."""
    import onnx
    from onnxruntime import InferenceSession

    value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 10]) for name in ("x", "p")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Softmax", ["x"], ["p"])], "g", value[:1], value[1:])
    opset = [onnx.helper.make_opsetid("", 18)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "p.onnx")
    mapping, out, test = tmp_path / "map.json", tmp_path / "out.onnx", files.read(split[1])
    run("calibrate", split[0], "--method", "temperature", "--save", mapping)
    code, _, err = run("export", tmp_path / "p.onnx", "--map", mapping, "--out", out)
    assert code == 2
    assert "gives probabilities, not logits" in err
    assert run("export", tmp_path / "p.onnx", "--map", mapping, "--out", out, "--gives", "probabilities")[0] == 0
    [found] = InferenceSession(str(out)).run(["confidence"], {"x": test.logits})
    assert found == pytest.approx(maps.apply(maps.load(mapping), test).outcomes().confidence, abs=1e-5)


def test_export_is_checked_on_the_rows_that_are_given(run, split, tmp_path):
    run("calibrate", split[0], "--save", tmp_path / "map.json")
    export_onnx(torch.nn.Linear(6, 10), None, tmp_path / "plain.onnx", example=torch.randn(8, 6))
    np.savez(tmp_path / "rows.npz", input=np.ones((5, 6), dtype=np.float32))
    words = ["export", tmp_path / "plain.onnx", "--map", tmp_path / "map.json", "--out", tmp_path / "out.onnx"]
    code, out, _ = run(*words, "--output", "logits", "--example", tmp_path / "rows.npz")
    assert code == 0
    assert "the probabilities of 5 inputs agree with the map" in " ".join(out.split())


def test_export_takes_the_network_of_a_run(run, tmp_path):
    words = ["--data", "digits", "--network", "mlp", "--recipe", "cross_entropy", "--epochs", "1", "--n-train", "64"]
    run("train", *words, "--out", tmp_path / "run")
    held_out = tmp_path / "run" / "held_out.npz"
    run("calibrate", held_out, "--method", "temperature", "--save", tmp_path / "map.json")
    code, out, _ = run("export", tmp_path / "run", "--map", tmp_path / "map.json", "--out", tmp_path / "out.onnx")
    assert code == 0
    assert "the probabilities of 64 inputs agree with the map" in " ".join(out.split())
    run("threshold", held_out, "--risk", 0.5, "--json", tmp_path / "unmapped.json")
    words = ["export", tmp_path / "run", "--map", tmp_path / "map.json", "--threshold", tmp_path / "unmapped.json"]
    code, _, err = run(*words, "--out", tmp_path / "no.onnx")
    assert code == 2
    assert "the threshold was chosen without a map" in err
    code, _, err = run("export", tmp_path, "--map", tmp_path / "map.json", "--out", tmp_path / "no.onnx")
    assert code == 2
    assert "no run of" in err


def test_list_recipes_explains_each(run):
    _, out, _ = run("list", "recipes")
    assert all(name in out for name in METHODS)
    assert set(ABOUT) == set(METHODS)
    assert set(names.PRIMARIES) == set(PRIMARIES)
    assert set(names.SECONDARIES) == set(SECONDARIES)


def test_list_calibrators_explains_each(run):
    _, out, _ = run("list", "calibrators")
    assert all(name in out for name in CALIBRATORS)


@pytest.fixture
def two(tmp_path):
    """Two sets of 400 rows with ids that are counted from 0 in both."""
    rng = np.random.default_rng(0)
    paths = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for path in paths:
        labels = rng.integers(0, 3, 400)
        logits = rng.normal(size=(400, 3)) + 2 * np.eye(3)[labels]
        np.savez(path, logits=3 * logits, labels=labels, ids=np.arange(400))
    return paths


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "{a}", "--json", "{a}"),
        ("audit", "{a}", "--html", "{a}"),
        ("audit", "{a}", "--json", "{new}", "--html", "{new}"),
        ("compare", "{a}", "{b}", "--json", "{b}"),
        ("calibrate", "{a}", "--apply", "{b}", "--out", "{b}"),
        ("threshold", "{a}", "--json", "{a}"),
        ("export", "{a}", "--map", "{b}", "--out", "{a}"),
        ("export", "{new}", "--map", "{new}", "--threshold", "{a}", "--out", "{a}"),
        ("export", "{new}", "--map", "{new}", "--example", "{b}", "--out", "{b}"),
    ],
)
def test_nothing_is_written_over_what_is_read(run, two, tmp_path, words):
    before = [path.read_bytes() for path in two]
    names = {"a": two[0], "b": two[1], "new": tmp_path / "new.json"}
    code, _, err = run(*(word.format(**names) for word in words))
    assert (code, err.count("\n")) == (2, 1)
    assert "a name of its own" in err
    assert [path.read_bytes() for path in two] == before


def test_rows_counted_alike_are_not_the_same_rows(run, two):
    assert run("calibrate", two[0], "--apply", two[1])[0] == 0
    code, _, err = run("calibrate", two[0], "--apply", two[0])
    assert code == 2
    assert "400 of 400 test rows were fitted on" in err


def test_a_bound_needs_rows_that_the_map_has_not_seen(run, two, tmp_path):
    saved = tmp_path / "map.json"
    assert run("calibrate", two[0], "--save", saved)[0] == 0
    code, _, err = run("threshold", two[0], "--map", saved, "--risk", 0.2)
    assert code == 2
    assert "fitted on these very rows" in err
    assert run("threshold", two[0], "--map", saved, "--risk", 0.2, "--in-sample")[0] == 0
    assert run("threshold", two[1], "--map", saved, "--risk", 0.2)[0] == 0


def test_a_map_finds_named_classes_in_whatever_order_they_stand(run, two, tmp_path):
    names, out = np.array(["fox", "eel", "dog"]), {}
    for order in ([0, 1, 2], [2, 0, 1]):
        for path, columns in zip(two, ([0, 1, 2], order), strict=True):
            rows = np.load(path)
            table = {f"z_{names[j]}": rows["logits"][:, j] for j in columns}
            np.savez(path.with_suffix(".named.npz"), y=names[rows["labels"]], **table)
        held_out, test = (path.with_suffix(".named.npz") for path in two)
        flags = ["--label", "y", "--logits", "z_*", "--save", tmp_path / "map.json"]
        words = ["--method", "vector", "--apply", test, "--out", tmp_path / "out.csv"]
        assert run("calibrate", held_out, *words, *flags)[0] == 0
        _, said, _ = run("threshold", test, "--map", tmp_path / "map.json", "--risk", 0.2, *flags[:4])
        out[tuple(order)] = said, (tmp_path / "out.csv").read_text()
    (first, table), (second, same) = out.values()
    assert first == second
    assert table == same
    assert table.splitlines()[0] == '"logits_fox","logits_eel","logits_dog","labels","map_digest"'


def test_what_a_class_map_writes_is_read_again(run, two, tmp_path):
    out = tmp_path / "calibrated.npz"
    assert run("calibrate", two[0], "--apply", two[1], "--method", "isotonic_one_vs_rest", "--out", out)[0] == 0
    assert run("audit", out)[0] == 0


def test_of_all_methods_those_that_the_rows_refuse_are_named(run, tmp_path):
    rng = np.random.default_rng(0)
    score = rng.normal(0, 3, 500)
    rows = np.stack([score, rng.random(500) < 1 / (1 + np.exp(-score))], 1)
    np.savetxt(tmp_path / "scores.csv", rows, delimiter=",", header="s,ok", comments="")
    code, out, _ = run("calibrate", tmp_path / "scores.csv", "--score", "s", "--correct", "ok", "--method", "all")
    assert code == 0
    assert "platt" in out
    assert "histogram is not for these rows: " in " ".join(out.split())


def test_in_folds_a_map_that_keeps_the_order_is_not_blamed_for_the_folds(run, tmp_path):
    rng = np.random.default_rng(5)
    c = rng.uniform(0.5, 1, 1500)
    rows = np.stack([c, rng.random(1500) < c**3], 1)
    np.savetxt(tmp_path / "c.csv", rows, delimiter=",", header="c,ok", comments="")
    code, out, _ = run("calibrate", tmp_path / "c.csv", "--confidence", "c", "--correct", "ok", "--method", "platt")
    assert code == 0
    assert "refinement: none shown (the map keeps the order of the samples)" in " ".join(out.split())


def test_a_column_of_confidences_has_a_threshold(run, tmp_path):
    rng = np.random.default_rng(0)
    c = rng.uniform(0.5, 1, 2000)
    np.savetxt(tmp_path / "c.csv", np.stack([c, rng.random(2000) < c], 1), delimiter=",", header="c,ok", comments="")
    code, out, _ = run("threshold", tmp_path / "c.csv", "--confidence", "c", "--correct", "ok", "--risk", 0.2)
    assert code == 0
    assert "left for review" in out


def test_flags_without_effect_are_refused(run, two):
    code, _, err = run("compare", *two, "--group", "g")
    assert code == 2
    assert "only `assay audit`" in err


def test_a_missing_extra_is_named(run, two, tmp_path, monkeypatch):
    saved = tmp_path / "map.json"
    run("calibrate", two[0], "--save", saved)
    monkeypatch.setitem(sys.modules, "onnx", None)
    (tmp_path / "net.onnx").write_bytes(b"")
    code, _, err = run("export", tmp_path / "net.onnx", "--map", saved, "--out", tmp_path / "out.onnx")
    assert (code, err) == (2, "assay: ONNX export needs onnx: pip install 'assay-ml[onnx]'\n")


def test_numbers_are_whole_at_sixty_columns(run, file, tmp_path, predictions, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    other = tmp_path / "cooler.npz"
    files.write(Predictions.from_logits(predictions.values / 2, predictions.labels, ids=predictions.ids), other)
    found = audit(predictions)
    for words in (
        ["audit", file],
        ["compare", file, other],
        ["audit", file, other],
        ["calibrate", file, "--method", "all"],
    ):
        out = run(*words)[1]
        assert widest(out) <= 60
        assert f"{100 * found['ece'].value:.2f}%" in out


def test_every_command_has_an_example_that_it_takes():
    from assay.cli import COMMANDS, EXAMPLES, study

    assert set(EXAMPLES) == set(COMMANDS)
    assert set(study.EXAMPLES) == {name for name in study.study_app if not name.startswith("-")}
    for line in (*EXAMPLES.values(), *study.EXAMPLES.values()):
        cli.app.parse_args(shlex.split(line)[1:], print_error=False, exit_on_error=False)


def test_every_command_ends_with_the_next(run, two, tmp_path):
    """Each is run as it is printed, with a file for the rows that it asks for."""
    np.savez(tmp_path / "third.npz", **{name: np.load(two[1])[name] for name in ("logits", "labels")})
    saved = tmp_path / "map.json"
    out = run("audit", two[0])[1]
    assert out.splitlines()[-1].startswith("next: assay ")
    out = run("calibrate", two[0], "--save", saved)[1]
    words = shlex.split(out.splitlines()[-1].removeprefix("next: assay "))
    words[words.index("OTHER_ROWS")] = str(two[1])
    words[words.index("0.01")] = "0.5"
    words[words.index("threshold.json")] = str(tmp_path / "threshold.json")
    code, out, _ = run(*words)
    assert code == 0
    words = shlex.split(out.splitlines()[-1].removeprefix("next: assay "))
    words[words.index("NEW_ROWS")] = str(tmp_path / "third.npz")
    assert run(*words)[0] == 0


def test_calibrate_and_threshold_write_json_and_pages(run, two, tmp_path):
    page, numbers = tmp_path / "x.html", tmp_path / "x.json"
    assert run("calibrate", two[0], "--json", numbers, "--html", page)[0] == 0
    assert json.loads(numbers.read_text())["temperature"]["differences"]["nll"]["a"] > 0
    assert "after temperature" in page.read_text()
    assert run("threshold", two[0], "--risk", 0.5, "--html", page)[0] == 0
    assert "Accept above" in page.read_text()
