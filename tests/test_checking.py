"""`assay check` fails when the data show that a requirement is broken, and only then."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import gaussian_predictions

from assay import audit, choose_threshold, examples, files, maps
from assay._core.arrays import InputError
from assay.calibrators import fixed_temperature
from assay.checking import check_no_worse, check_promise, check_requirements, requirement
from assay.cli import main
from assay.predictions import Outcomes
from assay.report.jsons import write_json

TEST = gaussian_predictions(500, 4, seed=1)


@pytest.mark.parametrize(("key", "relation"), [("ece", "<="), ("auroc", ">="), ("risk_at_90", "<=")])
def test_a_requirement_fails_when_the_whole_interval_breaks_it(key, relation):
    bar = audit(TEST)[key].interval
    for limit, lenient, strict in (
        (bar.low - 1e-6, relation == ">=", relation == ">="),
        ((bar.low + bar.high) / 2, True, False),
        (bar.high + 1e-6, relation == "<=", relation == "<="),
    ):
        wanted = [requirement(f"{key}{relation}{limit}")]
        assert check_requirements(TEST, wanted)[0].passed == lenient
        assert check_requirements(TEST, wanted, strict=True)[0].passed == strict


@pytest.mark.parametrize("text", ["ece", "ece<0.1", "ece<=x", "eca<=0.1", "ece<=1.2.3"])
def test_a_requirement_that_cannot_be_read_is_named(text):
    with pytest.raises(InputError, match=r"requirement|unknown metric|no number"):
        requirement(text)


def test_a_worse_model_fails_and_the_same_passes():
    good, bad = examples.load(), maps.apply(fixed_temperature(examples.load(), t=0.3), examples.load())
    assert not all(check.passed for check in check_no_worse(good, bad))
    assert all(check.passed for check in check_no_worse(good, good))


def outcomes(n, risk, seed):
    rng = np.random.default_rng(seed)
    return Outcomes.from_scores(rng.uniform(0.5, 1, n), rng.uniform(size=n) >= risk)


def test_a_promise_is_checked_again():
    promised = choose_threshold(outcomes(5000, 0.01, 0), risk=0.05)
    assert check_promise(outcomes(5000, 0.01, 1), promised, strict=True).passed
    assert not check_promise(outcomes(5000, 0.1, 2), promised).passed
    few = outcomes(20, 0.01, 3)
    assert check_promise(few, promised).passed
    assert not check_promise(few, promised, strict=True).passed
    with pytest.raises(InputError, match="under another map"):
        check_promise(replace(few, map_digest="other"), promised)


def test_the_command_fails_with_a_table_and_reports(tmp_path, capsys, monkeypatch):
    files.write(TEST, tmp_path / "new.npz")
    files.write(TEST, tmp_path / "old.npz")
    write_json(choose_threshold(TEST, risk=0.4), tmp_path / "threshold.json")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    words = ["check", str(tmp_path / "new.npz"), "--baseline", str(tmp_path / "old.npz"), "--no-worse"]
    words += ["--threshold", str(tmp_path / "threshold.json"), "--junit", str(tmp_path / "junit.xml")]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--require", "accuracy>=0.1"])
    with pytest.raises(SystemExit, match="1"):
        main([*words, "--require", "accuracy>=0.1", "--require", "ece<=0.0001"])
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.attrib["failures"] == "1"
    assert [case.attrib["name"] for case in suite if len(case)] == ["ece <= 0.0001"]
    assert "**failed**" in (tmp_path / "summary.md").read_text()
    assert "FAILED" in capsys.readouterr().out
