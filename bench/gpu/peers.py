"""The text of a Metal body as a CUDA kernel for NVRTC: ``metal_for_nvrtc.h`` before it, the address spaces of its
variables written as CUDA's, and around it a kernel that declares what Metal gives to a body. Shapes are constants, as in
Kiln's code, and arrays are ``__restrict__``: an expert would write both."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HEADER = Path(__file__).with_name("metal_for_nvrtc.h")

TYPES = {
    **{"float32": "float", "float16": "half", "bfloat16": "bfloat", "bool": "bool"},
    **{f"int{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}

# What a body may name of a thread; `T` is its position in the threadgroup, `S` the threadgroup's size.
_ATTRIBUTES = {
    "thread_position_in_grid": "uint3({P}.x, {P}.y, {P}.z)",
    "thread_position_in_threadgroup": "uint3(threadIdx.x, threadIdx.y, threadIdx.z)",
    "threadgroup_position_in_grid": "uint3(blockIdx.x, blockIdx.y, blockIdx.z)",
    "threads_per_grid": "uint3(kiln_grid.x, kiln_grid.y, kiln_grid.z)",
    "threads_per_threadgroup": "uint3(blockDim.x, blockDim.y, blockDim.z)",
    "threadgroups_per_grid": "uint3(gridDim.x, gridDim.y, gridDim.z)",
    "thread_index_in_threadgroup": "uint({L})",
    "thread_index_in_simdgroup": "uint({L} % 32)",
    "simdgroup_index_in_threadgroup": "uint({L} / 32)",
    "simdgroups_per_threadgroup": "uint((blockDim.x * blockDim.y * blockDim.z + 31) / 32)",
    "threads_per_simdgroup": "32u",
    "thread_index_in_quadgroup": "uint({L} % 4)",
    "dispatch_threads_per_threadgroup": "uint3(blockDim.x, blockDim.y, blockDim.z)",
}
_LINEAR = "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"


def _in_cuda(text: str) -> str:
    """Address spaces of declarations, literals and pragmas."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"\bthreadgroup\b(?=\s+[\w:<>, ]+?[\s>]\s*\w+\s*(\[|;|,))", "__shared__", text)
    text = re.sub(r"\b(?:threadgroup|device|thread)\b", "", text)
    text = re.sub(r"\bconstant\b(?=\s+(?:constexpr\s+)?[\w:<>, ]+?\s\w+\s*\[)", "__constant__ const", text)
    text = re.sub(r"\bconstant\b(?=\s+(?:constexpr\s+)?[\w:<>, ]+?\s\w+\s*=)", "static constexpr", text)
    text = re.sub(r"\bconstant\b", "", text)
    text = re.sub(
        r"\bstatic (?=__constant__|static)|(?<=__constant__ const) static|(?<=static constexpr) static", "", text
    )
    text = text.replace("__constant__ const constexpr", "__constant__ const").replace(
        "constexpr constexpr", "constexpr"
    )
    text = text.replace("constexpr static constexpr", "static constexpr")
    text = re.sub(r"(?<![\w.])((?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)[hH]\b", r"half(\1f)", text)
    text = re.sub(r"#pragma clang loop unroll\((?:full|enable)\)", "#pragma unroll", text)
    text = re.sub(r"#include\s*<metal[^\n]*", "", text)
    return re.sub(r"\busing namespace metal;", "", text)


def dtype_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int32"
    if isinstance(value, float):
        return "float32"
    return str(value.dtype).removeprefix("torch.")


def kernel_text(
    name: str,
    source: str,
    header: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, tuple[Sequence[int], str]],
    grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int],
    template: Sequence[tuple[str, Any]] = (),
    atomic_outputs: bool = False,
) -> str:
    """The whole text. The kernel takes the inputs (numbers by value), the outputs, then the grid as three ints."""
    parameters, before = [], []
    words = set(re.findall(r"\w+", source))
    for key, value in inputs.items():
        kind, shape = TYPES[dtype_of(value)], tuple(np.shape(value))
        parameters.append(f"const {kind} {key}" if not shape else f"const {kind}* __restrict__ {key}")
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        if f"{key}_shape" in words:
            before.append(f"constexpr int {key}_shape[] = {{{', '.join(map(str, shape))}}};")
        if f"{key}_strides" in words:
            before.append(f"constexpr int64_t {key}_strides[] = {{{', '.join(map(str, strides))}}};")
        if f"{key}_ndim" in words:
            before.append(f"constexpr int {key}_ndim = {len(shape)};")
    for key, (_, dtype) in outputs.items():
        kind = TYPES[dtype]
        parameters.append(f"{f'atomic<{kind}>' if atomic_outputs else kind}* __restrict__ {key}")
    parameters.append("int kiln_x, int kiln_y, int kiln_z")
    for key, value in template:
        is_type = isinstance(value, str) or not isinstance(value, bool | int)
        if isinstance(value, bool):
            before.append(f"constexpr bool {key} = {str(value).lower()};")
        elif is_type:
            before.append(f"using {key} = {TYPES[str(value)]};")
        else:
            before.append(f"constexpr int {key} = {value};")
    position = "(blockIdx * blockDim + threadIdx)"
    whole = all(max(1, g) % max(1, min(g, t)) == 0 for g, t in zip(grid, threadgroup, strict=True))
    before.append("const uint3 kiln_grid(kiln_x, kiln_y, kiln_z);")
    before.append(
        "const uint3 kiln_at(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, "
        "blockIdx.z * blockDim.z + threadIdx.z);"
    )
    if not whole:
        before.append("if (kiln_at.x >= kiln_grid.x || kiln_at.y >= kiln_grid.y || kiln_at.z >= kiln_grid.z) return;")
    for key, text in _ATTRIBUTES.items():
        if key in words:
            before.append(f"const auto {key} = {text.format(P='kiln_at', L=_LINEAR)};")
    del position
    return (
        f"{HEADER.read_text()}\nnamespace metal {{\n{_in_cuda(header)}\n"
        f'extern "C" __global__ void __launch_bounds__({int(np.prod([max(1, min(g, t)) for g, t in zip(grid, threadgroup, strict=True)]))}) '
        f"{name}({', '.join(parameters)}) {{\n" + "\n".join(before) + f"\n{_in_cuda(source)}\n}}\n}}\n"
    )
