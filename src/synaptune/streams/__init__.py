"""Test streams: in which order, at which pace and under which conditions a method meets its images.

```python
from synaptune import data, streams

domains = streams.made(data.load("cifar10"), severities=5)       # the 15 corruptions, made when they are reached
for batch in streams.one_by_one(domains, batch=128):             # .images, .index, .domain, .reset; no labels
    ...
```
"""

from synaptune.streams.arrangement import Arrangement as Arrangement
from synaptune.streams.arrangement import Correlated as Correlated
from synaptune.streams.arrangement import InOrder as InOrder
from synaptune.streams.arrangement import LabelShift as LabelShift
from synaptune.streams.arrangement import Shuffled as Shuffled
from synaptune.streams.clock import Clock as Clock
from synaptune.streams.clock import Ticking as Ticking
from synaptune.streams.clock import Waiting as Waiting
from synaptune.streams.domain import Domain as Domain
from synaptune.streams.domain import made as made
from synaptune.streams.domain import published as published
from synaptune.streams.kinds import correlated as correlated
from synaptune.streams.kinds import gradual as gradual
from synaptune.streams.kinds import iid as iid
from synaptune.streams.kinds import label_shift as label_shift
from synaptune.streams.kinds import mixed as mixed
from synaptune.streams.kinds import one_by_one as one_by_one
from synaptune.streams.kinds import recurring as recurring
from synaptune.streams.labels import LabelSource as LabelSource
from synaptune.streams.playback import Batch as Batch
from synaptune.streams.playback import Playback as Playback
from synaptune.streams.schedule import Schedule as Schedule
from synaptune.streams.schedule import Visit as Visit
from synaptune.streams.stream import Stream as Stream
