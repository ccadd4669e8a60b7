"""Kernels on PyTorch's tensors on a GPU: streams, graphs, memory, errors, several GPUs, threads."""

import subprocess
import sys
import threading
from typing import Any

import kiln
import pytest
from gpu import needs_gpu, needs_two_gpus

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = needs_gpu

INDEX = "uint i = thread_position_in_grid.x; "


def make(source, inputs=("x",), outputs=("y",), **options):
    return kiln.metal_kernel("k", list(inputs), list(outputs), INDEX + source, **options)


@pytest.fixture(autouse=True)
def first_gpu():
    torch.cuda.set_device(0)  # where JAX was opened, which leaves the last one current


DOUBLE = make("y[i] = 2 * x[i];")
# Long enough to be still running when the next thing is asked for.
SLOW = make(
    "uint n = i; for (int k = 0; k < 20000000; ++k) n = n * 1664525u + 1013904223u; y[i] = n == 7 ? 0 : x[i] + 1;"
)


def call(kernel, x, **changes):
    keywords = {
        "inputs": [x],
        "grid": (x.numel(), 1, 1),
        "threadgroup": (256, 1, 1),
        "output_shapes": [tuple(x.shape)],
        "output_dtypes": [x.dtype],
    }
    if "outputs" in changes:
        del keywords["output_shapes"], keywords["output_dtypes"]
    return kernel(**{**keywords, **changes})[0]


def numbers(n, device="cuda"):
    return torch.arange(n, dtype=torch.float32, device=device)


def test_result_is_a_tensor_of_the_same_device():
    x = numbers(1000)
    y = call(DOUBLE, x)
    assert (type(y), y.device, y.dtype, y.shape) == (torch.Tensor, x.device, x.dtype, x.shape)
    assert torch.equal(y, 2 * x)
    launch = DOUBLE.history[-1]
    assert launch.target == f"nvidia:{x.device.index}"


def test_machine_code_is_described():
    compiled = DOUBLE.compile(
        inputs=[numbers(8)], grid=(8, 1, 1), threadgroup=(8, 1, 1), output_shapes=[(8,)], output_dtypes=["float32"]
    )
    assert compiled.target == "nvidia:0"
    assert compiled.architecture.startswith("sm_")
    assert compiled.machine_code[:4] == b"\x7fELF"
    assert ".entry" in compiled.stages()["ptx"]


def test_dtypes():
    kernel = make("y[i] = x[i];")
    for dtype in (
        *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
        *(torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.complex64),
    ):
        x = torch.arange(300, device="cuda").remainder(2 if dtype == torch.bool else 100).to(dtype)
        assert torch.equal(call(kernel, x).view(torch.uint8), x.view(torch.uint8)), dtype


def test_numbers_among_the_inputs():
    kernel = make("y[i] = x[i] * f + n + float(b) + c.imag;", inputs=("x", "f", "n", "b", "c"))
    x = numbers(300)
    for f in (0.5, -3.25):
        y = call(kernel, x, inputs=[x, f, 2**40, True, 1 + 8j])
        assert torch.equal(y, x * f + float(2**40) + 1 + 8)


def test_views():
    matrix = numbers(64 * 48).view(64, 48)
    copy = make("y[i] = x[i];")
    by_strides = make("y[i] = x[elem_to_loc(i, x_shape, x_strides, x_ndim)];", ensure_row_contiguous=False)
    for view in (matrix.T, matrix[::2, 3:], matrix[5], torch.ones(1, device="cuda").expand(7, 9), matrix[:, :0]):
        for kernel in (copy, by_strides):
            assert torch.equal(call(kernel, view), view)


def test_conjugate_and_negative_views():
    z = torch.complex(numbers(50), numbers(50) + 1)
    copy = make("y[i] = x[i];")
    assert torch.equal(call(copy, z.conj()), z.conj().resolve_conj())
    imaginary = z.conj().imag
    assert torch.equal(call(copy, imaginary), imaginary.resolve_neg())


def test_init_value():
    kernel = make("if (i == 1) y[1] = 5;", inputs=())
    for dtype, value in (
        *((torch.float32, 2.5), (torch.float16, 2.5), (torch.bfloat16, 2.5), (torch.uint8, 7), (torch.bool, 1)),
        *((torch.int64, -1), (torch.int64, 7), (torch.complex64, 2.5)),
    ):
        outputs = [torch.zeros(1001, dtype=dtype, device="cuda")]
        kernel(inputs=[], grid=(4, 1, 1), threadgroup=(4, 1, 1), init_value=value, outputs=outputs)
        expected = torch.full((1001,), value, dtype=dtype)
        expected[1] = 5
        assert torch.equal(outputs[0].cpu(), expected), dtype


def test_without_threads_outputs_are_filled():
    y = call(DOUBLE, numbers(10), grid=(0, 1, 1), init_value=3)
    assert torch.equal(y.cpu(), torch.full((10,), 3.0))


# ---- Outputs that the caller gives


def test_given_outputs_are_written_and_returned():
    x = numbers(1000)
    y = torch.empty_like(x)
    result = call(DOUBLE, x, outputs=[y])
    assert result is y
    assert torch.equal(y, 2 * x)


def test_given_outputs_are_not_written_beside():
    memory = torch.full((3000,), 7.0, device="cuda")
    kernel = make("y[int(i) - 1000] = 1; y[i] = x[i]; y[i + 1000] = 1;")
    x = numbers(1000)
    call(kernel, x, outputs=[memory[1000:2000]])
    assert torch.equal(memory[1000:2000], x)
    assert bool((memory[:1000] == 7).all()) and bool((memory[2000:] == 7).all())


def test_all_arrays_are_on_one_device():
    with pytest.raises(ValueError) as error:
        call(make("y[i] = x[i] + z[i];", inputs=("x", "z")), numbers(8), inputs=[numbers(8), numbers(8, "cpu")])
    assert str(error.value) == (
        "[metal_kernel] Expected all arrays of a call to be on one device but got `x` on cuda:0 and `z` on cpu."
    )


# ---- Streams


def test_calls_within_a_call(monkeypatch):
    kernel = make("y[i] = x[i] + 1;")
    x = numbers(256)

    class Output:
        def write(self, text):
            for n in range(1, 9):
                for _ in range(3):
                    call(kernel, x[: 16 * n])
            return len(text)

        def flush(self):
            pass

    for _ in range(3):
        call(kernel, x)
    monkeypatch.setattr("sys.stdout", Output())
    y = call(kernel, x, verbose=True)
    monkeypatch.undo()
    assert torch.equal(y, x + 1)


def test_an_input_is_no_output():
    scalar = torch.zeros((), device="cuda")
    kernel = kiln.metal_kernel("k", ["a"], ["b", "c"], "b[0] = c[0] = a + 1;")
    grid: dict[str, Any] = {"grid": (1, 1, 1), "threadgroup": (1, 1, 1)}
    for _ in range(3):
        b, c = kernel(inputs=[scalar], output_shapes=[(), ()], output_dtypes=["float32"] * 2, **grid)
        assert (b.item(), c.item()) == (1, 1)
    with pytest.raises(ValueError, match="Expected `inputs` to have size 1 but got size 2"):
        kernel(inputs=[scalar, scalar], output_shapes=[()], output_dtypes=["float32"], **grid)


def test_runs_on_the_current_stream():
    x = numbers(1 << 16)
    call(DOUBLE, call(SLOW, x))  # nothing is compiled below
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        y = call(SLOW, x)
        assert not stream.query()  # it did not wait
        z = call(DOUBLE, y)
    assert not stream.query()
    stream.synchronize()
    assert torch.equal(z, 2 * (x + 1))


def test_runs_on_a_given_stream():
    x = numbers(1 << 16)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    for given in (stream, stream.cuda_stream):
        y = call(SLOW, x, stream=given)
        assert not stream.query()
        assert torch.cuda.current_stream() != stream
        torch.cuda.current_stream().wait_stream(stream)
        assert torch.equal(y, x + 1)


def test_memory_of_inputs_is_not_given_away_too_early():
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    results = []
    for n in range(20):
        x = torch.full((1 << 16,), float(n), device="cuda")
        torch.cuda.synchronize()
        results.append(call(SLOW, x, stream=stream))
        del x
        torch.full((1 << 16,), -100.0, device="cuda")  # takes the memory if it may
    torch.cuda.synchronize()
    for n, y in enumerate(results):
        assert bool((y == n + 1).all())


def test_refuses_what_is_no_stream():
    for stream in ("main", 2.5, True):
        with pytest.raises(TypeError, match=r"Expected `stream` to be a torch\.cuda\.Stream or an int but got"):
            call(DOUBLE, numbers(8), stream=stream)


# ---- Graphs


def test_launches_can_be_captured():
    x = numbers(1000)
    y = torch.empty_like(x)
    kernel = make("y[i] = x[i] * f + 1;", inputs=("x", "f"))
    graph = torch.cuda.CUDAGraph()
    call(kernel, x, inputs=[x, 3.0], outputs=[y])
    with torch.cuda.graph(graph):
        call(kernel, x, inputs=[x, 4.0], outputs=[y])
        z = call(DOUBLE, y, init_value=1)
    for n in range(3):
        x.fill_(n)
        graph.replay()
        assert torch.equal(y, x * 4 + 1)
        assert torch.equal(z, y * 2)


def test_code_can_be_compiled_while_a_graph_is_captured():
    x = numbers(1000)
    y = torch.empty_like(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call(make("y[i] = x[i] * 17 + x_shape[0];"), x, outputs=[y])
    x.fill_(2)
    graph.replay()
    assert torch.equal(y, x * 17 + 1000)


# ---- Threads


def test_threads_on_streams_of_their_own():
    problems: list[Any] = []

    def work(number):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                x = torch.full((4096,), float(number), device="cuda")
                kernel = DOUBLE
                for round in range(50):
                    kernel = make(f"y[i] = x[i] + {number * 1000 + round};") if round % 10 == 0 else kernel
                    y = call(kernel, x)
                    added = number * 1000 + round // 10 * 10
                    if not bool((y == number + added).all()):
                        problems.append((number, round))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


# ---- Several GPUs


@needs_two_gpus
def test_each_gpu_runs_what_is_there():
    for index in (0, 1, 0, 1):
        x = numbers(1000, f"cuda:{index}")
        y = call(DOUBLE, x)
        assert y.device.index == index
        assert torch.equal(y, 2 * x)
        assert DOUBLE.history[-1].target == f"nvidia:{index}"
    assert torch.cuda.current_device() == 0


@needs_two_gpus
def test_arrays_of_two_gpus_are_refused():
    with pytest.raises(ValueError, match="`x` on cuda:0 and `z` on cuda:1"):
        call(make("y[i] = x[i] + z[i];", inputs=("x", "z")), numbers(8), inputs=[numbers(8), numbers(8, "cuda:1")])


@needs_two_gpus
def test_streams_of_another_gpu_are_refused():
    with pytest.raises(ValueError, match=r"Expected `stream` to be one of cuda:0, .* but got one of cuda:1"):
        call(DOUBLE, numbers(8), stream=torch.cuda.Stream(1))


# ---- Limits and failures


def test_more_threadgroups_than_the_hardware_counts_in_y():
    kernel = kiln.metal_kernel(
        "k",
        [],
        ["y"],
        "uint3 p = thread_position_in_grid; y[p.y * 3 + p.x] = p.y * 10 + p.x + threadgroups_per_grid.y;",
    )
    rows = 70000
    (y,) = kernel(
        inputs=[],
        outputs=[torch.empty((rows, 3), dtype=torch.int64, device="cuda")],
        grid=(3, rows, 1),
        threadgroup=(2, 1, 1),
    )
    expected = torch.arange(rows)[:, None] * 10 + torch.arange(3) + rows
    assert torch.equal(y.cpu(), expected)


def test_deep_threadgroups():
    kernel = kiln.metal_kernel("k", [], ["y"], "uint3 p = thread_position_in_threadgroup; y[p.z] = p.z + 1;")
    y = torch.empty(1000, dtype=torch.int32, device="cuda")
    kernel(inputs=[], outputs=[y], grid=(1, 1, 1000), threadgroup=(1, 1, 1000))
    assert torch.equal(y.cpu(), torch.arange(1, 1001, dtype=torch.int32))


def test_threadgroup_memory_beyond_48_kilobytes():
    n = 40000
    kernel = kiln.metal_kernel(
        "k",
        ["x"],
        ["y"],
        f"""
        threadgroup float t[{n}];
        uint l = thread_index_in_threadgroup;
        for (uint k = l; k < {n}; k += 1024) t[k] = x[k];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = l; k < {n}; k += 1024) y[k] = t[{n} - 1 - k];
        """,
    )
    x = numbers(n)
    y = call(kernel, x, grid=(1024, 1, 1), threadgroup=(1024, 1, 1))
    assert torch.equal(y, x.flip(0))
    with pytest.raises(kiln.UnsupportedError, match="bytes of threadgroup memory, and"):
        call(make("threadgroup float t[100000]; t[i] = x[i]; y[i] = t[i + 1];"), x)


def test_memory_that_is_not_there():
    free, _ = torch.cuda.mem_get_info()
    with pytest.raises((MemoryError, torch.OutOfMemoryError)):
        call(DOUBLE, numbers(8), output_shapes=[(free,)], grid=(1, 1, 1))
    x = numbers(8)
    assert torch.equal(call(DOUBLE, x), 2 * x)


def in_process(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_lost_context_is_said_by_every_later_launch():
    # Without guards, and far outside.
    lines = in_process("""
import kiln, torch
options = {"bounds": "off"}
bad = kiln.metal_kernel("bad", ["x"], ["y"], "y[0] = x[1ul << 45];", compile_options=options)
good = kiln.metal_kernel("good", ["x"], ["y"], "y[0] = x[0];")
x = torch.zeros(8, device="cuda")
call = dict(inputs=[x], outputs=[torch.zeros(1, device="cuda")], grid=(1, 1, 1), threadgroup=(1, 1, 1))
good(**call)
torch.cuda.synchronize()
bad(**call)
try:
    torch.cuda.synchronize()
except Exception as error:
    print("synchronize", type(error).__name__)
for attempt in range(2):
    try:
        good(**call)
    except kiln.DeviceError as error:
        print(error)
""").splitlines()
    assert lines[0].startswith("synchronize ")
    assert len(lines) == 3
    assert lines[1].startswith(
        "kernel `good` on nvidia:0 with (1, 1, 1) threadgroups of (1, 1, 1) threads and 0 bytes of"
    )
    for line in lines[1:]:
        assert "the context of nvidia:0 is lost" in line
        assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in line


def test_a_forked_process_is_told():
    out = in_process("""
import os, kiln, torch
k = kiln.metal_kernel("k", ["x"], ["y"], "y[0] = x[0];")
x = torch.zeros(8, device="cuda")
call = dict(inputs=[x], outputs=[torch.zeros(1, device="cuda")], grid=(1, 1, 1), threadgroup=(1, 1, 1))
k(**call)
torch.cuda.synchronize()
child = os.fork()
if child == 0:
    try:
        k(**call)
    except kiln.DeviceError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
""")
    assert out.startswith("this process was forked from one that had used the GPU, and CUDA does not work in such a")


def test_nothing_of_cuda_is_touched_without_a_gpu_array():
    out = in_process("""
import kiln, numpy as np
k = kiln.metal_kernel("k", ["x"], ["y"], "y[0] = x[0];")
k(inputs=[np.zeros(8, np.float32)], output_shapes=[(1,)], output_dtypes=["float32"], grid=(1, 1, 1),
  threadgroup=(1, 1, 1))
print("libcuda" in open("/proc/self/maps").read())
""")
    assert out == "False\n"


# ---- The cache on disk keeps machine code


def test_code_on_disk_serves_the_next_process(tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_CACHE", "on")
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path))
    script = """
import kiln, torch
k = kiln.metal_kernel("k", ["x"], ["y"], "y[0] = x[0] + 1;")
x = torch.zeros(8, device="cuda")
k(inputs=[x], output_shapes=[(1,)], output_dtypes=["float32"], grid=(1, 1, 1), threadgroup=(1, 1, 1))
print(k.history[0].code)
"""
    assert in_process(script) == "compiled\n"
    assert in_process(script) == "disk\n"


def test_large_arrays():
    free, _ = torch.cuda.mem_get_info()
    n = (1 << 31) + 1000
    if free < 3 * n:
        pytest.skip("the GPU's memory is too small")
    x = torch.arange(n, dtype=torch.int64, device="cuda").to(torch.uint8)
    kernel = kiln.metal_kernel(
        "k",
        ["x"],
        ["y"],
        "uint64_t i = thread_position_in_grid.x + uint64_t(thread_position_in_grid.y) * threads_per_grid.x; "
        "y[i] = x[i] + 1;",
    )
    (y,) = kernel(inputs=[x], outputs=[torch.empty_like(x)], grid=(1 << 16, (n >> 16) + 1, 1), threadgroup=(256, 1, 1))
    assert torch.equal(y, x + 1)
