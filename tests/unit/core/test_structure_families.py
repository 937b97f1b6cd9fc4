"""The expected parts of published architectures, written by hand from their definitions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch
from torch import nn

from synaptune.core.structure import FirstConvKind, find_anatomy

timm = pytest.importorskip("timm", reason="the architectures come from timm")
torchvision = pytest.importorskip("torchvision", reason="the architectures come from torchvision")


@dataclass(frozen=True)
class Expected:
    first_conv: str
    stem_norm: str | None
    stages: tuple[str, ...]  # one stage per entry, its modules separated by blanks
    classifier: str
    norms: int
    batch_norms: int
    kind: FirstConvKind = "convolution"


def _span(prefix: str, *ends: int) -> tuple[str, ...]:
    """Stages of consecutive children: _span("f.", 1, 3, 4) is ("f.1 f.2", "f.3")."""
    return tuple(" ".join(f"{prefix}{i}" for i in range(a, b)) for a, b in pairwise(ends))


LAYERS = ("layer1", "layer2", "layer3", "layer4")

TORCHVISION = {
    "resnet18": Expected("conv1", "bn1", LAYERS, "fc", 20, 20),
    "resnet50": Expected("conv1", "bn1", LAYERS, "fc", 53, 53),
    "mobilenet_v2": Expected(
        "features.0.0", "features.0.1", _span("features.", 1, 2, 4, 7, 14, 18), "classifier.1", 52, 52
    ),
    "mobilenet_v3_small": Expected(
        "features.0.0", "features.0.1", _span("features.", 1, 2, 4, 9, 12), "classifier.3", 34, 34
    ),
    "mobilenet_v3_large": Expected(
        "features.0.0", "features.0.1", _span("features.", 1, 2, 4, 7, 13, 16), "classifier.3", 46, 46
    ),
    "convnext_tiny": Expected(
        "features.0.0",
        "features.0.1",
        ("features.1", "features.2 features.3", "features.4 features.5", "features.6 features.7"),
        "classifier.2",
        23,
        0,
        "patch embedding",
    ),
    "efficientnet_b0": Expected(
        "features.0.0", "features.0.1", _span("features.", 1, 2, 3, 4, 6, 8), "classifier.1", 49, 49
    ),
    "vgg16_bn": Expected(
        "features.0",
        "features.1",
        (
            "features.3 features.4",
            "features.7 features.8 features.10 features.11",
            "features.14 features.15 features.17 features.18 features.20 features.21",
            "features.24 features.25 features.27 features.28 features.30 features.31",
            "features.34 features.35 features.37 features.38 features.40 features.41",
        ),
        "classifier.6",
        13,
        13,
    ),
    "vgg11": Expected(
        "features.0",
        None,
        ("features.3", "features.6 features.8", "features.11 features.13", "features.16 features.18"),
        "classifier.6",
        0,
        0,
    ),
    "alexnet": Expected("features.0", None, ("features.3", "features.6 features.8 features.10"), "classifier.6", 0, 0),
    "densenet121": Expected(
        "features.conv0",
        "features.norm0",
        (
            "features.denseblock1 features.transition1",
            "features.denseblock2 features.transition2",
            "features.denseblock3 features.transition3",
            "features.denseblock4",
        ),
        "classifier",
        121,
        121,
    ),
    "vit_b_16": Expected(
        "conv_proj",
        None,
        _span("encoder.layers.encoder_layer_", 0, 3, 6, 9, 12),
        "heads.head",
        25,
        0,
        "patch embedding",
    ),
    "regnet_y_400mf": Expected("stem.0", "stem.1", tuple(f"trunk_output.block{i}" for i in range(1, 5)), "fc", 53, 53),
    "swin_t": Expected(
        "features.0.0",
        "features.0.2",
        ("features.1", "features.2 features.3", "features.4 features.5", "features.6 features.7"),
        "head",
        29,
        0,
        "patch embedding",
    ),
    "shufflenet_v2_x1_0": Expected("conv1.0", "conv1.1", ("stage2", "stage3", "stage4"), "fc", 56, 56),
    "googlenet": Expected(
        "conv1.conv",
        "conv1.bn",
        (
            "inception3a inception3b",
            "inception4a inception4b inception4c inception4d inception4e",
            "inception5a inception5b",
        ),
        "fc",
        59,
        59,
    ),
    "inception_v3": Expected(
        "Conv2d_1a_3x3.conv",
        "Conv2d_1a_3x3.bn",
        (
            "Mixed_5b Mixed_5c Mixed_5d",
            "Mixed_6a Mixed_6b Mixed_6c Mixed_6d Mixed_6e",
            "Mixed_7a Mixed_7b Mixed_7c",
        ),
        "fc",
        96,
        96,
    ),
    "squeezenet1_1": Expected(
        "features.0",
        None,
        ("features.3 features.4", "features.6 features.7", "features.9 features.10 features.11 features.12"),
        "classifier.1",
        0,
        0,
    ),
    "mnasnet1_0": Expected(
        "layers.0",
        "layers.1",
        ("layers.8", "layers.9", "layers.10 layers.11", "layers.12 layers.13"),
        "classifier.1",
        52,
        52,
    ),
    "maxvit_t": Expected("stem.0.0", "stem.0.1", _span("blocks.", 0, 1, 2, 3, 4), "classifier.5", 79, 34),
}

VIT_BLOCKS = _span("blocks.", 0, 3, 6, 9, 12)
FOUR_STAGES = _span("stages.", 0, 1, 2, 3, 4)

TIMM = {
    "resnet18": Expected("conv1", "bn1", LAYERS, "fc", 20, 20),
    "resnet50": Expected("conv1", "bn1", LAYERS, "fc", 53, 53),
    "resnet50d": Expected("conv1.0", "conv1.1", LAYERS, "fc", 55, 55),  # a stem of three convolutions
    "resnet50_gn": Expected("conv1", "bn1", LAYERS, "fc", 53, 0),
    "resnetv2_50": Expected("stem.conv", None, FOUR_STAGES, "head.fc", 49, 49),  # pre-activation
    "tf_efficientnet_lite0": Expected("conv_stem", "bn1", _span("blocks.", 0, 1, 2, 3, 5, 7), "classifier", 49, 49),
    "vit_tiny_patch16_224": Expected("patch_embed.proj", None, VIT_BLOCKS, "head", 25, 0, "patch embedding"),
    "deit_tiny_distilled_patch16_224": Expected(
        "patch_embed.proj", None, VIT_BLOCKS, "head_dist", 25, 0, "patch embedding"
    ),
    "mixer_s32_224": Expected("stem.proj", None, _span("blocks.", 0, 2, 4, 6, 8), "head", 17, 0, "patch embedding"),
    "swin_tiny_patch4_window7_224": Expected(
        "patch_embed.proj",
        "patch_embed.norm",
        ("layers.0", "layers.1", "layers.2", "layers.3"),
        "head.fc",
        29,
        0,
        "patch embedding",
    ),
    "convnext_atto": Expected("stem.0", "stem.1", FOUR_STAGES, "head.fc", 17, 0, "patch embedding"),
    "convnext_femto": Expected("stem.0", "stem.1", FOUR_STAGES, "head.fc", 17, 0, "patch embedding"),
    "convmixer_768_32": Expected(
        "stem.0", "stem.2", _span("blocks.", 0, 8, 16, 24, 32), "head", 65, 65, "patch embedding"
    ),
    "mobilenetv3_small_100": Expected("conv_stem", "bn1", _span("blocks.", 0, 1, 2, 4, 5), "classifier", 34, 34),
    "mobilenetv4_conv_small": Expected("conv_stem", "bn1", _span("blocks.", 0, 1, 2, 3, 4), "classifier", 46, 46),
    "regnetx_002": Expected("stem.conv", "stem.bn", ("s1", "s2", "s3", "s4"), "head.fc", 44, 44),
    "regnety_002": Expected("stem.conv", "stem.bn", ("s1", "s2", "s3", "s4"), "head.fc", 44, 44),
    "fastvit_t8": Expected(  # stem and last convolution are composite themselves
        "stem.0.conv_kxk.0.conv", "stem.0.conv_kxk.0.bn", FOUR_STAGES, "head.fc", 70, 70
    ),
}


def _assert_parts(model: nn.Module, expected: Expected) -> None:
    found = find_anatomy(model)
    assert found.first_conv == expected.first_conv
    assert found.first_conv_kind == expected.kind
    assert found.stem_norm == expected.stem_norm
    assert tuple(" ".join(stage) for stage in found.stages) == expected.stages
    assert found.classifier == expected.classifier
    assert (len(found.norms), len(found.batch_norms)) == (expected.norms, expected.batch_norms)


@pytest.mark.parametrize("name", TORCHVISION)
def test_parts_of_torchvision_models(name: str) -> None:
    # RegNet computes its widths with tensors, so it has to be built where tensors have values.
    device = "cpu" if name.startswith("regnet") else "meta"
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    with torch.device(device):
        model = torchvision.models.get_model(name, weights=None, **options)
    _assert_parts(model, TORCHVISION[name])


@pytest.mark.parametrize("name", TIMM)
def test_parts_of_timm_models(name: str) -> None:
    with torch.device("meta"):
        model = timm.create_model(name, pretrained=False)
    _assert_parts(model, TIMM[name])


def test_dropouts_include_dropped_branches_of_both_libraries() -> None:
    with torch.device("meta"):
        ours = find_anatomy(torchvision.models.convnext_tiny(weights=None))
        theirs = find_anatomy(timm.create_model("vit_tiny_patch16_224", drop_path_rate=0.1))
    assert len(ours.dropouts) == 18
    assert "blocks.11.drop_path2" in theirs.dropouts


def test_norms_that_keep_statistics_but_cannot_use_the_batch_are_no_batch_norms() -> None:
    frozen = torchvision.ops.FrozenBatchNorm2d
    with torch.device("meta"):
        found = find_anatomy(torchvision.models.resnet18(weights=None, norm_layer=frozen))
    assert (len(found.norms), found.batch_norms) == (20, ())
