"""Where the figures come from: seed and table, what it shows, the units it prints, what to know when reading it.

Captions stand below the tables in seeds 001 and 004, above them in the others.
"""

from __future__ import annotations

from dataclasses import dataclass

FACTORS = {"%": 100, "x1000": 1000, "x10": 10, "as is": 1, "error in %": 100}
"""By how much a printed number exceeds the natural one; an error is 100 % less the accuracy that is stored."""


@dataclass(frozen=True)
class Source:
    """One table of one seed."""

    seed: str
    table: str
    caption: str
    units: tuple[tuple[str, str], ...]  # of each metric, as printed: a key of FACTORS
    runs: int | None  # behind each mean; none where the paper does not say
    remarks: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The name of its csv file."""
        return f"seed{self.seed}_table{self.table}.csv"


FAILURE = (
    ("aurc", "x1000"),
    ("e_aurc", "x1000"),
    ("fpr95", "%"),
    ("auroc", "%"),
    ("aupr_success", "%"),
    ("aupr_error", "%"),
)
ESTIMATION = (*FAILURE, ("ece", "%"), ("nll", "x10"))
JOINT = (("brier", "%"), ("ece", "%"), ("auroc", "%"))
ECE = (("ece", "%"), ("temperature", "as is"))
ADA_ECE = (("ada_ece", "%"), ("temperature", "as is"))
ERROR = (("accuracy", "error in %"),)
SOFT = (("accuracy", "%"), ("ece_l2_mass", "%"))

CONVENTIONS_000 = (
    "E-AURC is AURC less r + (1 - r) ln(1 - r) of the error rate r; ours has the discrete optimum, up to .00002 higher",
    "FPR95 is read at the point nearest to 95 %, AUPR-Success is a trapezoid: by the public code",
)
NETWORKS_000 = "ResNet110, WRNet, DenseNet, ConvMixer are taken for the networks of the public code"
FIXED_001 = "temperatures are fixed, not fitted: 1.5 on CIFAR, 1.1 on ImageNet; the number of ECE bins is not said"
CHOSEN_002 = "coefficients were chosen on the test set, by ECE"
SEM_003 = "printed with standard errors of 10 runs; sd is these times the root of 10"
TUNED_003 = "weights of the secondary losses were tuned and are not printed; MSE is taken for our Brier loss"
NETWORKS_004 = "ResNet-110 and Wide-ResNet-26-10 are taken for those of the public code, Tree-LSTM for the printed one"
MMCE_004 = "MMCE has weight 2 on images, 8 on texts"
ON_ECE_004 = "temperatures are those of least held-out ECE in steps of .1"
SAMPLE_WISE_004 = "the last column, headed FLS-53, is the sample-wise FLA-53 of the text: its figures are those of"
SCHEDULES_004 = "the text finds schedule 5,3,2 better than 5,3,1 throughout; after scaling it is not on"

SOURCES: tuple[Source, ...] = (
    Source(
        "000",
        "1",
        "calibration methods judged by failure prediction, CIFAR",
        FAILURE,
        3,
        (
            *CONVENTIONS_000,
            NETWORKS_000,
            "L1 cites the paper of CS-KD; table 4 cites the right one",
            "bold is not always best: FPR95 of DenseNet on CIFAR-10 is lowest for L1",
        ),
    ),
    Source(
        "000",
        "2",
        "flat minima and CRL: failure prediction and calibration, CIFAR",
        (*ESTIMATION, ("brier", "%")),
        3,
        (
            *CONVENTIONS_000,
            NETWORKS_000,
            "NLL is printed as a sum and Brier without its square; the figures are means, and squared",
            "bold is not always best: on CIFAR-100 CRL has the lowest ECE of WRNet and the lowest FPR95 of ConvMixer",
        ),
    ),
    Source(
        "000",
        "3",
        "mean over CIFAR-10-C, 15 corruptions of 5 severities",
        (("auroc", "%"), ("aurc", "x1000"), ("fpr95", "%")),
        3,
        (NETWORKS_000, "units are not printed; they are those of the other tables"),
    ),
    Source(
        "000",
        "4",
        "as table 1, on MobileNet-v2 and EfficientNet",
        FAILURE,
        3,
        (
            *CONVENTIONS_000,
            "bold is not always best: on CIFAR-10 EfficientNet's FPR95 is lowest for CS-KD, AUPR-Error highest for L1",
        ),
    ),
    Source(
        "000",
        "5",
        "as table 2, on Tiny-ImageNet",
        ESTIMATION,
        3,
        (
            *CONVENTIONS_000,
            "the caption says AUROC and E-AUROC where AURC and E-AURC are meant",
            "the public code has no network for Tiny-ImageNet; ours have the stem for small images",
        ),
    ),
    Source("001", "1", "calibration and refinement on ImageNet, without spread", JOINT, None, (FIXED_001,)),
    Source("001", "2", "calibration and refinement on CIFAR", JOINT, 3, (FIXED_001, "VGG-16 is taken for vgg16_bn")),
    Source(
        "001",
        "3",
        "the same models under natural shift",
        JOINT,
        3,
        (FIXED_001, "ImageNet-v2 has no spread, and which of its three forms it is is not said"),
    ),
    Source(
        "001",
        "4",
        "ConfidNet beside the highest probability, on VGG-16",
        (("ece", "%"), ("auroc", "%")),
        3,
        ("trained by ConfidNet's public code, so other models than those of table 2",),
    ),
    Source("002", "1", "ECE and accuracy of regularized training", (("ece", "%"), ("accuracy", "%")), 5, (CHOSEN_002,)),
    Source(
        "002",
        "2",
        "ECE after temperature scaling and histogram binning",
        ECE,
        5,
        (
            CHOSEN_002,
            "temperatures are searched in steps of .01; by ECE, as the public code does",
            "which differences the paper marks as significant is not kept",
        ),
    ),
    Source("003", "1", "soft objectives beside earlier losses", SOFT, 10, (SEM_003, TUNED_003)),
    Source(
        "003",
        "2",
        "all primary and secondary losses, before and after scaling",
        SOFT,
        10,
        (
            SEM_003,
            TUNED_003,
            "AvUC-SG is the AvUC-GS of the text",
            "which form of SB-ECE sets the temperature is not said; the label-binned is the one that is trained with",
            "the text has TS-SB-ECE better than TS in 35 of 42 settings; the table in 34",
            "the text has AvUC-GS always below AvUC; the table has it above in 4 of 7 settings",
            "14 settings lose more than 1 % of accuracy against NLL alone; the rule of 1 % holds within a setting",
        ),
    ),
    Source(
        "004",
        "1",
        "ECE before and after scaling: baselines and sample-wise focal",
        ECE,
        None,
        (
            NETWORKS_004,
            MMCE_004,
            ON_ECE_004,
            "the text has the baselines' temperatures between 2.0 and 2.8; MMCE has 1.8 and 1.9 on CIFAR-100",
        ),
    ),
    Source("004", "2", "as table 1, AdaECE", ADA_ECE, None, (NETWORKS_004, MMCE_004)),
    Source("004", "3", "as table 1, test error", ERROR, None, (NETWORKS_004, MMCE_004)),
    Source("004", "4", "ECE: the best of each kind of focal loss", ECE, None, (NETWORKS_004, ON_ECE_004)),
    Source("004", "5", "as table 4, AdaECE", ADA_ECE, None, (NETWORKS_004,)),
    Source("004", "6", "as table 4, test error", ERROR, None, (NETWORKS_004,)),
    Source(
        "004",
        "7",
        "share and accuracy of confidences of at least .99, CIFAR-10",
        (("s99", "%"), ("s99_accuracy", "%")),
        None,
        (NETWORKS_004, ON_ECE_004, "the caption says above .99, the text at least .99"),
    ),
    Source(
        "004",
        "8",
        "ECE of all focal losses",
        ECE,
        None,
        (
            NETWORKS_004,
            ON_ECE_004,
            f"{SAMPLE_WISE_004} table 1",
            f"{SCHEDULES_004} CIFAR-100 with ResNet-50, CIFAR-10 with ResNet-50 (equal) and Wide-ResNet",
        ),
    ),
    Source(
        "004",
        "9",
        "as table 8, AdaECE",
        ADA_ECE,
        None,
        (
            NETWORKS_004,
            f"{SAMPLE_WISE_004} table 2",
            f"{SCHEDULES_004} CIFAR-100 with ResNet-50, CIFAR-10 with Wide-ResNet, and SST",
        ),
    ),
    Source("004", "10", "as table 8, test error", ERROR, None, (NETWORKS_004,)),
    Source("004", "11", "NLL of all losses", (("nll", "%"),), None, (NETWORKS_004, MMCE_004)),
    Source("004", "12", "as table 11, scaled", (("nll", "%"),), None, (NETWORKS_004, MMCE_004, ON_ECE_004)),
    Source("004", "13", "MCE of all losses", (("mce", "%"),), None, (NETWORKS_004, MMCE_004)),
    Source("004", "14", "as table 13, scaled", (("mce", "%"),), None, (NETWORKS_004, MMCE_004, ON_ECE_004)),
)
