"""The data sets that are known by name: a table of facts, and the functions that look things up in it.

Checksums stand here only where the publisher documents them (CIFAR: the home page; -C sets: the Zenodo records) or
two independent public projects agree on them (SVHN, MNIST, USPS, MNIST-M, the single files of the -C sets). The sha256
values of single CIFAR-10 and MNIST files are those of a copy on which five public checkpoints give exactly their
published test errors. Everything else is not pinned: the first download records what it measured.
"""

from __future__ import annotations

from collections.abc import Mapping

from synaptune.data import class_names
from synaptune.data.entry import Entry, KnownFile, Place, Remote
from synaptune.data.readers import cifar, corrupted_arrays, idx, imagenet, listed_files, postal, street_numbers
from synaptune.errors import OptionError, UnknownNameError
from synaptune.shifts import CORRUPTIONS, EXTRA_CORRUPTIONS

__all__ = ["BENCHMARK_CORRUPTIONS", "EXTRA_CORRUPTIONS", "entries", "entry_named", "register"]

BENCHMARK_CORRUPTIONS = CORRUPTIONS
"""The 15 corruptions of the published benchmarks, in their order; the other 4 were published for tuning."""

_ALL_CORRUPTIONS = BENCHMARK_CORRUPTIONS + EXTRA_CORRUPTIONS
_CIFAR_HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
_ZENODO = "https://zenodo.org/records"
_ROBUSTBENCH_LIST = "robustbench/imagenet_test_image_ids.txt"
_VAL_FOLDERS = ("imagenet/val", "ImageNet/val", "ILSVRC2012/val", "ILSVRC/Data/CLS-LOC/val")


def _cifar10() -> Entry:
    binary, python = "cifar-10-batches-bin", "cifar-10-batches-py"
    train_binary = tuple(f"{binary}/data_batch_{number}.bin" for number in range(1, 6))
    train_python = tuple(f"{python}/data_batch_{number}" for number in range(1, 6))
    sha256 = {
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    }
    return Entry(
        name="cifar10",
        title="CIFAR-10: 60,000 photographs of 32x32 in 10 classes",
        licence="none stated; cite Krizhevsky 2009",
        home=_CIFAR_HOME,
        counts={"train": 50_000, "test": 10_000},
        size=(32, 32),
        splits={
            "train": (Place(train_binary, cifar.read_cifar10_binary), Place(train_python, cifar.read_cifar10_python)),
            "test": (
                Place((f"{binary}/test_batch.bin",), cifar.read_cifar10_binary),
                Place((f"{python}/test_batch",), cifar.read_cifar10_python),
            ),
        },
        classes=class_names.CIFAR10,
        remotes=(
            Remote(
                url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                filename="cifar-10-binary.tar.gz",
                size=170_052_171,
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                unpack="tar",
                gives=(*train_binary, f"{binary}/test_batch.bin"),
            ),
        ),
        files=tuple(KnownFile(f"{binary}/{name}", 30_730_000, sha256=digest) for name, digest in sha256.items()),
    )


def _cifar100() -> Entry:
    binary, python = "cifar-100-binary", "cifar-100-python"
    return Entry(
        name="cifar100",
        title="CIFAR-100: 60,000 photographs of 32x32 in 100 classes",
        licence="none stated; cite Krizhevsky 2009",
        home=_CIFAR_HOME,
        counts={"train": 50_000, "test": 10_000},
        size=(32, 32),
        splits={
            split: (
                Place((f"{binary}/{split}.bin",), cifar.read_cifar100_binary),
                Place((f"{python}/{split}",), cifar.read_cifar100_python),
            )
            for split in ("train", "test")
        },
        classes=class_names.CIFAR100,
        remotes=(
            Remote(
                url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                filename="cifar-100-binary.tar.gz",
                size=168_513_733,
                md5="03b5dce01913d631647c71ecec9e9cb8",
                unpack="tar",
                gives=(f"{binary}/train.bin", f"{binary}/test.bin"),
            ),
        ),
        files=(
            KnownFile(f"{binary}/train.bin", 50_000 * 3074),
            KnownFile(f"{binary}/test.bin", 10_000 * 3074),
        ),
    )


def _corrupted_cifar(
    *, name: str, folder: str, record: int, size: int, md5: str, classes: tuple[str, ...], files: Mapping[str, str]
) -> Entry:
    arrays = {corruption: f"{folder}/{corruption}.npy" for corruption in _ALL_CORRUPTIONS}
    return Entry(
        name=name,
        title=f"{folder}: the {name.partition('-')[0].upper()} test images under 19 corruptions of 5 severities",
        licence="CC BY 4.0",
        home=f"{_ZENODO}/{record}",
        counts={"test": 10_000},
        size=(32, 32),
        splits={
            "test": (
                Place((f"{folder}/labels.npy", f"{folder}/{{corruption}}.npy"), corrupted_arrays.read_corrupted_arrays),
            )
        },
        classes=classes,
        corruptions=_ALL_CORRUPTIONS,
        remotes=(
            Remote(
                url=f"{_ZENODO}/{record}/files/{folder}.tar?download=1",
                filename=f"{folder}.tar",
                size=size,
                md5=md5,
                unpack="tar",
                gives=(f"{folder}/labels.npy", *arrays.values()),
            ),
        ),
        files=tuple(KnownFile(f"{folder}/{stem}.npy", md5=digest) for stem, digest in files.items()),
    )


def _cifar10_c() -> Entry:
    return _corrupted_cifar(
        name="cifar10-c",
        folder="CIFAR-10-C",
        record=2535967,
        size=2_918_471_680,
        md5="56bf5dcef84df0e2308c6dcbcbbd8499",
        classes=class_names.CIFAR10,
        files={
            "brightness": "0a81ef75e0b523c3383219c330a85d48",
            "contrast": "3c8262171c51307f916c30a3308235a8",
            "defocus_blur": "7d1322666342a0702b1957e92f6254bc",
            "elastic_transform": "9421657c6cd452429cf6ce96cc412b5f",
            "fog": "7b397314b5670f825465fbcd1f6e9ccd",
            "frost": "31f6ab3bce1d9934abfb0cc13656f141",
            "gaussian_blur": "c33370155bc9b055fb4a89113d3c559d",
            "gaussian_noise": "ecaf8b9a2399ffeda7680934c33405fd",
            "glass_blur": "7361fb4019269e02dbf6925f083e8629",
            "impulse_noise": "2090e01c83519ec51427e65116af6b1a",
            "jpeg_compression": "2b9cc4c864e0193bb64db8d7728f8187",
            "labels": "c439b113295ed5254878798ffe28fd54",
            "motion_blur": "fffa5f852ff7ad299cfe8a7643f090f4",
            "pixelate": "0f14f7e2db14288304e1de10df16832f",
            "saturate": "1cfae0964219c5102abbb883e538cc56",
            "shot_noise": "3a7239bb118894f013d9bf1984be7f11",
            "snow": "bb238de8555123da9c282dea23bd6e55",
            "spatter": "8a5a3903a7f8f65b59501a6093b4311e",
            "speckle_noise": "ef00b87611792b00df09c0b0237a1e30",
            "zoom_blur": "6ea8e63f1c5cdee1517533840641641b",
        },
    )


def _cifar100_c() -> Entry:
    return _corrupted_cifar(
        name="cifar100-c",
        folder="CIFAR-100-C",
        record=3555552,
        size=2_918_473_216,
        md5="11f0ed0f1191edbf9fa23466ae6021d3",
        classes=class_names.CIFAR100,
        files={
            "brightness": "f22d7195aecd6abb541e27fca230c171",
            "contrast": "322bb385f1d05154ee197ca16535f71e",
            "defocus_blur": "d923e3d9c585a27f0956e2f2ad832564",
            "elastic_transform": "a0792bd6581f6810878be71acedfc65a",
            "fog": "4efc7ebd5e82b028bdbe13048e3ea564",
            "frost": "3a39c6823bdfaa0bf8b12fe7004b8117",
            "gaussian_blur": "5204ba0d557839772ef5a4196a052c3e",
            "gaussian_noise": "ecc4d366eac432bdf25c024086f5e97d",
            "glass_blur": "0bf384f38e5ccbf8dd479d9059b913e1",
            "impulse_noise": "3b3c210ddfa0b5cb918ff4537a429fef",
            "jpeg_compression": "c851b7f1324e1d2ffddeb76920576d11",
            "labels": "bb4026e9ce52996b95f439544568cdb2",
            "motion_blur": "732a7e2e54152ff97c742d4c388c5516",
            "pixelate": "96c00c60f144539e14cffb02ddbd0640",
            "saturate": "c0697e9fdd646916a61e9c312c77bf6b",
            "shot_noise": "b0a1fa6e1e465a747c1b204b1914048a",
            "snow": "0237be164583af146b7b144e73b43465",
            "spatter": "12ccf41d62564d36e1f6a6ada5022728",
            "speckle_noise": "e3f215b1a0f9fd9fd6f0d1cf94a7ce99",
            "zoom_blur": "0204613400c034a81c4830d5df81cb82",
        },
    )


def _imagenet() -> Entry:
    return Entry(
        name="imagenet",
        title="ImageNet (ILSVRC 2012) validation: 50,000 photographs in 1,000 classes",
        licence="non-commercial research, after registration",
        home="https://image-net.org/download-images.php",
        counts={"val": 50_000},
        size=(224, 224),
        splits={"val": tuple(Place((folder,), imagenet.read_imagenet) for folder in _VAL_FOLDERS)},
        manual=(
            "register at https://image-net.org/download-images.php, download ILSVRC2012_img_val.tar "
            "(6,744,924,160 bytes, md5 29b22e2961454d5413ddabcf34fc5622) and unpack it as imagenet/val below the data "
            "folder; sort it into class folders, or put val.txt, LOC_val_solution.csv or the folder "
            "ILSVRC2012_devkit_t12 beside it"
        ),
        is_tree=True,
    )


def _robustbench_list() -> Remote:
    # Fixed to a commit, so that the address can only ever give these bytes.
    commit = "7af0e34c6b383cd73ea7a1bbced358d7ce6ad22f"
    return Remote(
        url=f"https://raw.githubusercontent.com/RobustBench/robustbench/{commit}/robustbench/data/imagenet_test_image_ids.txt",
        filename="imagenet_test_image_ids.txt",
        into="robustbench",
        gives=(_ROBUSTBENCH_LIST,),
    )


def _imagenet_5k() -> Entry:
    return Entry(
        name="imagenet-5k",
        title="ImageNet validation, the 5,000 images of RobustBench in its order",
        licence="the list: RobustBench's; the images: non-commercial research, after registration",
        home="https://github.com/RobustBench/robustbench",
        counts={"val": 5_000},
        size=(224, 224),
        splits={
            "val": tuple(Place((_ROBUSTBENCH_LIST, folder), imagenet.read_imagenet_listed) for folder in _VAL_FOLDERS)
        },
        remotes=(_robustbench_list(),),
        manual="`synaptune data get imagenet-5k` fetches the list of ids; the images are those of imagenet",
        is_tree=True,
    )


def _imagenet_c() -> Entry:
    archives = {
        "noise": (22_565_673_785, "e80562d7f6c3f8834afb1ecf27252745", _ALL_CORRUPTIONS[:3]),
        "blur": (7_112_704_951, "2d8e81fdd8e07fef67b9334fa635e45c", _ALL_CORRUPTIONS[3:7]),
        "weather": (12_797_438_995, "33ffea4db4d93fe4a428c40a6ce0c25d", _ALL_CORRUPTIONS[7:11]),
        "digital": (7_757_510_705, "89157860d7b10d5797849337ca2e5c03", _ALL_CORRUPTIONS[11:15]),
        "extra": (15_789_490_144, "d492dfba5fc162d8ec2c3cd8ee672984", _ALL_CORRUPTIONS[15:]),
    }
    return Entry(
        name="imagenet-c",
        title="ImageNet-C: the ImageNet validation images, 224x224, under 19 corruptions of 5 severities",
        licence="CC BY 4.0; the images: non-commercial research",
        home=f"{_ZENODO}/2235448",
        counts={"val": 50_000},
        size=(224, 224),
        splits={
            "val": (
                Place(("ImageNet-C/{corruption}/{severity}",), imagenet.read_imagenet_c),
                *(
                    Place((f"ImageNet-C/{archive}/{{corruption}}/{{severity}}",), imagenet.read_imagenet_c)
                    for archive in archives
                ),
            )
        },
        corruptions=_ALL_CORRUPTIONS,
        remotes=tuple(
            Remote(
                url=f"{_ZENODO}/2235448/files/{archive}.tar?download=1",
                filename=f"{archive}.tar",
                size=size,
                md5=md5,
                unpack="tar",
                into="ImageNet-C",
                gives=tuple(f"ImageNet-C/{corruption}" for corruption in corruptions),
            )
            for archive, (size, md5, corruptions) in archives.items()
        ),
        is_tree=True,
    )


def _imagenet_c_5k() -> Entry:
    return Entry(
        name="imagenet-c-5k",
        title="ImageNet-C, the 5,000 images of RobustBench in its order",
        licence="the list: RobustBench's; the images: CC BY 4.0, non-commercial research",
        home="https://github.com/RobustBench/robustbench",
        counts={"val": 5_000},
        size=(224, 224),
        splits={
            "val": (Place((_ROBUSTBENCH_LIST, "ImageNet-C/{corruption}/{severity}"), imagenet.read_imagenet_listed),)
        },
        corruptions=_ALL_CORRUPTIONS,
        remotes=(_robustbench_list(),),
        manual="`synaptune data get imagenet-c-5k` fetches the list of ids, `synaptune data get imagenet-c` the images",
        is_tree=True,
    )


def _imagenet_sample() -> Entry:
    return Entry(
        name="imagenet-sample",
        title="ImageNet, one training image for each of the 1,000 classes, 224x224",
        licence="non-commercial research",
        home="https://image-net.org",
        counts={"train": 1_000},
        size=(224, 224),
        splits={"train": (Place(("imagenet_sample/imagenet_sample_224.tar",), imagenet.read_imagenet_tar),)},
        manual="put a tar of WNID/FILE at imagenet_sample/imagenet_sample_224.tar below the data folder",
    )


def _tiny_imagenet() -> Entry:
    folder = "tiny-imagenet-200"
    return Entry(
        name="tiny-imagenet",
        title="Tiny ImageNet: 64x64 photographs in 200 classes",
        licence="non-commercial research (as ImageNet)",
        home="http://cs231n.stanford.edu/",
        counts={"train": 100_000, "val": 10_000},
        size=(64, 64),
        splits={
            "train": (Place((f"{folder}/train",), imagenet.read_tiny_imagenet_train),),
            "val": (Place((f"{folder}/val",), imagenet.read_tiny_imagenet_val),),
        },
        remotes=(
            Remote(
                url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                filename="tiny-imagenet-200.zip",
                size=248_100_043,
                md5="90528d7ca1a48142e341f4ef8d21d0de",
                unpack="zip",
                gives=(f"{folder}/train", f"{folder}/val"),
            ),
        ),
        is_tree=True,
    )


def _tiny_imagenet_c() -> Entry:
    return Entry(
        name="tiny-imagenet-c",
        title="Tiny-ImageNet-C: the Tiny ImageNet validation images under 15 corruptions of 5 severities",
        licence="CC BY 4.0; the images: non-commercial research",
        home=f"{_ZENODO}/8206060",
        counts={"val": 10_000},
        size=(64, 64),
        splits={"val": (Place(("Tiny-ImageNet-C/{corruption}/{severity}",), imagenet.read_tiny_imagenet_c),)},
        corruptions=_ALL_CORRUPTIONS,
        remotes=(
            Remote(
                url=f"{_ZENODO}/8206060/files/Tiny-ImageNet-C.tar?download=1",
                filename="Tiny-ImageNet-C.tar",
                size=1_794_775_040,
                md5="f9c9a9dbdc11469f0b850190f7ad8be1",
                unpack="tar",
                gives=tuple(f"Tiny-ImageNet-C/{corruption}" for corruption in BENCHMARK_CORRUPTIONS),
            ),
        ),
        is_tree=True,
    )


def _svhn() -> Entry:
    home = "http://ufldl.stanford.edu/housenumbers"
    facts = {
        "train": (182_040_794, "e26dedcc434d2e4c54c9b2d4a06d8373"),
        "test": (64_275_384, "eb5a983be6a315427106f1b164d9cef3"),
    }
    folders = ("svhn", "SVHN")
    return Entry(
        name="svhn",
        title="SVHN: 99,289 house numbers of 32x32, cropped to one digit",
        licence="non-commercial use only",
        home=f"{home}/",
        counts={"train": 73_257, "test": 26_032},
        size=(32, 32),
        splits={
            split: tuple(Place((f"{folder}/{split}_32x32.mat",), street_numbers.read_svhn) for folder in folders)
            for split in facts
        },
        classes=class_names.DIGITS,
        remotes=tuple(
            Remote(
                url=f"{home}/{split}_32x32.mat",
                filename=f"{split}_32x32.mat",
                size=size,
                md5=md5,
                into="svhn",
                gives=(f"svhn/{split}_32x32.mat",),
            )
            for split, (size, md5) in facts.items()
        ),
        files=tuple(
            KnownFile(f"{folder}/{split}_32x32.mat", size, md5=md5)
            for folder in folders
            for split, (size, md5) in facts.items()
        ),
    )


def _mnist() -> Entry:
    folder = "MNIST/raw"
    facts = {
        "train-images-idx3-ubyte": (
            (9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            (47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        ),
        "train-labels-idx1-ubyte": (
            (28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
            (60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        ),
        "t10k-images-idx3-ubyte": (
            (1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
            (7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        ),
        "t10k-labels-idx1-ubyte": (
            (4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
            (10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
        ),
    }
    return Entry(
        name="mnist",
        title="MNIST: 70,000 handwritten digits, 28x28 grey",
        licence="CC BY-SA 3.0",
        home="https://yann.lecun.org/exdb/mnist/",
        counts={"train": 60_000, "test": 10_000},
        size=(28, 28),
        splits={
            split: tuple(
                Place(
                    (f"{folder}/{stem}-images-idx3-ubyte{ending}", f"{folder}/{stem}-labels-idx1-ubyte{ending}"),
                    idx.read_mnist,
                )
                for ending in ("", ".gz")
            )
            for split, stem in (("train", "train"), ("test", "t10k"))
        },
        classes=class_names.DIGITS,
        remotes=tuple(
            Remote(
                url=f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz",
                filename=f"{name}.gz",
                size=size,
                md5=md5,
                unpack="gz",
                into=folder,
                gives=(f"{folder}/{name}",),
                mirrors=(f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}.gz",),
            )
            for name, ((size, md5), _) in facts.items()
        ),
        files=(
            *(KnownFile(f"{folder}/{name}", size, sha256=sha256) for name, (_, (size, sha256)) in facts.items()),
            *(KnownFile(f"{folder}/{name}.gz", size, md5=md5) for name, ((size, md5), _) in facts.items()),
        ),
    )


def _usps() -> Entry:
    home = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
    files = {
        "train": ("usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"),
        "test": ("usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"),
    }
    return Entry(
        name="usps",
        title="USPS: 9,298 handwritten digits from envelopes, 16x16 grey",
        licence="none stated; cite Hull 1994",
        home=f"{home}.html#usps",
        counts={"train": 7_291, "test": 2_007},
        size=(16, 16),
        splits={
            split: (
                Place((f"usps/{name}",), postal.read_usps_libsvm),
                Place((f"USPS/{name}",), postal.read_usps_libsvm),
                Place(("usps/usps.h5",), postal.read_usps_hdf5),
            )
            for split, (name, _) in files.items()
        },
        classes=class_names.DIGITS,
        remotes=tuple(
            Remote(url=f"{home}/{name}", filename=name, md5=md5, into="usps", gives=(f"usps/{name}",))
            for name, md5 in files.values()
        ),
        files=tuple(
            KnownFile(f"{folder}/{name}", md5=md5) for folder in ("usps", "USPS") for name, md5 in files.values()
        ),
    )


def _mnist_m() -> Entry:
    splits = ("train", "test")
    return Entry(
        name="mnist-m",
        title="MNIST-M: MNIST digits blended with photographs, 32x32, as released with DANN",
        licence="none stated; cite Ganin et al. 2016 (backgrounds: BSDS500, non-commercial research)",
        home="http://yaroslav.ganin.net/",
        counts={"train": 59_001, "test": 9_001},
        size=(32, 32),
        splits={
            split: (
                Place((f"mnist_m/mnist_m_{split}.tar",), listed_files.read_mnist_m_tar),
                Place(
                    (f"mnist_m/mnist_m_{split}", f"mnist_m/mnist_m_{split}_labels.txt"),
                    listed_files.read_mnist_m_folder,
                ),
            )
            for split in splits
        },
        classes=class_names.DIGITS,
        remotes=(
            Remote(
                url="https://drive.usercontent.google.com/download?id=0B_tExHiYS-0veklUZHFYT19KYjg&confirm=t",
                filename="mnist_m.tar.gz",
                md5="859df31c91afe82e80e5012ba928f279",
                unpack="tar",
                gives=tuple(
                    path
                    for split in splits
                    for path in (f"mnist_m/mnist_m_{split}", f"mnist_m/mnist_m_{split}_labels.txt")
                ),
                mirrors=("https://cornell.box.com/shared/static/jado7quprg6hzzdubvwzh9umr75damwi",),
            ),
        ),
    )


_ENTRIES: dict[str, Entry] = {}


def register(entry: Entry) -> Entry:
    """Add a data set under its own name; a name that is taken is refused."""
    if entry.name in _ENTRIES:
        raise OptionError(f"a data set named {entry.name!r} is registered already")
    _ENTRIES[entry.name] = entry
    return entry


def entries() -> tuple[Entry, ...]:
    """All data sets, in the order of the catalogue."""
    return tuple(_ENTRIES.values())


def entry_named(name: str | Entry) -> Entry:
    """Look up one data set; an entry stands for itself, registered or not.

    >>> entry_named("cifar10").counts["test"]
    10000
    """
    if isinstance(name, Entry):
        return name
    try:
        return _ENTRIES[name]
    except KeyError:
        raise UnknownNameError("data set", name, _ENTRIES) from None


for _make in (
    _cifar10,
    _cifar100,
    _cifar10_c,
    _cifar100_c,
    _imagenet,
    _imagenet_5k,
    _imagenet_c,
    _imagenet_c_5k,
    _imagenet_sample,
    _tiny_imagenet,
    _tiny_imagenet_c,
    _svhn,
    _mnist,
    _usps,
    _mnist_m,
):
    register(_make())
