"""The sources of the figures: paper and table, what it shows, its units, and remarks.

Captions are below the tables in singh2021 and mukhoti2020, above them in the others.
"""

from __future__ import annotations

from dataclasses import dataclass

FACTORS = {"%": 100, "x1000": 1000, "x10": 10, "as is": 1, "error in %": 100}
"""Printed number divided by the natural one; an error is 100 % minus the stored accuracy."""


@dataclass(frozen=True)
class PublishedTable:
    """One table of one paper."""

    paper: str
    table: str
    caption: str
    units: tuple[tuple[str, str], ...]  # of each metric, as printed: a key of FACTORS
    runs: int | None  # behind each mean; None if the paper does not say
    remarks: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The name of its csv file."""
        return f"{self.paper}_table{self.table}.csv"


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

ZHU_CONVENTIONS = (
    "E-AURC is AURC less r + (1 - r) ln(1 - r) of the error rate r; ours has the discrete optimum, up to .00002 higher",
    "FPR95 is read at the point nearest to 95 %, AUPR-Success is a trapezoid: by the public code",
)
ZHU_NETWORKS = "ResNet110, WRNet, DenseNet, ConvMixer are taken for the networks of the public code"
SINGH_FIXED = "temperatures are fixed, not fitted: 1.5 on CIFAR, 1.1 on ImageNet; the number of ECE bins is not said"
WANG_CHOSEN = "coefficients were chosen on the test set, by ECE"
KARANDIKAR_SEM = "printed with standard errors of 10 runs; sd is these times the root of 10"
KARANDIKAR_TUNED = "weights of the secondary losses were tuned and are not printed; MSE is taken for our Brier loss"
MUKHOTI_NETWORKS = (
    "ResNet-110 and Wide-ResNet-26-10 are taken for those of the public code, Tree-LSTM for the printed one"
)
MUKHOTI_MMCE = "MMCE has weight 2 on images, 8 on texts"
MUKHOTI_ON_ECE = "temperatures are those of least held-out ECE in steps of .1"
MUKHOTI_SAMPLE_WISE = "the last column, headed FLS-53, is the sample-wise FLA-53 of the text: its figures are those of"
MUKHOTI_SCHEDULES = "the text finds schedule 5,3,2 better than 5,3,1 throughout; after scaling it is not on"

SOURCES: tuple[PublishedTable, ...] = (
    PublishedTable(
        "zhu2022",
        "1",
        "calibration methods judged by failure prediction, CIFAR",
        FAILURE,
        3,
        (
            *ZHU_CONVENTIONS,
            ZHU_NETWORKS,
            "L1 cites the paper of CS-KD; table 4 cites the right one",
            "bold is not always best: FPR95 of DenseNet on CIFAR-10 is lowest for L1",
        ),
    ),
    PublishedTable(
        "zhu2022",
        "2",
        "flat minima and CRL: failure prediction and calibration, CIFAR",
        (*ESTIMATION, ("brier", "%")),
        3,
        (
            *ZHU_CONVENTIONS,
            ZHU_NETWORKS,
            "NLL is printed as a sum and Brier without its square; the figures are means, and squared",
            "bold is not always best: on CIFAR-100 CRL has the lowest ECE of WRNet and the lowest FPR95 of ConvMixer",
        ),
    ),
    PublishedTable(
        "zhu2022",
        "3",
        "mean over CIFAR-10-C, 15 corruptions of 5 severities",
        (("auroc", "%"), ("aurc", "x1000"), ("fpr95", "%")),
        3,
        (ZHU_NETWORKS, "units are not printed; they are those of the other tables"),
    ),
    PublishedTable(
        "zhu2022",
        "4",
        "as table 1, on MobileNet-v2 and EfficientNet",
        FAILURE,
        3,
        (
            *ZHU_CONVENTIONS,
            "bold is not always best: on CIFAR-10 EfficientNet's FPR95 is lowest for CS-KD, AUPR-Error highest for L1",
        ),
    ),
    PublishedTable(
        "zhu2022",
        "5",
        "as table 2, on Tiny-ImageNet",
        ESTIMATION,
        3,
        (
            *ZHU_CONVENTIONS,
            "the caption says AUROC and E-AUROC where AURC and E-AURC are meant",
            "the public code has no network for Tiny-ImageNet; ours have the stem for small images",
        ),
    ),
    PublishedTable(
        "singh2021", "1", "calibration and refinement on ImageNet, without spread", JOINT, None, (SINGH_FIXED,)
    ),
    PublishedTable(
        "singh2021",
        "2",
        "calibration and refinement on CIFAR",
        JOINT,
        3,
        (SINGH_FIXED, "VGG-16 is taken for vgg16_bn"),
    ),
    PublishedTable(
        "singh2021",
        "3",
        "the same models under natural shift",
        JOINT,
        3,
        (SINGH_FIXED, "ImageNet-v2 has no spread, and which of its three forms it is is not said"),
    ),
    PublishedTable(
        "singh2021",
        "4",
        "ConfidNet beside the highest probability, on VGG-16",
        (("ece", "%"), ("auroc", "%")),
        3,
        ("trained by ConfidNet's public code, so other models than those of table 2",),
    ),
    PublishedTable(
        "wang2021",
        "1",
        "ECE and accuracy of regularized training",
        (("ece", "%"), ("accuracy", "%")),
        5,
        (WANG_CHOSEN,),
    ),
    PublishedTable(
        "wang2021",
        "2",
        "ECE after temperature scaling and histogram binning",
        ECE,
        5,
        (
            WANG_CHOSEN,
            "temperatures are searched in steps of .01; by ECE, as the public code does",
            "which differences the paper marks as significant is not kept",
        ),
    ),
    PublishedTable(
        "karandikar2021",
        "1",
        "soft objectives beside earlier losses",
        SOFT,
        10,
        (KARANDIKAR_SEM, KARANDIKAR_TUNED),
    ),
    PublishedTable(
        "karandikar2021",
        "2",
        "all primary and secondary losses, before and after scaling",
        SOFT,
        10,
        (
            KARANDIKAR_SEM,
            KARANDIKAR_TUNED,
            "AvUC-SG is the AvUC-GS of the text",
            "which form of SB-ECE sets the temperature is not said; the label-binned is the one that is trained with",
            "the text has TS-SB-ECE better than TS in 35 of 42 settings; the table in 34",
            "the text has AvUC-GS always below AvUC; the table has it above in 4 of 7 settings",
            "14 settings lose more than 1 % of accuracy against NLL alone; the rule of 1 % holds within a setting",
        ),
    ),
    PublishedTable(
        "mukhoti2020",
        "1",
        "ECE before and after scaling: baselines and sample-wise focal",
        ECE,
        None,
        (
            MUKHOTI_NETWORKS,
            MUKHOTI_MMCE,
            MUKHOTI_ON_ECE,
            "the text has the baselines' temperatures between 2.0 and 2.8; MMCE has 1.8 and 1.9 on CIFAR-100",
        ),
    ),
    PublishedTable("mukhoti2020", "2", "as table 1, AdaECE", ADA_ECE, None, (MUKHOTI_NETWORKS, MUKHOTI_MMCE)),
    PublishedTable("mukhoti2020", "3", "as table 1, test error", ERROR, None, (MUKHOTI_NETWORKS, MUKHOTI_MMCE)),
    PublishedTable(
        "mukhoti2020",
        "4",
        "ECE: the best of each kind of focal loss",
        ECE,
        None,
        (MUKHOTI_NETWORKS, MUKHOTI_ON_ECE),
    ),
    PublishedTable("mukhoti2020", "5", "as table 4, AdaECE", ADA_ECE, None, (MUKHOTI_NETWORKS,)),
    PublishedTable("mukhoti2020", "6", "as table 4, test error", ERROR, None, (MUKHOTI_NETWORKS,)),
    PublishedTable(
        "mukhoti2020",
        "7",
        "share and accuracy of confidences of at least .99, CIFAR-10",
        (("s99", "%"), ("s99_accuracy", "%")),
        None,
        (MUKHOTI_NETWORKS, MUKHOTI_ON_ECE, "the caption says above .99, the text at least .99"),
    ),
    PublishedTable(
        "mukhoti2020",
        "8",
        "ECE of all focal losses",
        ECE,
        None,
        (
            MUKHOTI_NETWORKS,
            MUKHOTI_ON_ECE,
            f"{MUKHOTI_SAMPLE_WISE} table 1",
            f"{MUKHOTI_SCHEDULES} CIFAR-100 with ResNet-50, CIFAR-10 with ResNet-50 (equal) and Wide-ResNet",
        ),
    ),
    PublishedTable(
        "mukhoti2020",
        "9",
        "as table 8, AdaECE",
        ADA_ECE,
        None,
        (
            MUKHOTI_NETWORKS,
            f"{MUKHOTI_SAMPLE_WISE} table 2",
            f"{MUKHOTI_SCHEDULES} CIFAR-100 with ResNet-50, CIFAR-10 with Wide-ResNet, and SST",
        ),
    ),
    PublishedTable("mukhoti2020", "10", "as table 8, test error", ERROR, None, (MUKHOTI_NETWORKS,)),
    PublishedTable("mukhoti2020", "11", "NLL of all losses", (("nll", "%"),), None, (MUKHOTI_NETWORKS, MUKHOTI_MMCE)),
    PublishedTable(
        "mukhoti2020",
        "12",
        "as table 11, scaled",
        (("nll", "%"),),
        None,
        (MUKHOTI_NETWORKS, MUKHOTI_MMCE, MUKHOTI_ON_ECE),
    ),
    PublishedTable("mukhoti2020", "13", "MCE of all losses", (("mce", "%"),), None, (MUKHOTI_NETWORKS, MUKHOTI_MMCE)),
    PublishedTable(
        "mukhoti2020",
        "14",
        "as table 13, scaled",
        (("mce", "%"),),
        None,
        (MUKHOTI_NETWORKS, MUKHOTI_MMCE, MUKHOTI_ON_ECE),
    ),
)
