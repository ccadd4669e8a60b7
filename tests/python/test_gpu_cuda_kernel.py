"""Bodies in CUDA on a GPU, with PyTorch's tensors: what the target adds to them at a launch."""

import kiln
import pytest
from gpu import needs_gpu

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = needs_gpu


@pytest.fixture(autouse=True)
def first_gpu():
    torch.cuda.set_device(0)  # where JAX was opened, which leaves the last one current


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x; "


def run(source, x, *, header="", shared_memory=0, make=None, **changes):
    kernel = kiln.cuda_kernel("k", ["x"], ["y"], source, header=header, shared_memory=shared_memory, **(make or {}))
    keywords = {
        "inputs": [x],
        "grid": (x.numel(), 1, 1),
        "threadgroup": (256, 1, 1),
        "output_shapes": [tuple(x.shape)],
        "output_dtypes": [x.dtype],
    }
    return kernel(**{**keywords, **changes})[0]


def test_whole_threadgroups_run():
    x = torch.zeros(1000, device="cuda")
    y = run(INDEX + "if (i < 1024) y[i] = blockDim.x * gridDim.x;", x, output_shapes=[(1024,)])
    assert bool((y == 1024).all())
    # Clamped to the grid.
    y = run(INDEX + "y[i] = blockDim.x;", x[:100])
    assert bool((y == 100).all())


def test_shapes_strides_and_dimensions():
    x = torch.arange(600, dtype=torch.float32, device="cuda").view(20, 30)
    y = run(
        INDEX + "if (i < x_shape[0] * x_shape[1]) "
        "y[i] = x[i / x_shape[1] * x_strides[0] + i % x_shape[1] * x_strides[1]] + x_ndim;",
        x.T,
        make={"ensure_row_contiguous": False},
    )
    assert torch.equal(y, x.T + 2)


@pytest.mark.parametrize("bytes_of_memory", [1024, 200_000])
def test_dynamic_shared_memory(bytes_of_memory):
    n = bytes_of_memory // 4
    x = torch.arange(n, dtype=torch.float32, device="cuda")
    y = run(
        f"extern __shared__ float t[]; for (int k = threadIdx.x; k < {n}; k += blockDim.x) t[k] = x[k];"
        f"__syncthreads(); for (int k = threadIdx.x; k < {n}; k += blockDim.x) y[k] = t[{n} - 1 - k];",
        x,
        shared_memory=bytes_of_memory,
        grid=(256, 1, 1),
    )
    assert torch.equal(y, x.flip(0))


def test_too_much_shared_memory():
    with pytest.raises(ValueError, match=r"Expected `shared_memory` to be at most \d+ for `k` on nvidia:0"):
        run("y[0] = x[0];", torch.zeros(8, device="cuda"), shared_memory=1 << 20)


def test_too_deep_threadgroups():
    with pytest.raises(ValueError, match="Expected `threadgroup` to have at most 64 threads in z on nvidia:0"):
        run("y[0] = x[0];", torch.zeros(8, device="cuda"), grid=(1, 1, 65), threadgroup=(1, 1, 65))


def test_guards_are_refused():
    with pytest.raises(kiln.UnsupportedError, match="`bounds` is on, but CUDA bodies have no guards"):
        run("y[0] = x[0];", torch.zeros(8, device="cuda"), make={"compile_options": {"bounds": "on"}})


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.uint8, torch.complex64]
)
def test_dtypes(dtype):
    x = torch.arange(300, device="cuda").remainder(50).to(dtype)
    y = run(INDEX + "if (i < x_shape[0]) y[i] = T(x[i] + x[i]);", x, template=[("T", dtype)])
    assert torch.equal(y, x + x)


def test_double_in_and_numbers():
    kernel = kiln.cuda_kernel("k", ["x", "f", "n"], ["y"], INDEX + "if (i < x_shape[0]) y[i] = x[i] * f[0] + n[0];")
    x = torch.rand(500, dtype=torch.float64, device="cuda")
    (y,) = kernel(
        inputs=[x, 0.5, 2**40],
        output_shapes=[(500,)],
        output_dtypes=["float64"],
        grid=(500, 1, 1),
        threadgroup=(128, 1, 1),
    )
    assert torch.equal(y, x * 0.5 + 2**40)


def test_cooperative_groups():
    x = torch.arange(64, dtype=torch.float32, device="cuda")
    y = run(
        "auto warp = cg::tiled_partition<32>(cg::this_thread_block());" + INDEX + "float s = x[i];"
        "for (int d = 16; d > 0; d /= 2) s += warp.shfl_xor(s, d); y[i] = s;",
        x,
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
    )
    assert torch.equal(y, x.view(2, 32).sum(1, keepdim=True).expand(2, 32).reshape(64))


def test_errors_name_the_callers_line():
    with pytest.raises(kiln.CompileError) as error:
        run("int a = 1;\ny[0] = b;", torch.zeros(8, device="cuda"))
    assert "source:2:" in str(error.value)
