"""Settings for all tests."""

from __future__ import annotations

import torch

# Tiny tensors gain nothing from threads and lose much where several test processes share the cores.
torch.set_num_threads(1)
