"""The zoo: every published format loads into the right names, and whatever does not fit is said at once."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from synaptune.errors import OptionError, UnknownNameError, WeightsError
from synaptune.models import Card, PreactResNet, RotationModel, zoo
from synaptune.models.weights import write_weights
from synaptune.models.zoo import ZooEntry

from . import published

Shapes = dict[str, tuple[int, ...]]


def prefixed(tensors: dict[str, Tensor], prefix: str = "module.") -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def no_weights_on_disk(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("SYNAPTUNE_DATA", str(folder))
    monkeypatch.setenv("SYNAPTUNE_SHARED", str(folder / "none"))


# One row per published file: zoo name, what the file holds, and one tensor of ours with the place it must come from.
AKAMASTER = published.tensors(published.akamaster(20))
WIDE = published.tensors(published.wide(40, 2, classes=10))
WIDE_100 = published.tensors(published.wide(40, 2, classes=100))
AUGMIX = published.tensors(published.wide(40, 2, classes=10, shortcut="conv_shortcut"))
NET, HEAD = published.tensors(published.ttt_net()), published.tensors(published.ttt_head(), seed=1)
NET_GN = published.tensors(published.ttt_net(group_norm=True))
HEAD_GN = published.tensors(published.ttt_head(group_norm=True), seed=1)
SVHN = published.tensors(published.playground_svhn())
HALF = torch.full((1, 3, 1, 1), 0.5)
FILES = {
    "akamaster": ("resnet20-cifar10", {"state_dict": prefixed(AKAMASTER), "best_prec1": 91.78}),
    "robustbench augmix": ("wrn-40-2-cifar10-augmix", {"state_dict": prefixed(WIDE), "epoch": 199}),
    "robustbench augmix, bare": ("wrn-40-2-cifar10-augmix", WIDE),
    "robustbench augmix, with constants": ("wrn-40-2-cifar10-augmix", WIDE | {"mu": HALF, "sigma": HALF}),
    "robustbench augmix, cifar-100": ("wrn-40-2-cifar100-augmix", {"state_dict": prefixed(WIDE_100)}),
    "augmix's own": ("wrn-40-2-cifar10-augmix", {"state_dict": prefixed(AUGMIX), "best_acc": 0.95}),
    "dua": ("resnet26-cifar10-dua", NET),
    "dua, parallel": ("resnet26-cifar10-dua", {"net": prefixed(NET)}),
    "ttt, classifier of a file with head": ("resnet26-gn-cifar10", {"net": NET_GN, "head": HEAD_GN}),
    "ttt with head": (
        "resnet26-gn-cifar10-rotation",
        {
            "net": NET_GN,
            "head": HEAD_GN,
            "err_cls": np.float64(0.08),
            "optimizer": {"state": {}, "param_groups": [{"lr": 0.001, "params": [0, 1]}]},
            "args": argparse.Namespace(shared="layer2"),
        },
    ),
    "ttt with head, parallel": (
        "resnet26-gn-cifar10-rotation",
        {"net": prefixed(NET_GN), "head": prefixed(HEAD_GN)},
    ),
    "playground": ("digits-svhn", SVHN),
}


@pytest.mark.parametrize("case", FILES)
def test_published_file_loads_completely(tmp_path: Path, case: str) -> None:
    name, content = FILES[case]
    torch.save(content, tmp_path / "file.pth")
    model = zoo.create(name, weights=tmp_path / "file.pth")
    untouched = zoo.create(name, pretrained=False)
    same = [
        key
        for (key, mine), other in zip(model.state_dict().items(), untouched.state_dict().values(), strict=True)
        if mine.is_floating_point() and torch.equal(mine, other)
    ]
    assert same == [], "these kept their initial values"
    assert not model.training
    logits = model(torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    assert logits.isfinite().all()


def test_robustbench_standard_fits_wrn_28_10_name_by_name() -> None:
    # 146 MB as a file, so names and shapes are compared without one.
    with torch.device("meta"):
        model = zoo.entry("wrn-28-10-cifar10").build(10)
    expected = published.wide(28, 10, classes=10)
    assert {name: tuple(value.shape) for name, value in model.state_dict().items()} == expected


def test_efficientnet_lite0_gets_timms_names_and_its_own_scaling(tmp_path: Path) -> None:
    pytest.importorskip("timm")
    tensors = published.tensors(published.efficientnet_lite0())
    torch.save(tensors, tmp_path / "lite0.pth")
    model = zoo.create("efficientnet-lite0-imagenet", weights=tmp_path / "lite0.pth")
    state = model.state_dict()
    for ours, theirs in {
        "conv_stem.weight": "_conv_stem.weight",
        "bn1.running_mean": "_bn0.running_mean",
        "blocks.0.0.conv_pw.weight": "_blocks.0._project_conv.weight",
        "blocks.0.0.bn2.bias": "_blocks.0._bn2.bias",
        "blocks.3.1.conv_dw.weight": "_blocks.6._depthwise_conv.weight",
        "blocks.6.0.bn3.running_var": "_blocks.15._bn2.running_var",
        "bn2.weight": "_bn1.weight",
        "classifier.bias": "_fc.bias",
    }.items():
        assert torch.equal(state[f"model.{ours}"], tensors[theirs]), ours
    pixels = torch.randint(0, 256, (1, 3, 64, 64), generator=torch.Generator().manual_seed(0)).float()
    torch.testing.assert_close(model(pixels / 255), model.model((pixels - 127) / 128))


def test_each_tensor_lands_where_it_belongs(tmp_path: Path) -> None:
    torch.save(FILES["ttt with head"][1], tmp_path / "ckpt.pth")
    model = zoo.create("resnet26-gn-cifar10-rotation", weights=tmp_path / "ckpt.pth")
    state = model.state_dict()
    assert torch.equal(state["net.layer3.2.conv1.weight"], NET_GN["layer3.2.conv1.weight"])
    assert torch.equal(state["head.layer3.2.conv1.weight"], HEAD_GN["0.2.conv1.weight"])
    assert torch.equal(state["head.bn.bias"], HEAD_GN["1.bias"])
    assert torch.equal(state["head.fc.weight"], HEAD_GN["5.weight"])


def test_counters_that_old_files_lack_stay_zero(tmp_path: Path) -> None:
    torch.save(AKAMASTER, tmp_path / "file.th")
    model = zoo.create("resnet20-cifar10", weights=tmp_path / "file.th")
    assert model.state_dict()["bn1.num_batches_tracked"] == 0


def test_saved_constants_of_another_normalisation_are_refused(tmp_path: Path) -> None:
    torch.save(WIDE | {"mu": HALF * 0.9, "sigma": HALF}, tmp_path / "file.pt")
    with pytest.raises(WeightsError, match="saved with the normalisation mu="):
        zoo.create("wrn-40-2-cifar10-augmix", weights=tmp_path / "file.pt")


def test_a_file_of_another_network_is_told_to_fit_that(tmp_path: Path) -> None:
    torch.save({"state_dict": prefixed(AKAMASTER)}, tmp_path / "file.th")
    with pytest.raises(WeightsError, match=r"does not fit zoo:resnet56-cifar10: .*missing.*fits zoo:resnet20-cifar10$"):
        zoo.create("resnet56-cifar10", weights=tmp_path / "file.th")


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    damaged = dict(AKAMASTER)
    del damaged["bn1.weight"]
    damaged["extra.weight"] = torch.zeros(1)
    damaged["conv1.weight"] = torch.zeros(16, 1, 3, 3)
    torch.save(damaged, tmp_path / "file.th")
    with pytest.raises(WeightsError) as caught:
        zoo.create("resnet20-cifar10", weights=tmp_path / "file.th")
    message = str(caught.value)
    assert "1 missing (bn1.weight)" in message
    assert "1 unexpected (extra.weight)" in message
    assert "conv1.weight is (16, 1, 3, 3) instead of (16, 3, 3, 3)" in message
    assert "fits no model of the zoo" in message


def test_a_failed_load_changes_nothing() -> None:
    from synaptune.models.weights import fit_tensors

    model = PreactResNet(8)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    tensors = {name: value + 1 for name, value in before.items()}
    tensors["fc.bias"] = torch.full((10,), torch.nan)
    with pytest.raises(WeightsError, match=r"not finite, in fc\.bias"):
        fit_tensors(model, tensors, source="file", name="model")
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_another_number_of_classes_is_named(tmp_path: Path) -> None:
    seven = AKAMASTER | {"linear.weight": torch.zeros(7, 64), "linear.bias": torch.zeros(7)}
    torch.save(seven, tmp_path / "file.th")
    with pytest.raises(WeightsError, match="it has 7 classes: give num_classes"):
        zoo.create("resnet20-cifar10", weights=tmp_path / "file.th")
    model, card = zoo.load("resnet20-cifar10", weights=tmp_path / "file.th", num_classes=7)
    assert model(torch.rand(1, 3, 32, 32)).shape == (1, 7)
    assert (card.num_classes, card.class_names, card.error) == (7, (), None)


def test_our_file_is_built_with_the_classes_of_its_own_card(tmp_path: Path) -> None:
    mine = Card(name="whatever", num_classes=3, class_names=("apple", "fig", "pear"))
    write_weights(tmp_path / "ours.safetensors", PreactResNet(26, num_classes=3).state_dict(), card=mine)
    model, card = zoo.load("resnet26-cifar10", weights=tmp_path / "ours.safetensors")
    assert model(torch.rand(1, 3, 32, 32)).shape == (1, 3)
    assert (card.num_classes, card.class_names) == (3, ("apple", "fig", "pear"))
    with pytest.raises(WeightsError, match=r"the file fits zoo:resnet26-cifar10 or zoo:resnet26-cifar10-dua$"):
        zoo.load("resnet20-cifar10", weights=tmp_path / "ours.safetensors")
    with pytest.raises(WeightsError, match="it has 3 classes"):
        zoo.load("resnet26-cifar10", weights=tmp_path / "ours.safetensors", num_classes=4)


def test_a_head_is_not_invented_for_a_file_without_one(tmp_path: Path) -> None:
    torch.save({"net": NET_GN}, tmp_path / "file.pth")
    with pytest.raises(WeightsError, match="has no rotation head"):
        zoo.create("resnet26-gn-cifar10-rotation", weights=tmp_path / "file.pth")


def test_extractor_and_head_without_classifier_lack_the_classifier(tmp_path: Path) -> None:
    extractor = {
        name.replace("conv1.", "0.", 1) if name.startswith("conv1") else name.replace("layer", "", 1): tensor
        for name, tensor in NET_GN.items()
        if name.startswith(("conv1", "layer1", "layer2"))
    }
    torch.save({"ext": extractor, "head": HEAD_GN}, tmp_path / "file.pth")
    with pytest.raises(WeightsError, match=r"missing \(net\.bn\.bias"):
        zoo.create("resnet26-gn-cifar10-rotation", weights=tmp_path / "file.pth")


def test_a_file_without_tensors_lists_what_it_has(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "lr": 0.1}, tmp_path / "file.pth")
    with pytest.raises(WeightsError, match="it has the entries epoch, lr"):
        zoo.create("resnet20-cifar10", weights=tmp_path / "file.pth")


def test_our_file_brings_its_own_card_and_fits_with_and_without_head(tmp_path: Path) -> None:
    torch.manual_seed(0)
    trained = RotationModel(PreactResNet(26))
    mine = Card(name="whatever", num_classes=10, error=12.5, error_on="toy", training={"epochs": 1})
    write_weights(tmp_path / "ours.safetensors", trained.state_dict(), card=mine)
    with_head, card = zoo.load("resnet26-cifar10-rotation", weights=tmp_path / "ours.safetensors")
    plain = zoo.create("resnet26-cifar10", weights=tmp_path / "ours.safetensors")
    assert (card.error, card.training) == (12.5, {"epochs": 1})
    assert card.weights == str(tmp_path / "ours.safetensors")
    images = torch.rand(2, 3, 32, 32)
    assert torch.equal(with_head(images), trained.eval()(images))
    assert torch.equal(plain(images), trained(images))
    assert torch.equal(with_head.rotation_logits(images), trained.rotation_logits(images))


def test_half_precision_keeps_norms_exact_and_says_what_it_wrote(tmp_path: Path) -> None:
    net = PreactResNet(8)
    net.bn.running_var.fill_(1e6)  # beyond the range of half precision
    write_weights(tmp_path / "w.safetensors", net.state_dict(), card=Card(name="w", num_classes=10), half=True)
    from synaptune.models.checkpoint_file import read_checkpoint

    stored = read_checkpoint(tmp_path / "w.safetensors").content
    assert stored["conv1.weight"].dtype == torch.float16
    assert stored["bn.running_var"].dtype == torch.float32
    assert stored["bn.running_var"][0] == 1e6
    assert Card.from_json((tmp_path / "w.json").read_text(), where="w.json").name == "w"
    assert (tmp_path / "w.md").read_text().startswith("# w\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.json", "w.md", "w.safetensors"]


def test_weights_that_half_precision_cannot_hold_are_not_written(tmp_path: Path) -> None:
    huge = {"conv.weight": torch.full((2, 2), 1e6)}
    with pytest.raises(WeightsError, match=r"conv\.weight cannot be stored"):
        write_weights(tmp_path / "w.safetensors", huge, card=Card(name="w", num_classes=2), half=True)
    assert list(tmp_path.iterdir()) == []


def test_missing_weights_are_answered_with_their_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_weights_on_disk(monkeypatch, tmp_path)
    with pytest.raises(WeightsError, match=r"svhn-f564f3d8\.pth at http.*weights=FILE"):
        zoo.create("digits-svhn")


@pytest.mark.parametrize("name", ["digits-mnist", "wrn-40-2-cifar10"])
def test_missing_weights_of_ours_are_answered_with_the_command_that_makes_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    no_weights_on_disk(monkeypatch, tmp_path)
    said = f"`synaptune train {name} --out FOLDER` makes them, as FOLDER/{name}.safetensors. Save it in "
    with pytest.raises(WeightsError, match=re.escape(said)):
        zoo.create(name)


def test_weights_in_the_data_folder_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_weights_on_disk(monkeypatch, tmp_path)
    (tmp_path / "weights").mkdir()
    torch.save(SVHN, tmp_path / "weights" / "svhn-f564f3d8.pth")
    model, card = zoo.load("digits-svhn")
    assert torch.equal(model.state_dict()["features.0.bias"], SVHN["features.0.bias"])
    assert card.error == 3.97
    assert card.weights.endswith("svhn-f564f3d8.pth")


def test_a_file_of_another_name_does_not_inherit_the_published_error(tmp_path: Path) -> None:
    torch.save(SVHN, tmp_path / "mine.pth")
    card = zoo.load("digits-svhn", weights=tmp_path / "mine.pth")[1]
    assert (card.error, card.origin, card.label_map[0]) == (None, "", 9)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean resnet20-cifar10"):
        zoo.create("resnet20-cifar100")


def test_contradicting_wishes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="contradict"):
        zoo.create("resnet20-cifar10", weights=tmp_path / "x", pretrained=False)
    with pytest.raises(OptionError, match="has weights for 10 classes, not 5"):
        zoo.create("resnet20-cifar10", num_classes=5)


def test_a_name_is_taken_once() -> None:
    taken = zoo.entry("resnet20-cifar10")
    with pytest.raises(OptionError, match="already has"):
        zoo.register(ZooEntry(card=taken.card, build=taken.build))


@pytest.mark.parametrize("name", zoo.names())
def test_card_is_consistent_with_its_network(name: str) -> None:
    entry = zoo.entry(name)
    card = entry.card
    assert len(card.class_names) in (0, card.num_classes)
    assert sorted(card.label_map) in ([], list(range(card.num_classes)))
    assert (card.normalisation == "none") == (card.mean == ())
    assert card.architecture
    assert card.licence
    assert entry.bundled or card.file
    with torch.device("meta"):
        model = entry.build(card.num_classes)
    constants = [module for module in model.modules() if type(module).__name__ == "Normalise"]
    assert len(constants) == (0 if card.normalisation == "none" else 1)


@pytest.mark.parametrize("name", [name for name in zoo.names() if zoo.card(name).mean])
def test_the_normalisation_inside_is_the_cards(name: str) -> None:
    model = zoo.entry(name).build(10)
    inside = next(module for module in model.modules() if type(module).__name__ == "Normalise")
    assert inside.mean.flatten().tolist() == pytest.approx(zoo.card(name).mean)
    assert inside.std.flatten().tolist() == pytest.approx(zoo.card(name).std)


def test_card_survives_its_json_and_tolerates_later_fields() -> None:
    card = zoo.card("digits-svhn")
    assert Card.from_json(card.to_json(), where="x") == card
    later = card.to_json()[:-1] + ', "colour": "blue"}'
    assert Card.from_json(later, where="x") == card
    with pytest.raises(WeightsError, match="x: its model card cannot be read"):
        Card.from_json("[]", where="x")


def test_page_of_a_card_shows_what_is_known() -> None:
    card = dataclasses.replace(zoo.card("digits-svhn"), training={"epochs": 8})
    page = card.to_markdown()
    assert "| error | 3.97 |" in page
    assert "| epochs | 8 |" in page
    assert "rotation" not in page


def test_foreign_safetensors_load_too(tmp_path: Path) -> None:
    save_file(AKAMASTER, tmp_path / "file.safetensors")
    model = zoo.create("resnet20-cifar10", weights=tmp_path / "file.safetensors")
    assert torch.equal(model.state_dict()["linear.bias"], AKAMASTER["linear.bias"])
