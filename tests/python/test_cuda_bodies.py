"""CUDA bodies compiled ahead for NVIDIA's GPUs by NVRTC, which needs no GPU."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import bodies
import kiln
import numpy as np
import pytest
from kiln import _core
from sampling import sampled

BODIES = {body.name: body for body in bodies.all_cuda_bodies()}
TESTS = Path(__file__).parent.parent


def kernel_of(body):
    return kiln.cuda_kernel(
        name=body.name,
        input_names=list(body.inputs()),
        output_names=list(body.outputs),
        source=body.source,
        header=body.header,
        ensure_row_contiguous=body.ensure_row_contiguous,
        shared_memory=body.shared_memory,
        compile_options=dict(body.compile_options),
    )


def compile_for(architecture, kernel, inputs, outputs, template=()):
    """What the call compiles, without a GPU: where from, why not stored, and the entry. `outputs`: shape and dtype."""
    _, compiler, _, _, content = _core.compile_ahead(
        kernel=kernel,
        inputs=[
            (a.dtype.name, list(a.shape), [stride // a.itemsize for stride in a.strides])
            for a in map(np.asarray, inputs.values())
        ],
        outputs=[(dtype, list(shape)) for shape, dtype in outputs.values()],
        template=[(name, str(value) if isinstance(value, str) else value) for name, value in template],
        input_names=[],
        output_names=[],
        specialized=False,
        architecture=architecture,
    )
    assert compiler.startswith("NVRTC ")
    return content


def compile_body(source, architecture="sm_90", **options):
    kernel = kiln.cuda_kernel(name="body", input_names=["x"], output_names=["y"], source=source, **options)
    return compile_for(architecture, kernel, {"x": np.zeros(8, np.float32)}, {"y": ((8,), "float32")})


def in_process(script, **environment):
    """What a script prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", sampled(BODIES, every=2, group=lambda name: BODIES[name].subject))
def test_body_compiles(name, tmp_path):
    check_compiled(name, "sm_90", tmp_path)


@pytest.mark.parametrize("name", sampled(BODIES, every=8, group=lambda name: BODIES[name].subject))
def test_body_compiles_for_older_gpus(name, tmp_path):
    check_compiled(name, "sm_80", tmp_path)


def check_compiled(name, architecture, tmp_path):
    body = BODIES[name]
    if "#include" in body.header + body.source:
        # NVRTC brings CUDA's headers, and they are kept in the folder of the cache.
        script = f"""
            from test_cuda_bodies import BODIES, compile_for, kernel_of
            body = BODIES[{name!r}]
            content = compile_for({architecture!r}, kernel_of(body), body.inputs(), body.outputs, body.template)
            assert b"\\x7fELF" in content and b"with CUDA's headers" in content
        """
        in_process(script, KILN_CACHE="on", KILN_CACHE_DIR=str(tmp_path))
        return
    content = compile_for(architecture, kernel_of(body), body.inputs(), body.outputs, body.template)
    assert b"\x7fELF" in content  # machine code
    assert b"with CUDA's headers" not in content
    assert b"custom_kernel_" + name.encode() in content


@pytest.mark.parametrize("name", BODIES)
def test_reference_is_of_its_dtype(name):
    BODIES[name].expected()


def test_errors_are_in_the_callers_lines():
    with pytest.raises(kiln.CompileError) as raised:
        compile_body("int i = threadIdx.x;\ny[i] = x[j];")
    assert str(raised.value) == (
        "[cuda_kernel] `body` does not compile.\n"
        'source:2:10: error: identifier "j" is undefined\n'
        "  y[i] = x[j];\n"
        "           ^"
    )
    (diagnostic,) = [d for d in raised.value.diagnostics if d.severity == "error"]
    assert (diagnostic.text, diagnostic.line, diagnostic.column) == ("source", 2, 10)
    assert "kernel.cu(" in raised.value.log
    assert "__global__ void" in raised.value.generated_source


def test_guards_are_refused():
    with pytest.raises(kiln.UnsupportedError) as raised:
        compile_body("y[0] = x[0];", compile_options={"bounds": "on"})
    assert str(raised.value) == (
        "[cuda_kernel] `body`: `bounds` is on, but CUDA bodies have no guards on an NVIDIA GPU."
    )
    compile_body("y[0] = x[0];", compile_options={"bounds": "off"})


def test_a_gpu_that_is_too_old_is_refused():
    with pytest.raises(ValueError) as raised:
        compile_body("y[0] = x[0];", "sm_30")
    assert str(raised.value) == (
        "Expected an architecture to be x86-64, x86-64-v2, x86-64-v3, x86-64-v4, or that of an NVIDIA GPU from sm_80 on, "
        "but got `sm_30`."
    )


@pytest.mark.parametrize(
    ("source", "header"),
    [
        ("y[threadIdx.x] = __half2float(__float2half(x[threadIdx.x]));", "#include <cuda_fp16.h>"),
        ("y[threadIdx.x] = __bfloat162float(x[threadIdx.x]);", "#include <cuda_bf16.h>"),
        # A name that Kiln's declarations lack.
        ("auto grid = cooperative_groups::this_grid(); y[threadIdx.x] = grid.is_valid();", ""),
    ],
)
def test_cudas_headers_serve_where_a_body_needs_them(source, header, tmp_path):
    # NVRTC brings them, and they are kept in the folder of the cache.
    script = f"""
        from test_cuda_bodies import compile_body
        assert b"with CUDA's headers" in compile_body({source!r}, header={header!r})
    """
    in_process(script, KILN_CACHE="on", KILN_CACHE_DIR=str(tmp_path))


def test_a_missing_library_is_named(tmp_path):
    printed = in_process(
        """
        import kiln
        from test_cuda_bodies import compile_body
        try:
            compile_body("y[0] = x[0];")
        except kiln.UnsupportedError as error:
            print(error)
        """,
        KILN_NVRTC=str(tmp_path / "none.so"),
    )
    assert printed == (
        f"NVRTC, which compiles CUDA bodies, cannot be used: {tmp_path}/none.so: cannot open shared object file: "
        "No such file or directory. KILN_NVRTC names that file.\n"
    )


def test_code_is_found_on_disk_without_opening_nvrtc(tmp_path):
    script = """
        from test_cuda_bodies import compile_body
        compile_body("y[0] = x[0];")
        print("opened" if "libnvrtc" in open("/proc/self/maps").read() else "not opened")
    """
    kept = {"KILN_CACHE": "on", "KILN_CACHE_DIR": str(tmp_path)}
    assert [in_process(script, **kept) for _ in range(2)] == ["opened\n", "not opened\n"]
