"""Modules as users write them: odd names, odd order, wrappers, hidden pooling, own layers, no convolution at all."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn

from synaptune.core.structure import Anatomy, find_anatomy


class Residual(nn.Module):
    def __init__(self, width_in: int, width: int, stride: int = 1):
        super().__init__()
        self.wege = nn.Sequential(
            nn.Conv2d(width_in, width, 3, stride=stride, padding=1), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.zweite = nn.Conv2d(width, width, 3, padding=1)


class Block(nn.Module):
    """A transformer block with attention and MLP of its own make."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.before = nn.LayerNorm(width)
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.between = nn.LayerNorm(width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


def _named(**children: nn.Module) -> nn.Module:
    """A module with these children in this order, and no forward pass: structure does not ask for one."""
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


def _conv_norm(width_in: int, width: int, *more: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(width_in, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), *more)


def _shape(found: Anatomy) -> tuple[str | None, str | None, tuple[str, ...], str | None]:
    return found.first_conv, found.stem_norm, tuple(" ".join(stage) for stage in found.stages), found.classifier


def test_names_do_not_matter() -> None:
    model = _named(
        auge=nn.Conv2d(3, 8, 3),
        layer4=nn.Sequential(Residual(8, 8), Residual(8, 8)),
        fc=nn.Sequential(Residual(8, 16, stride=2), Residual(16, 16)),
        conv1=nn.Linear(16, 10),
    )
    assert _shape(find_anatomy(model)) == ("auge", None, ("layer4", "fc"), "conv1")


def test_a_single_group_of_blocks_is_cut_where_blocks_stride() -> None:
    blocks = [Residual(8, 8), Residual(8, 16, stride=2), Residual(16, 16), Residual(16, 32, stride=2)]
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Sequential(*blocks), nn.Flatten(), nn.Linear(32, 10))
    assert _shape(find_anatomy(model)) == ("0", None, ("1.0", "1.1 1.2", "1.3"), "3")


def test_a_single_block_is_one_stage_and_is_not_taken_apart() -> None:
    model = _named(stem=nn.Conv2d(3, 8, 3), block=Residual(8, 8, stride=2), out=nn.Linear(8, 10))
    assert _shape(find_anatomy(model)) == ("stem", None, ("block",), "out")


def test_flat_network_is_cut_after_each_pooling_layer() -> None:
    model = nn.Sequential(
        *_conv_norm(3, 8),
        *_conv_norm(8, 8, nn.MaxPool2d(2)),
        *_conv_norm(8, 16),
        *_conv_norm(16, 16, nn.AvgPool2d(2)),
        *_conv_norm(16, 16, nn.AdaptiveAvgPool2d(1)),
        nn.Flatten(),
        nn.Linear(16, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
    expected = ("0", "1", ("3 4", "7 8 10 11", "14 15"), "21")
    assert _shape(find_anatomy(model)) == expected


def test_strided_convolutions_cut_a_flat_network() -> None:
    layers = [nn.Conv2d(a, b, 3, stride=s) for a, b, s in ((3, 8, 1), (8, 8, 1), (8, 8, 2), (8, 8, 1), (8, 8, 2))]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(8, 10))
    assert _shape(find_anatomy(model))[2] == ("1", "2 3", "4")


def test_blocks_that_end_in_pooling_belong_to_the_resolution_they_work_at() -> None:
    model = _named(
        eins=nn.Sequential(*_conv_norm(3, 8), *_conv_norm(8, 8, nn.MaxPool2d(2))),
        zwei=nn.Sequential(*_conv_norm(8, 16), *_conv_norm(16, 16, nn.MaxPool2d(2))),
        drei=nn.Sequential(*_conv_norm(16, 16), *_conv_norm(16, 16)),
        aus=nn.Linear(16, 10),
    )
    # No stem stands before the first block, so that block is a stage, without first convolution and its norm.
    assert _shape(find_anatomy(model)) == ("eins.0", "eins.1", ("eins.3 eins.4", "zwei", "drei"), "aus")


def test_blocks_without_visible_pooling_are_cut_by_width_also_after_the_first() -> None:
    model = _named(
        eins=nn.Sequential(*_conv_norm(3, 8), *_conv_norm(8, 8), *_conv_norm(8, 8)),
        zwei=nn.Sequential(*_conv_norm(8, 16), *_conv_norm(16, 16)),
        drei=nn.Sequential(*_conv_norm(16, 32), *_conv_norm(32, 32)),
        aus=nn.Linear(32, 10),
    )
    assert find_anatomy(model).stages == (("eins.3", "eins.4", "eins.6", "eins.7"), ("zwei",), ("drei",))


def test_pooling_hidden_in_the_forward_pass_is_made_up_for_by_width() -> None:
    model = _named(
        a=nn.Conv2d(3, 32, 3),
        b=nn.Conv2d(32, 32, 3),
        c=nn.Conv2d(32, 64, 3),
        d=nn.Conv2d(64, 64, 3),
        e=nn.Conv2d(64, 128, 3),
        fc1=nn.Linear(128, 64),
        norm=nn.BatchNorm1d(64),
        fc2=nn.Linear(64, 10),
    )
    assert _shape(find_anatomy(model)) == ("a", None, ("b", "c d", "e"), "fc2")


def test_pooling_layer_shared_by_the_forward_pass_does_not_confuse() -> None:
    model = _named(
        conv1=nn.Conv2d(3, 6, 5),
        pool=nn.MaxPool2d(2),
        conv2=nn.Conv2d(6, 16, 5),
        fc1=nn.Linear(400, 120),
        fc2=nn.Linear(120, 84),
        fc3=nn.Linear(84, 10),
    )
    assert _shape(find_anatomy(model)) == ("conv1", None, ("conv2",), "fc3")


def test_single_convolutions_between_few_blocks_belong_to_stages() -> None:
    def residual(width: int) -> nn.Module:
        return nn.Sequential(_conv_norm(width, width), _conv_norm(width, width))

    model = nn.Sequential(
        _conv_norm(3, 64),
        _conv_norm(64, 128, nn.MaxPool2d(2)),
        residual(128),
        _conv_norm(128, 256, nn.MaxPool2d(2)),
        _conv_norm(256, 512, nn.MaxPool2d(2)),
        residual(512),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    assert _shape(find_anatomy(model)) == ("0.0", "0.1", ("1", "2 3", "4", "5"), "7")


def _branching(width: int) -> nn.Module:
    """A block that lowers the resolution by a strided convolution and, beside it, by pooling."""
    return _named(a=nn.Conv2d(width, width, 3, stride=2), b=nn.Conv2d(width, width, 1), pool=nn.MaxPool2d(3, stride=2))


def test_pooling_branch_of_a_strided_block_does_not_cut_after_it() -> None:
    parts = [Residual(8, 8), _branching(8), Residual(8, 8), _branching(8), Residual(8, 8)]
    model = nn.Sequential(nn.Conv2d(3, 8, 3), *parts, nn.Linear(8, 10))
    assert find_anatomy(model).stages == (("1",), ("2", "3"), ("4", "5"))


def test_pooling_at_the_end_of_a_strided_chain_cuts_after_it() -> None:
    chain = nn.Sequential(*_conv_norm(8, 8), nn.Conv2d(8, 8, 3, stride=2), nn.MaxPool2d(2))
    model = nn.Sequential(nn.Conv2d(3, 8, 3), Residual(8, 8), chain, Residual(8, 8), nn.Linear(8, 10))
    assert find_anatomy(model).stages == (("1",), ("2",), ("3",))


def test_norms_alone_are_no_stage() -> None:
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, 2), nn.Conv2d(8, 8, 3, 2)]
    assert _shape(find_anatomy(nn.Sequential(*layers, nn.Linear(8, 10))))[1:3] == ("1", ("2 3", "4"))


def test_widths_that_come_back_are_no_stages() -> None:
    layers = [nn.Conv2d(a, b, 3) for a, b in ((3, 8), (8, 16), (16, 8), (8, 16))]
    assert find_anatomy(nn.Sequential(*layers, nn.Linear(16, 10))).stages == (("1", "2", "3"),)


def test_blocks_of_different_kinds_are_not_cut_into_equal_groups() -> None:
    blocks = [Residual(8, 8), Block(8), Residual(8, 8), Block(8), Residual(8, 8)]
    model = nn.Sequential(nn.Conv2d(3, 8, 3), *blocks, nn.Linear(8, 10))
    assert find_anatomy(model).stages == (("1", "2", "3", "4", "5"),)


def test_equal_blocks_are_cut_in_four_with_the_longer_groups_first() -> None:
    model = _named(
        embed=nn.Conv2d(3, 16, 4, stride=4),
        blocks=nn.ModuleList(Block() for _ in range(6)),
        norm=nn.LayerNorm(16),
        head=nn.Linear(16, 10),
    )
    found = find_anatomy(model)
    assert found.stages == (("blocks.0", "blocks.1"), ("blocks.2", "blocks.3"), ("blocks.4",), ("blocks.5",))
    assert found.first_conv_kind == "patch embedding"


def test_three_equal_blocks_are_one_stage() -> None:
    model = _named(
        embed=nn.Conv2d(3, 16, 4, 4), blocks=nn.ModuleList(Block() for _ in range(3)), head=nn.Linear(16, 10)
    )
    assert find_anatomy(model).stages == (("blocks.0", "blocks.1", "blocks.2"),)


def test_one_transformer_block_is_not_cut_into_attention_and_mlp() -> None:
    model = _named(embed=nn.Conv2d(3, 16, 4, 4), blocks=nn.ModuleList([Block()]), head=nn.Linear(16, 10))
    assert find_anatomy(model).stages == (("blocks",),)


def test_one_block_of_several_modules_is_not_taken_for_a_series() -> None:
    mixing = _named(qkv=nn.Linear(16, 48), proj=nn.Linear(16, 16))
    block = _named(norm1=nn.LayerNorm(16), attn=mixing, norm2=nn.LayerNorm(16), mlp=Block().think)
    model = _named(embed=nn.Conv2d(3, 16, 4, 4), block=block, head=nn.Linear(16, 10))
    assert find_anatomy(model).stages == (("block",),)


def test_a_long_second_stage_is_not_taken_for_the_whole_trunk() -> None:
    second = nn.Sequential(Residual(8, 16, 2), *(Residual(16, 16) for _ in range(9)))
    model = _named(stem=nn.Conv2d(3, 8, 3), one=nn.Sequential(Residual(8, 8)), two=second, out=nn.Linear(16, 10))
    assert find_anatomy(model).stages == (("one",), ("two",))


def _trunk_with(neck: nn.Module) -> nn.Module:
    body = nn.Sequential(*(Residual(8, 8, stride) for stride in (1, 2, 1, 2, 1, 2, 1, 1)))
    return _named(stem=nn.Conv2d(3, 8, 3), body=body, neck=neck, out=nn.Linear(8, 10))


def test_neck_at_the_resolution_of_the_last_stage_is_left_out() -> None:
    found = find_anatomy(_trunk_with(Residual(8, 8)))
    assert [len(stage) for stage in found.stages] == [1, 2, 2, 3]
    assert found.stages[-1][-1] == "body.7"


def test_group_that_lowers_the_resolution_after_the_trunk_is_a_stage() -> None:
    assert find_anatomy(_trunk_with(Residual(8, 8, stride=2))).stages == (("body",), ("neck",))


def test_nested_encoder_with_embeddings_is_descended_into() -> None:
    inner = _named(
        embeddings=_named(patches=_named(projection=nn.Conv2d(3, 16, 4, 4)), dropout=nn.Dropout(0.1)),
        encoder=_named(layer=nn.ModuleList(Block() for _ in range(4))),
        layernorm=nn.LayerNorm(16),
    )
    found = find_anatomy(_named(vit=inner, classifier=nn.Linear(16, 10)))
    layer = "vit.encoder.layer"
    assert _shape(found) == (
        "vit.embeddings.patches.projection",
        None,
        (f"{layer}.0", f"{layer}.1", f"{layer}.2", f"{layer}.3"),
        "classifier",
    )


def _resnet() -> nn.Module:
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(3, 8, 3),
            norm=nn.GroupNorm(2, 8),
            one=nn.Sequential(Residual(8, 8), Residual(8, 8)),
            two=nn.Sequential(Residual(8, 16, 2), Residual(16, 16)),
            out=nn.Linear(16, 10),
        )
    )


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_wrappers_only_prefix_the_names(depth: int) -> None:
    model = _resnet()
    for _ in range(depth):
        model = nn.Sequential(nn.Identity(), model)
    prefix = "1." * depth
    expected = (f"{prefix}conv", f"{prefix}norm", (f"{prefix}one", f"{prefix}two"), f"{prefix}out")
    assert _shape(find_anatomy(model)) == expected


def test_input_normalisation_written_as_convolution_or_norm_is_no_layer_of_the_network() -> None:
    for scaler in (nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3, affine=False)):
        found = find_anatomy(nn.Sequential(scaler, *_resnet().children()))
        assert _shape(found) == ("1", "2", ("3", "4"), "5")


def test_normalisation_of_the_input_belongs_to_no_stage_of_a_flat_network() -> None:
    layers = [nn.BatchNorm2d(3), *_conv_norm(3, 8), *_conv_norm(8, 8, nn.MaxPool2d(2)), *_conv_norm(8, 8)]
    found = find_anatomy(nn.Sequential(*layers, nn.Flatten(), nn.Linear(8, 10)))
    assert _shape(found) == ("1", "2", ("4 5", "8 9"), "12")


def test_the_only_convolution_that_takes_images_is_first_whatever_the_order() -> None:
    model = _named(out=nn.Linear(16, 10), late=nn.Conv2d(8, 16, 3), early=nn.Conv2d(3, 8, 3), norm=nn.BatchNorm2d(8))
    found = find_anatomy(model)
    assert _shape(found) == ("early", "norm", ("late",), "out")
    assert "takes an image" in found.how["first_conv"]


def test_auxiliary_heads_are_neither_stage_nor_classifier() -> None:
    def auxiliary(outputs: int) -> nn.Module:
        return nn.Sequential(nn.AvgPool2d(4), nn.Conv2d(8, 16, 1), nn.ReLU(), nn.Flatten(), nn.Linear(16, outputs))

    model = _named(
        stem=nn.Conv2d(3, 8, 3),
        one=Residual(8, 8),
        aux=auxiliary(10),
        two=Residual(8, 16, stride=2),
        out=nn.Linear(16, 10),
        rotation=auxiliary(4),
    )
    assert _shape(find_anatomy(model)) == ("stem", None, ("one", "two"), "out")


def test_network_inside_with_auxiliary_head_beside_keeps_its_own_classifier() -> None:
    head = nn.Sequential(Residual(16, 32, 2), nn.BatchNorm2d(32), nn.Flatten(), nn.Linear(32, 4))
    found = find_anatomy(_named(net=_resnet(), head=head))
    assert _shape(found) == ("net.conv", "net.norm", ("net.one", "net.two"), "net.out")


def test_squeeze_and_excitation_with_linear_layers_is_not_a_head() -> None:
    def squeezed(width_in: int, width: int, stride: int) -> nn.Module:
        gate = nn.Sequential(nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, width))
        return _named(body=Residual(width_in, width, stride), gate=gate)

    model = _named(stem=nn.Conv2d(3, 8, 3), a=squeezed(8, 8, 1), b=squeezed(8, 16, 2), out=nn.Linear(16, 10))
    assert _shape(find_anatomy(model)) == ("stem", None, ("a", "b"), "out")


def test_several_output_layers_side_by_side_give_the_last() -> None:
    model = _named(body=_resnet()[:-1], heads=nn.ModuleList([nn.Linear(16, 10), nn.Linear(16, 10)]))
    assert find_anatomy(model).classifier == "heads.1"


def test_final_pointwise_convolution_is_the_classifier_where_there_is_no_linear_layer() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 10, 1))
    assert _shape(find_anatomy(model)) == ("0", None, ("2",), "4")


def test_final_pointwise_convolution_that_is_normalised_is_no_classifier() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, stride=2), nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16))
    assert find_anatomy(model).classifier is None


def test_classifier_in_one_module_with_the_blocks_is_found_and_kept_out_of_the_stages() -> None:
    convolutional = [Residual(8, 8), Residual(8, 16, 2), Residual(16, 16), nn.Flatten(), nn.Linear(16, 10)]
    found = find_anatomy(_named(stem=nn.Conv2d(3, 8, 3), rest=nn.Sequential(*convolutional)))
    assert _shape(found) == ("stem", None, ("rest.0", "rest.1 rest.2"), "rest.4")
    attending = [*(Block() for _ in range(4)), nn.LayerNorm(16), nn.Linear(16, 10)]
    found = find_anatomy(_named(embed=nn.Conv2d(3, 16, 4, 4), rest=nn.Sequential(*attending)))
    assert _shape(found) == ("embed", None, ("rest.0", "rest.1", "rest.2", "rest.3"), "rest.5")


def test_perceptron_after_few_convolutions_is_head_and_no_stage() -> None:
    head = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)), nn.Linear(8, 10))
    found = find_anatomy(_named(features=nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)), head=head))
    assert _shape(found) == ("features.0", None, ("features.1",), "head.4")


def test_classifier_registered_first_inside_a_network_with_a_neighbour_is_found() -> None:
    net = _named(out=nn.Linear(8, 10), stem=nn.Conv2d(3, 8, 3), one=Residual(8, 8), two=Residual(8, 8, 2))
    assert find_anatomy(_named(net=net, extra=Residual(8, 8))).classifier == "net.out"


def test_features_without_classifier_have_none() -> None:
    assert find_anatomy(_resnet()[:-1]).classifier is None


def test_perceptron_has_stages_but_no_convolution() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10))
    assert _shape(find_anatomy(model)) == (None, None, ("1", "3"), "5")


def test_one_convolution_and_a_linear_layer_have_no_stage() -> None:
    found = find_anatomy(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 10)))
    assert _shape(found) == ("0", "1", (), "3")


@pytest.mark.parametrize("model", [nn.Linear(3, 2), nn.Identity(), nn.Conv2d(3, 8, 3)])
def test_a_bare_layer_has_no_parts(model: nn.Module) -> None:
    assert _shape(find_anatomy(model)) == (None, None, (), None)


def test_one_dimensional_and_volumetric_convolutions_count() -> None:
    for conv, norm in ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv3d, nn.BatchNorm3d)):
        layers = [conv(1, 4, 3), norm(4), nn.ReLU(), conv(4, 8, 3, stride=2), norm(8), nn.Flatten(), nn.Linear(8, 10)]
        assert _shape(find_anatomy(nn.Sequential(*layers))) == ("0", "1", ("3 4",), "6")


class OwnNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1, width, 1, 1))
        self.shift = nn.Parameter(torch.zeros(1, width, 1, 1))
        self.eps = 1e-6


class OwnConv(nn.Module):
    def __init__(self, width_in: int, width: int):
        super().__init__()
        self.kernel = nn.Parameter(torch.zeros(width, width_in, 3, 3))


def test_layers_of_the_users_own_make_are_recognised_by_what_they_hold() -> None:
    model = _named(
        a=nn.Conv2d(3, 8, 3), n=OwnNorm(8), b=OwnConv(8, 8), m=OwnNorm(8), scale=nn.PReLU(8), out=nn.Linear(8, 10)
    )
    found = find_anatomy(model)
    assert _shape(found) == ("a", "n", ("b m",), "out")
    assert found.norms == ("n", "m")
    assert set(found.stage_parameters(model, [1], kind="conv")) == {"b.kernel"}


class Cosine(nn.Module):
    def __init__(self, width: int, classes: int):
        super().__init__()
        self.directions = nn.Parameter(torch.zeros(classes, width))


def test_output_layer_of_the_users_own_make_is_the_classifier() -> None:
    found = find_anatomy(_named(body=_resnet()[:-1], sim=_named(drop=nn.Dropout(), cosine=Cosine(16, 10))))
    assert _shape(found) == ("body.conv", "body.norm", ("body.one", "body.two"), "sim.cosine")
    assert found.how["classifier"] == "linear output layer, 16 features to 10 classes"


def test_norm_that_opens_the_first_block_is_part_of_it() -> None:
    block = nn.Sequential(OrderedDict(norm=nn.BatchNorm2d(8), a=nn.Conv2d(8, 8, 3), b=nn.Conv2d(8, 8, 3)))
    found = find_anatomy(_named(stem=nn.Conv2d(3, 8, 3), block=block, out=nn.Linear(8, 10)))
    assert found.stem_norm is None
    assert "block.norm" in found.norms


def test_a_module_registered_twice_is_found_once() -> None:
    shared = Residual(8, 8)
    model = _named(stem=nn.Conv2d(3, 8, 3), first=shared, again=shared, out=nn.Linear(8, 10))
    assert _shape(find_anatomy(model)) == ("stem", None, ("first",), "out")


def test_anatomy_survives_a_copy_of_the_model_and_compares_by_value() -> None:
    model = _resnet()
    assert find_anatomy(copy.deepcopy(model)) == find_anatomy(model)
    assert hash(find_anatomy(model)) == hash(find_anatomy(model))
    assert copy.deepcopy(find_anatomy(model)) == find_anatomy(model)


def test_nothing_of_the_model_is_changed() -> None:
    model = _resnet()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    attributes = {name: set(vars(module)) for name, module in model.named_modules()}
    find_anatomy(model)
    assert attributes == {name: set(vars(module)) for name, module in model.named_modules()}
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.out = nn.Linear(4, 2)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.out(self.conv(images).mean(dim=(2, 3)))
        return logits


def test_parametrised_convolution_is_still_the_first_convolution() -> None:
    model = Plain()
    nn.utils.parametrizations.weight_norm(model.conv)
    assert _shape(find_anatomy(model)) == ("conv", None, (), "out")
