"""The papers' tables are what the papers print, in natural units, under names that exist."""

from __future__ import annotations

import inspect
from decimal import Decimal
from math import log, sqrt

import pytest

from assay import calibrators
from assay._core.arrays import InputError
from assay._core.variants import Variant, parse_variant
from assay.calibrators import CALIBRATORS
from assay.metrics import METRICS
from assay.nn.data import DATA
from assay.nn.networks import NETWORKS
from assay.nn.recipes import METHODS
from assay.published import COLUMNS, SOURCES, Figure, PublishedTable, load, read
from assay.published._sources import FACTORS
from assay.scores import SCORES

# As printed, a table a block: data, network, method, calibrator (and score or shift), metric, then mean±spread.
SPOTS = """
zhu2022 1
cifar10 preact_resnet110 cross_entropy none aurc 9.94±1.29
cifar10 preact_resnet110 label_smoothing none auroc 81.89±1.64
cifar10 wrn28_10 mixup none fpr95 31.27±0.63
cifar10 densenet_bc_100_12 cross_entropy none aurc 6.2±0.29
cifar10 convmixer_256_16 l1 none e_aurc 11.07±2.36
cifar100 preact_resnet110 cross_entropy none aupr_error 66.54±0.29
cifar100 wrn28_10 focal none aupr_success 96.12±0.16
cifar100 densenet_bc_100_12 cs_kd none e_aurc 41.38±1.28
cifar100 convmixer_256_16 l1 none aupr_error 64.01±0.42
zhu2022 2
cifar10 preact_resnet110 fmfp none ece 0.50±0.13
cifar10 preact_resnet110 crl none nll 2.05±0.03
cifar10 wrn28_10 cross_entropy none brier 7.15±0.07
cifar10 wrn28_10 fmfp none e_aurc 1.90±0.03
cifar10 densenet_bc_100_12 sam none brier 7.45±0.20
cifar10 convmixer_256_16 swa none aurc 4.68±0.26
cifar100 preact_resnet110 cross_entropy none aupr_error 66.34±0.29
cifar100 preact_resnet110 swa none ece 5.38±0.13
cifar100 wrn28_10 fmfp none ece 6.07±0.34
cifar100 densenet_bc_100_12 crl none nll 8.50±0.14
cifar100 convmixer_256_16 sam none fpr95 64.58±1.44
cifar100 convmixer_256_16 fmfp none brier 31.52±0.63
zhu2022 3
cifar10 preact_resnet110 cross_entropy none/cifar10_c auroc 79.45
cifar10 convmixer_256_16 crl none/cifar10_c auroc 82.46
cifar10 wrn28_10 fmfp none/cifar10_c aurc 94.34
cifar10 densenet_bc_100_12 cross_entropy none/cifar10_c aurc 148.91
cifar10 preact_resnet110 crl none/cifar10_c fpr95 68.86
cifar10 convmixer_256_16 fmfp none/cifar10_c fpr95 65.29
zhu2022 4
cifar10 mobilenet_v2 cross_entropy none aurc 9.65±0.09
cifar10 mobilenet_v2 cs_kd none fpr95 52.82±0.60
cifar10 efficientnet_b0 mixup none e_aurc 11.85±2.12
cifar100 mobilenet_v2 mixup none aupr_success 94.70±0.39
cifar100 mobilenet_v2 l1 none auroc 85.44±0.32
cifar100 efficientnet_b0 focal none aurc 132.34±2.60
cifar100 efficientnet_b0 l1 none aupr_error 67.87±0.54
zhu2022 5
tiny_imagenet resnet18 cross_entropy none aurc 124.54±0.97
tiny_imagenet resnet18 crl none fpr95 60.65±1.85
tiny_imagenet resnet18 fmfp none ece 4.79±0.20
tiny_imagenet resnet50 cross_entropy none nll 15.41±0.26
tiny_imagenet resnet50 crl none aupr_success 93.38±0.19
tiny_imagenet resnet50 fmfp none auroc 87.71±0.27
singh2021 1
imagenet resnet50_imagenet cross_entropy none brier 33.54
imagenet resnet50_imagenet cross_entropy fixed_temperature(t=1.1) ece 2.44
imagenet resnet50_imagenet entropy none auroc 86.45
imagenet resnet50_imagenet label_smoothing(epsilon=0.1) none ece 5.35
imagenet resnet50_imagenet mixup none ece 1.62
imagenet resnet50_imagenet focal none auroc 85.07
singh2021 2
cifar10 resnet50 cross_entropy none ece 2.69±0.07
cifar10 resnet50 label_smoothing none auroc 73.46±1.41
cifar10 vgg16_bn label_smoothing none ece 3.93±0.26
cifar10 densenet121 mixup none ece 3.67±0.36
cifar100 resnet50 cross_entropy fixed_temperature ece 3.49±0.19
cifar100 resnet50 focal none auroc 85.91±0.24
cifar100 vgg16_bn entropy none brier 42.09±0.72
cifar100 densenet121 label_smoothing none brier 33.01±0.33
singh2021 3
cifar10 vgg16_bn cross_entropy none/cifar10_1 brier 24.50±1.23
cifar10 vgg16_bn cross_entropy fixed_temperature/cifar10_1 ece 8.16±1.18
cifar10 vgg16_bn focal none/cifar10_1 auroc 80.55±0.89
cifar10 vgg16_bn mixup none/cifar10_2 ece 9.77±1.79
cifar10 vgg16_bn label_smoothing none/cifar10_2 auroc 74.05±2.85
imagenet resnet50_imagenet entropy none/imagenet_v2 ece 4.47
imagenet resnet50_imagenet focal none/imagenet_v2 brier 51.15
singh2021 4
cifar100 vgg16_confidnet cross_entropy none ece 19.12±0.13
cifar100 vgg16_confidnet cross_entropy none/confidnet ece 13.95±2.7
cifar100 vgg16_confidnet cross_entropy none/confidnet auroc 86.0±0.18
cifar10 vgg16_confidnet cross_entropy none auroc 92.5±0.01
cifar10 vgg16_confidnet cross_entropy none/confidnet ece 4.1±0.2
wang2021 1
svhn resnet32 cross_entropy none accuracy 95.00±0.27
svhn resnet32 focal(gamma=1) none ece 1.01±0.21
cifar10 resnet32 cross_entropy none ece 6.43±0.22
cifar10 resnet32 l1(alpha=0.05) none ece 2.93±0.39
cifar100 resnet32 label_smoothing(epsilon=0.09) none ece 2.27±0.48
cifar100 resnet32 focal(gamma=5) none accuracy 60.36±0.44
newsgroups text_cnn8 cross_entropy none accuracy 72.85±0.89
newsgroups text_cnn8 l1 none ece 13.31±0.56
wang2021 2
svhn resnet32 cross_entropy histogram ece 0.68±0.22
cifar10 resnet32 cross_entropy temperature_ece ece 0.95±0.19
cifar10 resnet32 cross_entropy temperature_ece temperature 2.51
cifar10 resnet32 focal histogram ece 1.65±0.31
cifar100 resnet32 l1 temperature_ece ece 3.92±0.21
cifar100 resnet32 focal(gamma=5) temperature_ece temperature 0.97
newsgroups text_cnn8 l1 temperature_ece ece 2.71±0.25
newsgroups text_cnn8 cross_entropy temperature_ece temperature 4.18
karandikar2021 1
cifar100 wrn28_10 cross_entropy none ece_l2_mass 9.10±0.139
cifar100 wrn28_10 focal temperature ece_l2_mass 6.47±0.140
cifar100 wrn28_10 focal_s_avuc none ece_l2_mass 1.57±0.122
cifar10 wrn28_10 mmce none ece_l2_mass 1.55±0.053
cifar10 wrn28_10 focal_sb_ece none accuracy 95.1±0.056
imagenet resnet50_imagenet s_avuc none ece_l2_mass 2.26±0.055
imagenet resnet50_imagenet sb_ece temperature ece_l2_mass 1.92±0.024
karandikar2021 2
cifar100 wrn28_10 avuc none ece_l2_mass 11.4±0.175
cifar100 wrn28_10 sb_ece temperature ece_l2_mass 3.18±0.093
cifar100 wrn28_10 focal_mmce temperature_sb_ece_lb ece_l2_mass 2.82±0.110
cifar100 wrn28_10 brier_s_avuc none accuracy 77.6±0.104
cifar10 wrn28_10 avuc_gs none ece_l2_mass 4.94±0.109
cifar10 wrn28_10 focal_mmce none ece_l2_mass 8.74±0.059
cifar10 wrn28_10 brier_s_avuc none accuracy 92.0±0.117
imagenet resnet50_imagenet s_avuc temperature_sb_ece_lb ece_l2_mass 1.92±0.046
imagenet resnet50_imagenet sb_ece none accuracy 74.7±0.028
mukhoti2020 1
cifar100 resnet50 cross_entropy none ece 17.52
cifar100 resnet50 cross_entropy temperature_ece(step=0.1) temperature 2.10
cifar100 wrn28_10_postact mmce temperature_ece(step=0.1) ece 4.37
cifar10 resnet110_bottleneck brier none ece 2.56
cifar10 wrn28_10_postact cross_entropy temperature_ece(step=0.1) ece 0.92
newsgroups gp_cnn mmce(beta=8) temperature_ece(step=0.1) ece 6.78
sst2 tree_lstm flsd53 temperature_ece(step=0.1) temperature 0.70
mukhoti2020 2
cifar100 resnet50 flsd53 none ada_ece 4.39
cifar100 resnet110_bottleneck cross_entropy temperature_ada_ece ada_ece 5.50
cifar10 wrn28_10_postact cross_entropy temperature_ada_ece ada_ece 1.69
cifar10 densenet121 brier temperature_ada_ece ada_ece 2.18
newsgroups gp_cnn brier temperature_ada_ece temperature 2.20
sst2 tree_lstm mmce(beta=8) none ada_ece 4.49
mukhoti2020 3
cifar100 resnet50 cross_entropy none accuracy 23.30
cifar100 resnet110_bottleneck brier none accuracy 25.10
cifar10 resnet50 cross_entropy none accuracy 4.95
cifar10 densenet121 flsd53 none accuracy 5.46
newsgroups gp_cnn cross_entropy none accuracy 26.68
sst2 tree_lstm mmce(beta=8) none accuracy 11.86
mukhoti2020 4
cifar100 resnet50 focal none ece 5.13
cifar100 resnet110_bottleneck focal_scheduled temperature_ece(step=0.1) ece 3.43
cifar10 wrn28_10_postact focal temperature_ece(step=0.1) temperature 0.90
newsgroups gp_cnn focal_scheduled none ece 12.13
sst2 tree_lstm focal none ece 16.05
mukhoti2020 5
cifar100 densenet121 focal temperature_ada_ece ada_ece 1.23
cifar10 resnet50 focal none ada_ece 1.95
cifar10 resnet110_bottleneck focal_scheduled temperature_ada_ece temperature 1.40
newsgroups gp_cnn focal temperature_ada_ece ada_ece 3.78
sst2 tree_lstm focal_scheduled none ada_ece 2.94
mukhoti2020 6
cifar100 resnet50 focal none accuracy 22.75
cifar100 wrn28_10_postact focal_scheduled none accuracy 20.13
cifar10 densenet121 focal_scheduled none accuracy 5.65
newsgroups gp_cnn focal none accuracy 29.26
sst2 tree_lstm focal_scheduled none accuracy 13.07
mukhoti2020 7
cifar10 resnet110_bottleneck cross_entropy none s99 97.11
cifar10 resnet110_bottleneck cross_entropy temperature_ece(step=0.1) s99 11.5
cifar10 resnet110_bottleneck mmce none s99_accuracy 96.72
cifar10 resnet50 mmce temperature_ece(step=0.1) s99_accuracy 100
cifar10 resnet50 flsd53 none s99 46.31
cifar10 resnet50 flsd53 temperature_ece(step=0.1) s99_accuracy 99.93
mukhoti2020 8
cifar100 resnet50 focal(gamma=1) none ece 12.86
cifar100 resnet110_bottleneck flsd532 temperature_ece(step=0.1) ece 3.64
cifar10 resnet110_bottleneck focal(gamma=2) temperature_ece(step=0.1) ece 0.89
cifar10 densenet121 flsd53 none ece 1.22
newsgroups gp_cnn focal(gamma=1) temperature_ece(step=0.1) temperature 2.60
sst2 tree_lstm focal_scheduled(gammas=(5,3,1)) none ece 4.66
mukhoti2020 9
cifar100 resnet50 focal_scheduled(gammas=(5,3,1)) temperature_ada_ece ada_ece 2.01
cifar100 wrn28_10_postact focal none ada_ece 2.08
cifar10 resnet110_bottleneck focal(gamma=1) temperature_ada_ece temperature 1.70
newsgroups gp_cnn flsd532 none ada_ece 12.19
sst2 tree_lstm focal(gamma=1) none ada_ece 6.01
mukhoti2020 10
cifar100 resnet50 focal(gamma=1) none accuracy 22.80
cifar100 densenet121 flsd532 none accuracy 22.41
cifar10 resnet110_bottleneck focal_scheduled(gammas=(5,3,1)) none accuracy 6.13
cifar10 wrn28_10_postact flsd53 none accuracy 4.01
newsgroups gp_cnn focal(gamma=2) none accuracy 28.23
sst2 tree_lstm focal none accuracy 12.19
mukhoti2020 11
cifar100 resnet50 cross_entropy none nll 153.67
cifar100 densenet121 cross_entropy none nll 205.61
cifar10 resnet110_bottleneck mmce none nll 55.71
cifar10 wrn28_10_postact flsd532 none nll 14.78
newsgroups gp_cnn flsd53 none nll 109.17
sst2 tree_lstm focal(gamma=2) none nll 47.72
mukhoti2020 12
cifar100 resnet50 cross_entropy temperature_ece(step=0.1) nll 106.83
cifar100 resnet110_bottleneck brier temperature_ece(step=0.1) nll 111.81
cifar10 wrn28_10_postact flsd53 temperature_ece(step=0.1) nll 14.23
newsgroups gp_cnn focal(gamma=1) temperature_ece(step=0.1) nll 87.24
sst2 tree_lstm focal_scheduled temperature_ece(step=0.1) nll 54.52
mukhoti2020 13
cifar100 resnet50 cross_entropy none mce 44.34
cifar100 densenet121 flsd53 none mce 9.68
cifar10 resnet110_bottleneck focal(gamma=1) none mce 73.35
cifar10 wrn28_10_postact brier none mce 77.15
newsgroups gp_cnn focal none mce 18.85
sst2 tree_lstm focal(gamma=1) none mce 95.48
mukhoti2020 14
cifar100 resnet50 flsd53 temperature_ece(step=0.1) mce 27.18
cifar100 wrn28_10_postact focal(gamma=2) temperature_ece(step=0.1) mce 18.32
cifar10 densenet121 focal temperature_ece(step=0.1) mce 76.27
newsgroups gp_cnn cross_entropy temperature_ece(step=0.1) mce 6.10
sst2 tree_lstm mmce(beta=8) temperature_ece(step=0.1) mce 32.92
"""

SIZES = {
    "zhu2022": {"1": 288, "2": 360, "3": 36, "4": 144, "5": 48},
    "singh2021": {"1": 18, "2": 108, "3": 54, "4": 8},
    "wang2021": {"1": 32, "2": 48},
    "karandikar2021": {"1": 42, "2": 168},
    "mukhoti2020": {"1": 120, "2": 120, "3": 40, "4": 90, "5": 90, "6": 30, "7": 24, "8": 210, "9": 210, "10": 70}
    | dict.fromkeys(("11", "12", "13", "14"), 100),
}
SHIFTS = {"none": "", "cifar10_c": "cifar10", "cifar10_1": "cifar10", "cifar10_2": "cifar10", "imagenet_v2": "imagenet"}


def spots() -> dict[PublishedTable, list[list[str]]]:
    sources = {(source.paper, source.table): source for source in SOURCES}
    found: dict[PublishedTable, list[list[str]]] = {}
    for line in SPOTS.strip().splitlines():
        cells = line.split()
        if len(cells) == 2:
            lines = found[sources[cells[0], cells[1]]] = []
        else:
            lines.append(cells)
    return found


def key(figure: Figure) -> tuple[str, ...]:
    return figure.data, figure.network, figure.method, figure.calibrator, figure.score, figure.shift


def table(paper: str, number: str, metric: str) -> dict[tuple[str, ...], float]:
    return {key(f): f.mean for f in load(paper) if (f.table, f.metric) == (number, metric)}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.file)
def test_cells_are_as_printed(source: PublishedTable):
    figures = {(*key(f), f.metric): f for f in load(source.paper) if f.table == source.table}
    assert len(figures) == SIZES[source.paper][source.table]
    assert len(spots()[source]) >= 5
    for data, network, method, calibrator, metric, printed in spots()[source]:
        calibrator, _, where = calibrator.partition("/")
        score = where if where == "confidnet" else "max_probability"
        shift = where if where and where != "confidnet" else "none"
        figure = figures[data, network, method, calibrator, score, shift, metric]
        mean, _, spread = printed.partition("±")
        unit = dict(source.units)[metric]
        natural = Decimal(mean) / FACTORS[unit]
        assert figure.mean == float(1 - natural if unit == "error in %" else natural)
        if not spread:
            assert figure.sd is None
        elif source.paper == "karandikar2021":  # prints standard errors
            assert figure.sd is not None
            assert round(figure.sd / sqrt(10) * FACTORS[unit], 3) == float(spread)
        else:
            assert figure.sd == float(Decimal(spread) / FACTORS[unit])


def test_every_table_has_its_file_and_every_metric_its_unit():
    assert [(s.paper, s.table) for s in SOURCES] == [(paper, t) for paper, tables in SIZES.items() for t in tables]
    for source in SOURCES:
        printed = {f.metric for f in load(source.paper) if f.table == source.table}
        assert printed == set(dict(source.units))
        assert set(dict(source.units).values()) <= set(FACTORS)
        assert source.caption
    assert len(load()) == sum(sum(tables.values()) for tables in SIZES.values()) == 2758


def test_a_paper_is_part_of_the_whole():
    assert sum((load(paper) for paper in SIZES), ()) == load()


def test_names_resolve():
    for figure in load():
        method, calibrator = figure.variants
        assert figure.data in DATA
        assert figure.network in NETWORKS
        assert method.name in METHODS
        assert figure.metric in METRICS or figure.metric == "temperature"
        assert calibrator.name in {"none", *CALIBRATORS, "fixed_temperature"}
        assert figure.score in {*SCORES, "confidnet"}
        assert SHIFTS[figure.shift] in ("", figure.data)


def test_settings_of_calibrators_are_parameters_and_not_the_defaults():
    for calibrator in {f.variants[1] for f in load() if f.variants[1].values}:
        function = CALIBRATORS.get(calibrator.name, calibrators.fixed_temperature)
        for name, value in calibrator.values.items():
            assert inspect.signature(function).parameters[name].default != value


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("focal@wang2021,gamma=3.0", Variant("focal", {"gamma": 3.0}, "wang2021")),
        ("crl", Variant("crl")),
        ("a,x=1,y=-2e-3", Variant("a", {"x": 1, "y": -0.002})),
        ("focal(gamma=5)", Variant("focal", {"gamma": 5.0})),
        ("focal_scheduled(gammas=(5,3,1))", Variant("focal_scheduled", {"gammas": (5, 3, 1)})),
        ("flsd53,gammas=[5,3],cuts=[0.2]", Variant("flsd53", {"cuts": (0.2,), "gammas": (5, 3)})),
        ("focal,detach_weight=True,gamma=2", Variant("focal", {"gamma": 2, "detach_weight": True})),
    ],
)
def test_a_variant_is_its_name_its_values_and_its_set_up(text, variant):
    found = parse_variant(text)
    assert found == variant
    assert hash(found) == hash(variant)
    assert parse_variant(str(found)) == found


def test_units_are_natural():
    for figure in load():
        if figure.metric == "temperature":
            assert 0.5 <= figure.mean <= 4.5
        elif figure.metric == "nll":
            assert 0.1 < figure.mean < log(1000)
        else:
            assert 0 < figure.mean <= 1, figure
        assert figure.sd is None or figure.sd < figure.mean


def test_spread_is_there_where_it_is_printed():
    for figure in load():
        single = figure.paper == "mukhoti2020" or (figure.paper, figure.table) in {("zhu2022", "3"), ("singh2021", "1")}
        none = single or figure.shift == "imagenet_v2" or figure.metric == "temperature"
        assert (figure.sd is None) == none, figure


def test_tables_of_a_paper_agree_but_for_one_cell():
    found: dict[tuple[str, ...], set[tuple[float, float | None]]] = {}
    for f in load():
        found.setdefault((f.paper, *key(f), f.metric), set()).add((f.mean, f.sd))
    differing = [k for k, values in found.items() if len(values) > 1]
    assert differing == [
        ("zhu2022", "cifar100", "preact_resnet110", "cross_entropy", "none", "max_probability", "none", "aupr_error")
    ]
    assert len(load()) - len(found) == 48 + 42 + 280  # printed again in zhu2022, karandikar2021, mukhoti2020


@pytest.mark.parametrize("number", ["1", "2", "4", "5"])
def test_aurc_less_e_aurc_gives_an_error_rate(number: str):
    # The optimum is r + (1 - r) log(1 - r), by Geifman et al. (ICLR 2019).
    ranges = {"cifar10": (0.035, 0.105), "cifar100": (0.18, 0.35), "tiny_imagenet": (0.31, 0.36)}
    excess, auroc = table("zhu2022", number, "e_aurc"), table("zhu2022", number, "auroc")
    for k, area in table("zhu2022", number, "aurc").items():
        r = _error_rate(area - excess[k])
        low, high = ranges[k[0]]
        assert low < r < high, k
        # The area cannot be below that of a ranking as good as AUROC says: AUGRC is at most AURC.
        assert (1 - auroc[k]) * r * (1 - r) + r * r / 2 < area, k


def _error_rate(optimum: float) -> float:
    low, high = 0.0, 0.9
    for _ in range(60):
        r = (low + high) / 2
        low, high = (r, high) if r + (1 - r) * log(1 - r) < optimum else (low, r)
    return low


def test_brier_lies_between_error_rate_and_twice_that():
    aurc, excess = table("zhu2022", "2", "aurc"), table("zhu2022", "2", "e_aurc")
    for k, brier in table("zhu2022", "2", "brier").items():
        assert 1.25 < brier / _error_rate(aurc[k] - excess[k]) < 1.8, k


def test_text_of_zhu2022_agrees():
    auroc, ece = table("zhu2022", "2", "auroc"), table("zhu2022", "2", "ece")
    rest = ("none", "max_probability", "none")
    for data, gain in (("cifar10", 0.0300), ("cifar100", 0.0224)):
        net = (data, "preact_resnet110")
        assert auroc[*net, "fmfp", *rest] - auroc[*net, "cross_entropy", *rest] == pytest.approx(gain)
    assert ece["cifar10", "densenet_bc_100_12", "cross_entropy", *rest] == 0.0296


def test_a_temperature_of_1_changes_nothing():
    others = [
        (table("mukhoti2020", "11", "nll"), table("mukhoti2020", "12", "nll")),
        (table("mukhoti2020", "13", "mce"), table("mukhoti2020", "14", "mce")),
    ]
    ones = 0
    for number, metric in (("1", "ece"), ("8", "ece"), ("2", "ada_ece"), ("9", "ada_ece")):
        values = table("mukhoti2020", number, metric)
        pairs = [(values, values), *(others if metric == "ece" else [])]
        for k, t in table("mukhoti2020", number, "temperature").items():
            for before, after in pairs:
                assert (before[*k[:3], "none", *k[4:]] == after[k]) == (t == 1), k
            ones += t == 1
    assert ones == 3 + 3 + 1 + 4


def test_the_worst_bin_is_worse_than_the_mean():
    for pre, number in (("13", "1"), ("13", "8"), ("14", "1"), ("14", "8")):
        ece = table("mukhoti2020", number, "ece")
        for k, worst in table("mukhoti2020", pre, "mce").items():
            assert k not in ece or worst >= ece[k]


def test_answers_sure_by_99_percent_are_no_more_than_all():
    accuracy, right = table("mukhoti2020", "3", "accuracy"), table("mukhoti2020", "7", "s99_accuracy")
    for k, share in table("mukhoti2020", "7", "s99").items():
        overall = accuracy[*k[:3], "none", *k[4:]]
        assert share * right[k] <= overall
        assert share * (1 - right[k]) <= 1 - overall


def test_claims_of_karandikar2021_that_its_table_does_not_bear_out():
    ece = table("karandikar2021", "2", "ece_l2_mass")
    soft = [ece[(*k[:3], "temperature_sb_ece_lb", *k[4:])] < v for k, v in ece.items() if k[3] == "temperature"]
    assert (sum(soft), len(soft)) == (34, 42)
    plain_avuc = {k: v for k, v in ece.items() if k[2] in {"avuc", "focal_avuc", "brier_avuc"} and k[3] == "none"}
    assert [ece[(*k[:2], k[2] + "_gs", *k[3:])] > v for k, v in plain_avuc.items()].count(True) == 4


def test_slips_are_noted():
    noted = [f for f in load() if f.note]
    assert {(f.paper, f.table) for f in noted} >= {
        ("zhu2022", "1"),
        ("zhu2022", "2"),
        ("zhu2022", "5"),
        ("mukhoti2020", "7"),
    }
    same = [f for f in noted if f.note == "both networks print the same spread"]
    assert [f.sd for f in same[:8]] == [f.sd for f in same[8:]]


def test_unknown_papers_are_refused():
    with pytest.raises(
        InputError, match="unknown paper 'zhu2020'; there are zhu2022, singh2021, wang2021, karandikar2021"
    ):
        load("zhu2020")


ROW = "cifar10,resnet50,focal,none,max_probability,none,ece"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([f"{ROW},0.1,,", f"{ROW},high,,"], "row 3: mean is no number: 'high'"),
        ([f"{ROW},nan,,"], "row 2: mean is not finite"),
        ([f"{ROW},0.1,-1,"], "row 2: sd must be >= 0, got -1"),
        ([f"{ROW},0.1,"], "row 2: 9 cells for 10 columns"),
        ([f"{ROW},0.1,,", f"{ROW},0.2,,"], "row 3: the same figure as in row 2"),
        ([f"{ROW.replace('focal', '')},0.1,,"], "row 2: method is empty"),
    ],
)
def test_bad_rows_are_named(tmp_path, rows: list[str], message: str):
    file = tmp_path / "own.csv"
    file.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")
    with pytest.raises(InputError, match=f"own.csv, {message}"):
        read(file, paper="own", table="1")


def test_other_columns_are_refused(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text("data,network\n")
    with pytest.raises(InputError, match=r"own.csv, row 1: the columns are data,network, not data,network,method"):
        read(file, paper="own", table="1")
