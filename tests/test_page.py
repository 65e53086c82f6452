"""The page: its data are the statistics, names are never markup, and a real browser shows it without a network."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay import Outcomes, Predictions, audit, compare, examples, metrics
from assay.report.page import audit_page, compare_page
from assay.report.page._tables import RISKS
from assay.selective import choose_threshold, risk_bound, spelled

DRAWN = """return [...document.querySelectorAll(".chart")].filter((chart) => chart.offsetParent)
    .every((chart) => chart.querySelector(".trace"))"""
EVIL = '</script><script>document.title="pwned"</script><b>"bold" & \'quoted\''
PAGE = Path(audit_page.__code__.co_filename).parent


@pytest.fixture(scope="module")
def predictions() -> Predictions:
    """The embedded example with ids, and groups one of which is called by a script."""
    found = examples.load()
    ids = np.array([f"img-{row}" for row in range(len(found))])
    return replace(found, ids=ids, group=np.array(["day", EVIL])[np.arange(len(found)) % 2])


@pytest.fixture(scope="module")
def folder(predictions, tmp_path_factory) -> Path:
    """An audit page of two models and a comparison of them."""
    folder = tmp_path_factory.mktemp("pages")
    models = {"cross_entropy": predictions, EVIL: replace(examples.load("label_smoothing"), ids=predictions.ids)}
    audit_page(models, {name: audit(rows) for name, rows in models.items()}, folder / "audit.html")
    compare_page(models, compare(*models.values()), folder / "compare.html")
    return folder


def data(page: Path):
    """What the page holds for its scripts."""
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found)


@pytest.fixture(scope="module")
def model(folder):
    return data(folder / "audit.html")["models"][0]


def test_reliability_on_the_page_is_that_of_the_bins(model, predictions):
    bins = metrics.equal_width(predictions.outcomes())
    assert model["reliability"]["count"] == bins.count.tolist()
    assert model["reliability"]["accuracy"] == pytest.approx(bins.accuracy.tolist(), rel=1e-4)


def test_the_verdict_says_both_axes_and_what_to_accept(model, predictions):
    assert model["verdict"][0] == str(audit(predictions))
    assert re.fullmatch(
        r"Accept above 0\.9999999\d+: at most 1% errors on 6\.4% of inputs, at 95% confidence\.", model["verdict"][1]
    )


def test_a_promise_that_cannot_be_kept_is_not_made(tmp_path):
    few = Outcomes.from_scores([0.9, 0.8, 0.7], [1, 1, 0])
    audit_page({"few": few}, {"few": audit(few)}, tmp_path / "few.html")
    [found] = data(tmp_path / "few.html")["models"]
    assert found["verdict"][1].startswith("No threshold promises at most 1% errors: even without an error")
    assert found["decisions"]["start"] == 2
    assert found["decisions"]["kept"] == [1, 2, 3]


def test_each_step_of_the_slider_counts_what_it_accepts(model, predictions):
    steps, confidence = model["decisions"], predictions.outcomes().confidence
    order = confidence.argsort(descending=True)
    for step in (0, 17, 100):
        first = order[: steps["kept"][step]]
        assert steps["wrong"][step] == int((~predictions.outcomes().correct[first]).sum())
        assert 1 - float(steps["threshold"][step]) == pytest.approx(1 - float(confidence[first[-1]]), rel=0.02)
    assert (steps["threshold"][-1], steps["kept"][-1], steps["wrong"][-1]) == ("anything", 10_000, 2_410)
    bounds = risk_bound(steps["wrong"], steps["kept"], 0.95)
    assert steps["bound"] == pytest.approx(bounds.tolist(), rel=1e-4)


def test_every_promise_is_a_step_of_the_slider(model, predictions):
    promised = [choose_threshold(predictions, risk=risk).accepted for risk in RISKS]
    assert set(promised) <= set(model["decisions"]["kept"])
    assert model["decisions"]["kept"][model["decisions"]["start"]] == promised[0]


@pytest.mark.parametrize("step", [30, -1])
def test_the_confusion_of_a_step_is_that_of_the_rows_it_accepts(step, model, predictions):
    steps, cells = model["decisions"]["confusion"]["steps"], np.zeros(100, dtype=int)
    last = range(len(steps))[step]
    for added in steps[: last + 1]:
        np.add.at(cells, added[::2], added[1::2])
    most = model["decisions"]["kept"][last]
    rows = predictions.outcomes().confidence.argsort(descending=True)[:most]
    expected = np.zeros((10, 10), dtype=int)
    np.add.at(expected, (predictions.labels[rows].numpy(), predictions.values[rows].argmax(1).numpy()), 1)
    assert cells.reshape(10, 10).tolist() == expected.tolist()


def test_many_classes_have_no_confusion(tmp_path):
    rng = np.random.default_rng(0)
    many = Predictions.from_logits(rng.normal(size=(100, 21)), rng.integers(0, 21, 100))
    audit_page({"many": many}, {"many": audit(many)}, tmp_path / "many.html")
    assert data(tmp_path / "many.html")["models"][0]["decisions"]["confusion"] is None


def test_mistakes_come_by_their_ids_the_most_confident_first(model, predictions):
    outcomes = predictions.outcomes()
    wrong = (~outcomes.correct).nonzero().squeeze(1)
    worst = int(wrong[outcomes.confidence[wrong].argmax()])
    first = model["mistakes"]["rows"][0]
    assert [cell["text"] for cell in first[2:4]] == [
        str(int(predictions.values[worst].argmax())),
        str(int(predictions.labels[worst])),
    ]
    assert first[0]["text"] == f"img-{worst}"
    confidences = [row[1]["value"] for row in model["mistakes"]["rows"]]
    assert confidences == sorted(confidences, reverse=True)


def test_names_and_groups_are_data_and_never_markup(folder):
    for page in ("audit", "compare"):
        text = (folder / f"{page}.html").read_text()
        assert text.count("</script>") == 3
        assert "<script>document" not in text
        assert data(folder / f"{page}.html")["models"][1]["name"] == EVIL
        assert "&lt;/script&gt;" in re.findall("<title>(.*?)</title>", text)[0]
    groups = data(folder / "audit.html")["models"][0]["groups"]["rows"]
    assert {row[0]["text"] for row in groups} == {"day", EVIL}


def test_a_mere_score_has_no_reliability(tmp_path):
    energy = Outcomes.from_scores([7.5, -3.0, 2.0], [1, 0, 1], is_probability=False)
    audit_page({"energy": energy}, {"energy": audit(energy)}, tmp_path / "energy.html")
    [found] = data(tmp_path / "energy.html")["models"]
    assert found["reliability"] is None
    assert found["decisions"]["threshold"] == ["4.75", "-0.5", "anything"]
    assert [tile["title"] for tile in found["tiles"]][:2] == ["accuracy", "ranking of errors (AUROC)"]


def test_a_quarter_of_a_million_samples_still_make_a_small_page(tmp_path):
    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 1, 250_000)
    many = Outcomes.from_scores(confidence, rng.random(250_000) < confidence)
    audit_page({"many": many}, {"many": audit(many, draws=10)}, tmp_path / "many.html")
    assert (tmp_path / "many.html").stat().st_size < 1_400_000
    [found] = data(tmp_path / "many.html")["models"]
    assert sum(found["reliability"]["count"]) == 250_000
    assert len(found["selective"]["risk"]) <= 500


def test_a_confidence_is_written_with_the_digits_that_tell_it_from_one():
    written = {0.25: "0.25", 0.98423: "0.9842", 1 - 4.936e-8: "0.9999999506", 1.0: "1", 7.123456789: "7.12346"}
    assert {value: spelled(value) for value in written} == written


def test_differences_are_colored_by_what_is_better(folder):
    rows = {row[0]["value"]: row[3] for row in data(folder / "compare.html")["differences"]["rows"]}
    assert {key: rows[key]["tone"] for key in ("accuracy", "calibration_part", "auroc", "aurc", "ece")} == {
        "accuracy": "bad",
        "calibration_part": "good",
        "auroc": "",
        "aurc": "bad",
        "ece": "",
    }


def test_the_vendored_bundle_has_its_licence_beside_it_and_nothing_is_fetched():
    assert "Plotly" in (PAGE / "plotly-LICENSE").read_text()
    assert "</script" not in (PAGE / "plotly-basic.min.js").read_text()
    own = "".join(
        file.read_text()
        for file in PAGE.iterdir()
        if file.suffix in (".html", ".css", ".js") and "plotly" not in file.name
    )
    assert not re.search(r"https?:|@import|url\(|\bsrc=|fetch\(|XMLHttpRequest|innerHTML", own)


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium that writes down its console and every request."""
    driver = shutil.which("chromedriver")
    binary = shutil.which("chromium")
    if driver is None or binary is None:
        pytest.skip("NO BROWSER: the page was not tested in one; run tests/install_chromium.sh as root")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (
        *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"),
        *("disable-component-update", "disable-sync", "disable-dev-shm-usage", "window-size=1280,900"),
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture
def opened(browser, folder):
    """Opens a page and waits for its charts; afterwards its console must be empty and all requests its own."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(name: str):
        browser.get((folder / f"{name}.html").as_uri())
        WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(DRAWN))
        return browser

    browser.get_log("browser")
    browser.get_log("performance")
    yield open_page
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def all_texts(driver, selector: str) -> list[str]:
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((found) => found.textContent)", selector
    )


def shown(driver, selector: str) -> str:
    return all_texts(driver, selector)[0]


def click(driver, selector: str) -> None:
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def test_the_audit_page_draws_everything(opened):
    driver = opened("audit")
    assert all_texts(driver, ".verdict")[0].startswith("Over-confident by 15.9 points")
    assert len(all_texts(driver, ".chart .main-svg .cartesianlayer")) == 5
    assert len(all_texts(driver, "#metrics tbody tr")) == 16
    assert len(all_texts(driver, "#trust .reliability .barlayer .point")) > 30


def test_the_slider_moves_the_counts_and_the_confusion(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    driver = opened("audit")
    slider = driver.find_element(By.ID, "threshold")
    slider.send_keys(Keys.END)
    assert all_texts(driver, "#accepted dd") == ["100.0% (10,000)", "0.0% (0)", "24.10% (2,410)", "24.81%"]
    assert shown(driver, "#accept-above") == "anything"
    cells = all_texts(driver, "#confusion tbody td")
    assert sum(int(cell) for cell in cells if cell != "·") == 10_000
    slider.send_keys(Keys.ARROW_LEFT)
    assert all_texts(driver, "#accepted dd")[:2] == ["99.5% (9,950)", "0.5% (50)"]


def test_a_click_on_a_head_sorts_and_another_turns_the_order(opened):
    driver = opened("audit")
    head = "#metrics th:nth-child(1) button"
    click(driver, head)
    names = all_texts(driver, "#metrics tbody td:first-child")
    assert names == sorted(names)
    click(driver, head)
    assert all_texts(driver, "#metrics tbody td:first-child")[0] > names[0]


@pytest.mark.parametrize(("clicks", "falling"), [(1, False), (2, True)])
def test_rows_without_a_value_come_last_either_way(clicks, falling, opened):
    driver = opened("audit")
    for _ in range(clicks):
        click(driver, "#metrics th:nth-child(4) button")
    floors = all_texts(driver, "#metrics tbody td:nth-child(4)")
    assert floors[:3] == sorted(floors[:3], reverse=falling)
    assert "" not in floors[:3]
    assert set(floors[3:]) == {""}


def test_rows_are_filtered_by_what_is_typed(opened):
    from selenium.webdriver.common.by import By

    driver = opened("audit")
    driver.find_element(By.CSS_SELECTOR, "#metrics input").send_keys("risk-coverage")
    assert all_texts(driver, "#metrics tbody td:first-child") == ["aurc ↓", "augrc ↓"]


def test_another_model_is_shown_when_chosen(opened):
    driver = opened("audit")
    click(driver, "#choice label:nth-of-type(2) input")
    assert all_texts(driver, ".verdict")[0].startswith("Miscalibrated")
    assert shown(driver, "header .size").startswith(EVIL)
    assert driver.execute_script("return document.querySelector('#groups').hidden")


def test_a_script_in_a_name_is_shown_as_text(opened):
    driver = opened("audit")
    assert driver.title == f"Confidence audit: cross_entropy, {EVIL}"
    assert EVIL in all_texts(driver, "#choice span")
    assert EVIL in all_texts(driver, "#groups tbody td:first-child")
    assert EVIL in all_texts(driver, "#overview .risk .legendtext")


def test_the_comparison_shows_verdicts_and_both_curves(opened):
    driver = opened("compare")
    assert shown(driver, ".verdict") == "B against A: accuracy worse, calibration better, refinement no difference."
    assert len(all_texts(driver, "#overview .risk .scatterlayer .trace")) == 2
    assert len(all_texts(driver, "#differences tbody tr")) == 17


def test_dark_and_light_follow_the_system_and_the_button(opened):
    driver = opened("audit")

    def paper() -> str:
        return driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    def system(theme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": theme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    system("dark")
    assert paper() == "rgb(20, 23, 27)"
    click(driver, "#theme")
    assert paper() == "rgb(255, 255, 255)"
    system("light")
    assert paper() == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", ["audit", "compare"])
def test_the_page_fits_a_phone(name, opened):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver = opened(name)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    opened(name)
    try:
        assert driver.execute_script("return document.documentElement.scrollWidth") == 390
        width = "return document.querySelector('#overview .risk .main-svg').getBoundingClientRect().width"
        assert 300 < driver.execute_script(width) <= 390
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
