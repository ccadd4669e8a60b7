"""`rsqrt` in math modes other than safe on a GPU: as test_approximations.py has it on the CPU."""

import pytest
from approximate_roots import MODES, arguments, check, kernel_of
from gpu import needs_gpu

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = needs_gpu


@pytest.mark.parametrize("mode", MODES)
def test_rsqrt_is_within_two_units(mode):
    x = torch.from_numpy(arguments()).cuda()
    (result,) = kernel_of(mode)(
        inputs=[x],
        output_shapes=[(5, x.numel())],
        output_dtypes=[torch.float32],
        grid=(x.numel(), 1, 1),
        threadgroup=(256, 1, 1),
    )
    check(mode, result.cpu().numpy())
