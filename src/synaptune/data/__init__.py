"""Data sets: found on disk, fetched from their published homes, made here, or bundled with the package.

```python
from synaptune import data

test = data.load("cifar10")                       # uint8 images, labels, classes, a printable recipe
foggy = data.corrupted(test, "fog", 5)            # the same images under a shift, cached on disk
data.get("cifar10-c", progress=print)             # download, check, unpack, move into place
mine = data.read_images("~/photos", size=224)     # any folder; mine.report says what was skipped
```
"""

from synaptune.data.bundled import sample as sample
from synaptune.data.catalogue import BENCHMARK_CORRUPTIONS as BENCHMARK_CORRUPTIONS
from synaptune.data.catalogue import EXTRA_CORRUPTIONS as EXTRA_CORRUPTIONS
from synaptune.data.catalogue import entries as entries
from synaptune.data.catalogue import register as register
from synaptune.data.corrupted import Corruption as Corruption
from synaptune.data.corrupted import NamedCorruption as NamedCorruption
from synaptune.data.corrupted import corrupted as corrupted
from synaptune.data.dataset import UNLABELLED as UNLABELLED
from synaptune.data.dataset import DataSet as DataSet
from synaptune.data.digits import as_digits as as_digits
from synaptune.data.download import Policy as Policy
from synaptune.data.entry import Entry as Entry
from synaptune.data.entry import KnownFile as KnownFile
from synaptune.data.entry import Place as Place
from synaptune.data.entry import Remote as Remote
from synaptune.data.folder import read_images as read_images
from synaptune.data.holdings import Holding as Holding
from synaptune.data.holdings import Verification as Verification
from synaptune.data.holdings import listing as listing
from synaptune.data.holdings import verify as verify
from synaptune.data.images import Images as Images
from synaptune.data.images import LazyImages as LazyImages
from synaptune.data.loading import load as load
from synaptune.data.locate import data_root as data_root
from synaptune.data.locate import shared_root as shared_root
from synaptune.data.made import remove_made as remove_made
from synaptune.data.obtain import get as get
from synaptune.data.progress import Progress as Progress
from synaptune.data.receipt import Receipt as Receipt
from synaptune.data.recipe import Recipe as Recipe
from synaptune.data.report import ReadReport as ReadReport
