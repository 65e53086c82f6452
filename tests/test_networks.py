"""The networks have the published numbers of weights and learn; the Tree-LSTM equals its recursion."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from assay._core.arrays import InputError
from assay.nn.networks import NETWORKS, Network, build, network
from assay.nn.networks._text_cnn import MaxOfConvolution

WEIGHTS = {  # for 10 and 100 classes, from the layer lists of the papers' code
    "resnet20": (269_722, 275_572),
    "resnet32": (464_154, 470_004),
    "resnet44": (658_586, 664_436),
    "resnet56": (853_018, 858_868),
    "resnet110": (1_727_962, 1_733_812),
    "preact_resnet110": (1_730_522, 1_736_372),
    "resnet18": (11_173_962, 11_220_132),
    "resnet50": (23_520_842, 23_705_252),
    "resnet110_bottleneck": (45_864_522, 46_048_932),
    "wrn28_10": (36_479_194, 36_536_884),
    "wrn28_10_postact": (36_481_434, 36_539_124),
    "densenet_bc_100_12": (769_162, 800_032),
    "densenet121": (6_956_298, 7_048_548),
    "vgg16_bn": (15_253_578, 15_299_748),
    "vgg16_confidnet": (14_990_922, 15_037_092),
    "convmixer_256_16": (1_339_402, 1_362_532),
    "convmixer_256_8": (594_186, 617_316),
    "mobilenet_v2": (2_237_770, 2_353_060),
    "efficientnet_b0": (4_020_358, 4_135_648),
}
OTHER_WEIGHTS = [
    ("resnet18", 200, 11_271_432),
    ("resnet50", 200, 23_910_152),
    ("resnet50_grid", 200, 25_138_952),
    ("resnet18_imagenet", 1000, 11_689_512),
    ("resnet50_imagenet", 1000, 25_557_032),
]
SIZES = {  # of the images a network trains on here, where 16 pixels are too few for its strides
    "vgg16_bn": 32,
    "vgg16_confidnet": 32,
    "resnet18_imagenet": 64,
    "resnet50_imagenet": 64,
}


def n_weights(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def benchmark():
    """benchmarks/tree_lstm.py, which holds the recursion."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
        return importlib.import_module("tree_lstm")


def trees(n: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return benchmark().random_trees(n, n_words=12, vocabulary=50, generator=generator)


def samples(name: str) -> torch.Tensor:
    """Two inputs of the kind the network is for."""
    if name.startswith("tree_lstm"):
        return trees(2)
    if name in ("gp_cnn", "text_cnn8"):
        return torch.randint(50, (2, 80))
    return torch.randn(2, 3, *2 * (SIZES.get(name, 16),))


@pytest.mark.parametrize(
    ("name", "n_classes", "weights"),
    [(name, k, n) for name, counts in WEIGHTS.items() for k, n in zip((10, 100), counts, strict=True)] + OTHER_WEIGHTS,
)
def test_networks_have_the_published_number_of_weights(name, n_classes, weights):
    with torch.device("meta"):
        assert n_weights(NETWORKS[name](n_classes)) == weights


def test_networks_on_words_have_the_published_number_of_trainable_weights():
    with torch.device("meta"):
        assert n_weights(NETWORKS["gp_cnn"](20, vectors=torch.empty(20_000, 100))) == 247_316
        words = torch.empty(1000, 300)
        assert (
            n_weights(NETWORKS["tree_lstm"](3, vectors=words, train_vectors=False, output_gate=False)) == 271_500 + 453
        )
        assert n_weights(NETWORKS["tree_lstm"](3, vectors=words, train_vectors=False)) == 316_800 + 453


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_of_sgd_moves_every_trainable_weight(name):
    torch.manual_seed(0)
    x, labels = samples(name), torch.tensor([0, 1])
    model = build(network(name), 10, x, vectors=torch.randn(50, 20))
    assert isinstance(model, Network)
    before = [p.detach().clone() for p in model.parameters() if p.requires_grad]
    loss = F.cross_entropy(model(x), labels)
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert loss.isfinite()
    after = [p for p in model.parameters() if p.requires_grad]
    assert all(p.isfinite().all() for p in after)
    # A bias in front of a BatchNorm has no effect, so its gradient is rounding alone, and may be zero.
    moved = sum(a.numel() for a, b in zip(after, before, strict=True) if not a.equal(b))
    assert moved > 0.99 * n_weights(model)


@pytest.mark.parametrize("name", NETWORKS)
def test_logits_are_the_head_of_the_features(name):
    torch.manual_seed(0)
    x = samples(name)
    model = build(network(name), 7, x, vectors=torch.randn(50, 20)).eval()
    with torch.inference_mode():
        features = model.features(x)
        assert features.shape == (2, model.head.in_features)
        assert model(x).equal(model.head(features))
        assert model(x).shape == (2, 7)


@pytest.mark.parametrize("name", ["resnet8", "resnet18", "densenet_bc_100_12", "wrn28_10_postact", "convmixer_256_16"])
def test_networks_take_images_of_other_sizes_and_channels(name):
    with torch.device("meta"):
        model = build(network(name), 10, torch.empty(2, 1, 8, 8))
        assert model(torch.empty(2, 1, 8, 8)).shape == model(torch.empty(2, 1, 28, 28)).shape == (2, 10)


def test_kernels_are_drawn_from_the_distribution_of_he():
    torch.manual_seed(0)
    kernel = NETWORKS["resnet18"](10).body[1][-1][0].branch[0][0].weight
    assert kernel.std().item() == pytest.approx((2 / (512 * 9)) ** 0.5, rel=0.01)


def test_shortcuts_without_weights_thin_out_pixels_and_pad_channels():
    shortcut = NETWORKS["resnet8"](10).body[1][1][0].shortcut
    x = torch.randn(2, 16, 8, 8)
    y = shortcut(x)
    assert y.shape == (2, 32, 4, 4)
    assert y[:, 8:24].equal(x[:, :, ::2, ::2])
    assert not y[:, :8].any()
    assert not y[:, 24:].any()


@pytest.mark.parametrize("name", ["tree_lstm", "tree_lstm,output_gate=False"])
def test_trees_by_level_equal_the_recursion_over_nodes(name):
    torch.manual_seed(0)
    x = trees(20)
    model = network(name)(3, vectors=torch.randn(50, 20)).eval()
    recursive = benchmark().recursive
    hidden, logits = model.body.hidden(x), model.nodes(x)
    for i, tree in enumerate(x):
        n_nodes = int((tree[:, 3] >= 0).sum())
        for node in range(n_nodes):
            expected, _ = recursive(model.body, tree, node)
            assert torch.allclose(hidden[i, node], expected, atol=1e-6)
        assert torch.allclose(model(x)[i], logits[i, n_nodes - 1], atol=1e-6)
        assert not hidden[i, n_nodes:].any()


def test_gradients_of_trees_by_level_equal_those_of_the_recursion():
    torch.manual_seed(0)
    x = trees(5)
    model = NETWORKS["tree_lstm"](3, vectors=torch.randn(50, 20)).double().eval()
    last = ((x[:, :, 3] >= 0).sum(1) - 1).tolist()
    by_node = [benchmark().recursive(model.body, tree, node)[0] for tree, node in zip(x, last, strict=True)]
    of_recursion = torch.autograd.grad(model.head(torch.stack(by_node)).exp().sum(), list(model.parameters()))
    of_levels = torch.autograd.grad(model(x).exp().sum(), list(model.parameters()))
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(of_levels, of_recursion, strict=True))


def test_a_tree_has_the_same_logits_alone_and_among_others():
    torch.manual_seed(0)
    x = trees(8)
    model = NETWORKS["tree_lstm"](3, vectors=torch.randn(50, 20)).double().eval()
    assert torch.allclose(model(x), torch.cat([model(tree[None]) for tree in x]))


def test_classes_of_nodes_alone_are_answers_of_nodes_and_never_of_a_tree():
    torch.manual_seed(0)
    x = trees(4)
    model = NETWORKS["tree_lstm"](2, vectors=torch.randn(50, 20), extra_node_classes=1).eval()
    of_roots = model.nodes(x)[torch.arange(4), (x[:, :, 3] >= 0).sum(1) - 1]
    assert of_roots.shape == (4, 3)
    torch.testing.assert_close(model(x), of_roots[:, :2])  # a product of other rows may round otherwise


def test_a_network_takes_values_behind_its_name():
    model = build(network("tree_lstm,width=7,train_vectors=false"), 3, trees(2), vectors=torch.randn(50, 20))
    assert model.head.in_features == 7
    assert not model.body.vectors.requires_grad
    with pytest.raises(InputError, match=r"no hyper-parameter 'widht' of this network; it has width, train_vectors"):
        network("tree_lstm,widht=7")
    with pytest.raises(InputError, match="no hyper-parameter 'channels' of this network; it has none"):
        network("resnet8,channels=1")


def test_word_vectors_are_tuned_unless_told_and_never_those_of_the_caller():
    vectors = torch.randn(50, 20)
    assert not NETWORKS["tree_lstm"](3, vectors=vectors, train_vectors=False).body.vectors.requires_grad
    trained = NETWORKS["tree_lstm"](3, vectors=vectors).body.vectors
    assert trained.requires_grad
    assert trained.data_ptr() != vectors.data_ptr()


def test_an_unknown_network_suggests_the_nearest():
    with pytest.raises(InputError, match=r"unknown network 'resnet81'; did you mean 'resnet8'\?"):
        network("resnet81")


def test_an_own_network_is_found_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "own_networks.py").write_text(
        "from torch import nn\ndef linear(n_classes): return nn.LazyLinear(n_classes)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert build(network("own_networks:linear"), 3, torch.zeros(2, 5)).out_features == 3
    with pytest.raises(InputError, match="has no attribute 'linaer'"):
        network("own_networks:linaer")
    with pytest.raises(InputError, match="No module named 'nowhere'"):
        network("nowhere:factory")


def test_a_network_on_words_says_that_images_have_none():
    with pytest.raises(InputError, match="'gp_cnn' needs vectors, which data of shape \\[2, 3, 8, 8\\] lack"):
        build(network("gp_cnn"), 10, torch.zeros(2, 3, 8, 8))


def test_the_highest_windows_alone_give_the_maximum_of_a_convolution_and_its_gradients():
    torch.manual_seed(0)
    convolution = nn.Conv2d(6, 4, (1, 5))
    x = torch.randn(3, 6, 1, 40, requires_grad=True)

    def found(layer) -> list[torch.Tensor]:
        out = layer(x)
        return [out.detach(), *torch.autograd.grad((out**2).sum(), [x, *convolution.parameters()])]

    highest = MaxOfConvolution(convolution)
    torch.testing.assert_close(found(highest), found(lambda x: convolution(x).amax((2, 3))))
    with torch.no_grad():
        torch.testing.assert_close(highest(x), convolution(x).amax((2, 3)))


def test_texts_without_most_of_their_padding_give_the_same_logits_and_gradients():
    torch.manual_seed(0)
    made = NETWORKS["gp_cnn"](4, vectors=torch.cat([torch.zeros(1, 6), torch.randn(30, 6)])).eval()
    for layer in made.modules():  # without biases, windows of padding alone would give 0, which is never the maximum
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.bias)
    x = torch.randint(1, 31, (40, 60))
    ends = torch.tensor([*range(36), 0, 59, 60, 60])  # an empty text, and texts that fill their places
    x[torch.arange(60) >= ends[:, None]] = 0

    def found(body) -> tuple[torch.Tensor, list[torch.Tensor]]:
        made.zero_grad()
        logits = made.head(made.body[1:](body(x)))
        F.cross_entropy(logits, torch.arange(40) % 4).backward()
        return logits.detach(), [w.grad.clone() for w in made.parameters() if w.requires_grad]

    (logits, gradients), (whole, of_whole) = found(made.body[0]), found(made.body[0].body)
    torch.testing.assert_close(logits, whole)
    torch.testing.assert_close(gradients, of_whole)
