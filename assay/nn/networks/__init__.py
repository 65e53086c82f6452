"""Classifiers: one architecture a file, each made by a factory `(n_classes, ...) -> Network`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from types import MappingProxyType

from torch import Tensor, nn

from assay._core.arrays import InputError
from assay._core.lookup import check_values, hyper_parameters, lookup_or_import
from assay._core.variants import parse_variant
from assay.nn.networks._convmixer import convmixer_256_8, convmixer_256_16
from assay.nn.networks._densenet import densenet121, densenet_bc_100_12
from assay.nn.networks._efficientnet import efficientnet_b0
from assay.nn.networks._mlp import mlp
from assay.nn.networks._mobilenet import mobilenet_v2
from assay.nn.networks._network import Network
from assay.nn.networks._preact_resnet import preact_resnet110
from assay.nn.networks._resnet import (
    resnet18,
    resnet18_imagenet,
    resnet50,
    resnet50_grid,
    resnet50_imagenet,
    resnet110_bottleneck,
)
from assay.nn.networks._resnet_cifar import resnet8, resnet20, resnet32, resnet44, resnet56, resnet110
from assay.nn.networks._text_cnn import gp_cnn, text_cnn8
from assay.nn.networks._tree_lstm import TreeNetwork, roots, tree_lstm
from assay.nn.networks._vgg import vgg16_bn, vgg16_confidnet
from assay.nn.networks._wide_resnet import wrn28_10, wrn28_10_postact

Factory = Callable[..., nn.Module]
"""Called with the number of classes and, where its parameters are so named, with what `build` offers."""

NETWORKS: Mapping[str, Factory] = MappingProxyType(
    {
        "mlp": mlp,
        "resnet8": resnet8,
        "resnet20": resnet20,
        "resnet32": resnet32,
        "resnet44": resnet44,
        "resnet56": resnet56,
        "resnet110": resnet110,
        "preact_resnet110": preact_resnet110,
        "resnet18": resnet18,
        "resnet50": resnet50,
        "resnet50_grid": resnet50_grid,
        "resnet110_bottleneck": resnet110_bottleneck,
        "resnet18_imagenet": resnet18_imagenet,
        "resnet50_imagenet": resnet50_imagenet,
        "wrn28_10": wrn28_10,
        "wrn28_10_postact": wrn28_10_postact,
        "densenet_bc_100_12": densenet_bc_100_12,
        "densenet121": densenet121,
        "vgg16_bn": vgg16_bn,
        "vgg16_confidnet": vgg16_confidnet,
        "convmixer_256_16": convmixer_256_16,
        "convmixer_256_8": convmixer_256_8,
        "mobilenet_v2": mobilenet_v2,
        "efficientnet_b0": efficientnet_b0,
        "gp_cnn": gp_cnn,
        "text_cnn8": text_cnn8,
        "tree_lstm": tree_lstm,
    }
)


OFFERS = ("inputs", "channels", "vectors", "extra_node_classes")
"""What `build` gives to factories that have a parameter of that name."""


def network(name: str) -> Factory:
    """The factory of that name in `NETWORKS`, or a user's own at "package.module:factory".

    Values behind the name replace its own: `network("tree_lstm,width=100")`.
    """
    variant = parse_variant(name)
    factory = lookup_or_import("network", variant.full_name, NETWORKS)
    if not variant.values:
        return factory
    check_values("network", [p for p in hyper_parameters(factory) if p not in OFFERS], variant.values)
    return partial(factory, **variant.values)


def build(
    factory: Factory, n_classes: int, x: Tensor, vectors: Tensor | None = None, *, extra_node_classes: int = 0
) -> nn.Module:
    """A network for samples like `x` [n, ...].

    The factory is given those of `OFFERS` that it has parameters for: `inputs` (numbers a sample), `channels`,
    `vectors` (of words) and `extra_node_classes` (classes that only inner nodes of trees have).

    >>> import torch
    >>> build(network("mlp"), 10, torch.zeros(2, 1, 8, 8))(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """
    offers: dict[str, object] = {"inputs": x[0].numel(), "extra_node_classes": extra_node_classes}
    if x.ndim == 4:
        offers["channels"] = x.shape[1]
    if vectors is not None:
        offers["vectors"] = vectors
    wanted = signature(factory).parameters.values()
    missing = [p.name for p in wanted if p.default is p.empty and p.kind is p.KEYWORD_ONLY and p.name not in offers]
    if missing:
        name = getattr(factory, "__name__", factory)
        raise InputError(f"network '{name}' needs {' and '.join(missing)}, which data of shape {list(x.shape)} lack")
    return factory(n_classes, **{p.name: offers[p.name] for p in wanted if p.name in offers})


__all__ = [
    "NETWORKS",
    "Factory",
    "Network",
    "TreeNetwork",
    "build",
    "convmixer_256_8",
    "convmixer_256_16",
    "densenet121",
    "densenet_bc_100_12",
    "efficientnet_b0",
    "gp_cnn",
    "mlp",
    "mobilenet_v2",
    "network",
    "preact_resnet110",
    "resnet8",
    "resnet18",
    "resnet18_imagenet",
    "resnet20",
    "resnet32",
    "resnet44",
    "resnet50",
    "resnet50_grid",
    "resnet50_imagenet",
    "resnet56",
    "resnet110",
    "resnet110_bottleneck",
    "roots",
    "text_cnn8",
    "tree_lstm",
    "vgg16_bn",
    "vgg16_confidnet",
    "wrn28_10",
    "wrn28_10_postact",
]
