"""What tests on NVIDIA's GPUs share."""

import kiln
import pytest
from kiln import _core


def count():
    """How many GPUs this process may use."""
    try:
        return len(_core.nvidia_status()["gpus"])
    except kiln.DeviceError:
        return 0


needs_gpu = pytest.mark.skipif(count() < 1, reason="no NVIDIA GPU")
needs_two_gpus = pytest.mark.skipif(count() < 2, reason="no two NVIDIA GPUs")
