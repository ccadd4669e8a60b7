"""Metal bodies on an NVIDIA GPU against the same text compiled by NVRTC (``peers.py``): bodies of the tests' corpus at
sizes of practice, those of bench/kernels.py, and those of a file that is named on the command line.

A body of the corpus has the arguments of one small call. It is made large along an axis on which its elements are
independent: arrays are repeated along their first axis of a given extent, and the grid grows in one direction. BATCHES
has that extent and that direction, checked on the CPU by comparing with repeated results; STENCILS are images, which
grow in both directions.

Each alternative is captured ten times into a CUDA graph, so launches cost the host nothing, and the graphs take turns.
The figures are medians with quartiles over the rounds.
"""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kiln
import numpy as np
import torch

from bench import kernels
from bench.gpu import peers
from bench.measure import Samples, table

ROUNDS = 7
CALLS = 10
THREADS = 1 << 21  # of a body of the corpus, at least
MOST_BYTES = 1 << 30
# By which a peer's result may differ, of the largest value: sums in another order, other functions.
LIMIT = 2e-2
SECONDS = 60  # for one body
MARGIN = 1 << 23
SHARE = 0.01  # of the elements that may be beyond it

VARIANTS = {
    "safe": {"math_mode": "safe"},
    "safe, no guards": {"math_mode": "safe", "bounds": "off"},
    "fast": {"math_mode": "fast"},
    "fast, no guards": {"math_mode": "fast", "bounds": "off"},
}

#: Extent of the batch, and the direction of the grid.
BATCHES: dict[str, tuple[int, str]] = {
    "activations_and_their_gradients": (49, "x"),
    "swiglu_and_its_gradients": (6, "x"),
    "decode_attention_ring_with_sinks": (3, "y"),
    "split_attention_second_pass": (3, "x"),
    "decode_attention_of_e4m3": (3, "y"),
    "gather_pages": (3, "y"),
    "polynomial_products_modulo_a_prime": (3, "x"),
    "modular_powers_of_long_numbers": (40, "x"),
    "run_lengths_and_back": (3, "x"),
    "four_moments_of_columns": (5, "x"),
    "convolution_of_each_channel": (2, "z"),
    "transposed_convolution": (2, "z"),
    "delta_rule_scalar_gate_float32": (2, "z"),
    "delta_rule_gradient": (3, "x"),
    "laplacian_of_a_strided_volume": (6, "x"),
    "advection_by_weno": (3, "x"),
    "route_by_groups_of_experts": (9, "y"),
    "product_of_blocks_of_experts": (22, "x"),
    "cholesky_and_solution": (3, "x"),
    "householder_triangle": (3, "y"),
    "xxhash64_of_records": (105, "x"),
    "siphash_2_4": (40, "x"),
    "resize_catmull_rom": (2, "z"),
    "resize_lanczos": (2, "z"),
    "trilinear_samples": (2, "z"),
    "bicubic_resize_float32": (3, "x"),
    "rope_neighbours_forward": (2, "y"),
    "rope_halves_backward": (2, "y"),
    "embed_tokens": (9, "y"),
    "gradient_of_an_embedding": (12, "x"),
    "cyclic_reduction": (3, "x"),
    "cholesky_solve_float32": (33, "x"),
    "lennard_jones_with_neighbours": (60, "x"),
    "shake_constraints": (40, "x"),
    "layer_norm_gradients_float32": (5, "x"),
    "group_norm_with_silu": (2, "y"),
    "dormand_prince": (45, "x"),
    "kalman_smoother": (24, "x"),
    "muon_step": (2, "x"),
    "adafactor_step": (2, "x"),
    "boris_push": (50, "x"),
    "smoothed_particle_forces": (120, "x"),
    "causal_attention_with_a_soft_cap": (3, "y"),
    "attention_gradient_of_keys_and_values": (2, "y"),
    "product_by_register_tiles": (45, "y"),
    "adapters_of_low_rank": (6, "y"),
    "affine_product_of_1_bits": (3, "y"),
    "affine_product_of_2_bits": (3, "y"),
    "product_with_row_pointers": (10, "y"),
    "blocks_by_fields_of_bits": (40, "x"),
    "product_of_mxfp4": (7, "y"),
    "product_with_additive_codebooks": (50, "x"),
    "pcg_with_skips": (70, "x"),
    "choices_by_alias_table": (3, "x"),
    "splat_colours_of_degree_3": (70, "x"),
    "ray_triangle_tests": (50, "x"),
    "bounding_volume_hierarchy": (50, "x"),
    "wkv6": (2, "x"),
    "wkv6_gradient": (2, "y"),
    "verify_drafts": (9, "y"),
    "candidates_by_a_sorting_network": (37, "x"),
    "delta_rule_on_a_tree": (12, "x"),
    "lstm_in_both_directions": (2, "y"),
    "attention_with_places_apart": (2, "y"),
    "merge_two_attentions": (3, "y"),
    "radix_sort_of_floats": (256, "x"),
    "merge_path_of_two_lists": (4, "y"),
    "fir_decimation_float32": (2, "y"),
    "rolling_and_forecast": (5, "x"),
}

#: Extents of an image's axes that grow with the grid's x and y.
STENCILS: dict[str, tuple[int, int]] = {
    "wave_of_eighth_order": (29, 21),
    "gray_scott": (26, 19),
    "lattice_boltzmann_in_the_plane": (18, 11),
    "gaussian_with_halo_float32": (37, 29),
    "gaussian_with_halo_float16": (37, 29),
    "bilateral_filter": (21, 14),
    "optical_flow_step": (27, 21),
    "march_signed_distances": (27, 20),
}


@dataclass
class Case:
    name: str
    source: str
    header: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, tuple[tuple[int, ...], str]]
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    template: Sequence[tuple[str, Any]] = ()
    atomic_outputs: bool = False
    init_value: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def _repeated(shape: tuple[int, ...], extents: Mapping[int, int]) -> tuple[int, ...]:
    """Times by which each axis grows: the first axis of each extent."""
    times = [1] * len(shape)
    for extent, factor in extents.items():
        if extent in shape:
            times[shape.index(extent)] = factor
    return tuple(times)


def _enlarged(body: Any, factors: Mapping[int, int], directions: Mapping[int, int]) -> Case:
    def grown(value: Any) -> Any:
        return (
            np.tile(value, _repeated(value.shape, factors)) if isinstance(value, np.ndarray) and value.shape else value
        )

    return Case(
        body.name,
        body.source,
        body.header,
        {name: grown(value) for name, value in body.inputs().items()},
        {
            name: (tuple(a * b for a, b in zip(shape, _repeated(shape, factors), strict=True)), dtype)
            for name, (shape, dtype) in body.outputs.items()
        },
        tuple(extent * directions.get(i, 1) for i, extent in enumerate(body.grid)),
        body.threadgroup,
        [(name, str(value) if isinstance(value, str) else value) for name, value in body.template],
        body.atomic_outputs,
        body.init_value,
        {"compile_options": {k: v for k, v in body.compile_options.items() if k not in ("math_mode", "bounds")}},
    )


def _bytes(body: Any) -> int:
    arrays = [v for v in body.inputs().values() if isinstance(v, np.ndarray)]
    return sum(a.nbytes for a in arrays) + sum(8 * math.prod(shape) for shape, _ in body.outputs.values())


def corpus() -> Iterator[Case]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    import bodies

    known = {body.name: body for body in bodies.all_bodies()}
    for name, (extent, direction) in BATCHES.items():
        body = known[name]
        factor = max(2, min(-(-THREADS // math.prod(body.grid)), MOST_BYTES // _bytes(body)))
        axis = "xyz".index(direction)
        if axis:
            factor = min(factor, 65535 * body.threadgroup[axis] // body.grid[axis])
        yield _enlarged(body, {extent: factor}, {axis: factor})
    for name, (columns, rows) in STENCILS.items():
        body = known[name]
        factor = max(2, math.isqrt(THREADS // math.prod(body.grid)))
        # A grid that ends beyond the image does so by whole threadgroups, at most one.
        case = _enlarged(body, {columns: factor, rows: factor}, {0: factor, 1: factor})
        yield case


def own_kernels() -> Iterator[Case]:
    for name in kernels.PROBLEMS:
        if name in ("half matrix product", "grid sample vjp"):
            continue  # matrix_product.py and grid_sample.py have them
        problem = kernels.problem(name)
        kernel, call = problem.kernel, problem.call
        names = kernel.input_names
        yield Case(
            name,
            kernel.source,
            kernel.header,
            dict(zip(names, call["inputs"], strict=True)),
            {
                out: (tuple(shape), np.dtype(dtype).name)
                for out, shape, dtype in zip(
                    kernel.output_names, call["output_shapes"], call["output_dtypes"], strict=True
                )
            },
            call["grid"],
            call["threadgroup"],
            [(k, v if isinstance(v, bool | int) else np.dtype(v).name) for k, v in call.get("template") or ()],
            bool(kernel.options.get("atomic_outputs", False)),
            call.get("init_value"),
        )


def of_file(path: Path, scale: int = 4) -> Iterator[Case]:
    """Of a file with a table KERNELS of functions of a scale that give a problem."""
    spec = importlib.util.spec_from_file_location("kernels_of_file", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, make in module.KERNELS.items():
        p = make(scale)
        if p.dialect != "metal":
            continue
        outputs = {key: (tuple(shape), dtype) for key, (shape, dtype) in p.outputs.items()}
        yield Case(name, p.body, p.header, p.inputs, outputs, p.grid, p.tg, p.template or (), bool(p.atomic), p.init)


# ---- One case


def _tensor(value: Any) -> Any:
    """On the GPU, with memory around it: some bodies read outside first and mask afterwards, and the peers, and Kiln
    without guards, then read what is there."""
    if not isinstance(value, np.ndarray) or not value.shape:
        return value
    data = torch.from_numpy(np.ascontiguousarray(value).view(np.uint8).reshape(-1))
    around = torch.zeros(data.numel() + 2 * MARGIN, dtype=torch.uint8, device="cuda")
    inside = around[MARGIN : MARGIN + data.numel()]
    inside.copy_(data)
    return inside.view(getattr(torch, value.dtype.name)).reshape(value.shape)


def _empty(outputs: Mapping[str, tuple[tuple[int, ...], str]], fill: float | None) -> list[torch.Tensor]:
    return [torch.full(s, fill or 0, dtype=getattr(torch, d), device="cuda") for s, d in outputs.values()]


def _include_folders() -> list[str]:
    import os
    import site

    candidates = [Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "include"]
    for folder in [*site.getsitepackages(), *sys.path]:
        candidates += [*Path(folder).glob("nvidia/cu1*/include"), *Path(folder).glob("nvidia/cuda_runtime/include")]
    return [str(path) for path in candidates if (path / "cuda_fp16.h").exists()][:1]


def _peer(case: Case, tensors: Sequence[Any], outs: Sequence[torch.Tensor], fast: bool) -> Callable[[], None]:
    import cupy

    text = peers.kernel_text(
        "peer",
        case.source,
        case.header,
        case.inputs,
        case.outputs,
        case.grid,
        case.threadgroup,
        case.template,
        case.atomic_outputs,
    )
    options = ["-std=c++17", "-default-device", *(f"-I{folder}" for folder in _include_folders())]
    module = cupy.RawModule(code=text, options=tuple(options + ["--use_fast_math"] * fast))
    kernel = module.get_function("peer")
    numbers = {"float32": np.float32, "int32": np.int32, "bool": np.bool_}
    arguments: list[Any] = []
    for value in tensors:
        if isinstance(value, torch.Tensor):
            arguments.append(np.uint64(value.data_ptr()))
        else:
            arguments.append(numbers.get(peers.dtype_of(value), np.dtype(peers.dtype_of(value)).type)(value))
    arguments += [np.uint64(out.data_ptr()) for out in outs]
    arguments += [np.int32(extent) for extent in case.grid]
    size = tuple(max(1, min(g, t)) for g, t in zip(case.grid, case.threadgroup, strict=True))
    groups = tuple(-(-g // s) for g, s in zip(case.grid, size, strict=True))

    def launch() -> None:
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel(groups, size, tuple(arguments))

    return launch


def _ours(
    case: Case, tensors: Sequence[Any], outs: Sequence[torch.Tensor], options: dict[str, Any]
) -> Callable[[], None]:
    kernel = kiln.metal_kernel(
        "".join(c if c.isalnum() else "_" for c in case.name),
        list(case.inputs),
        list(case.outputs),
        case.source,
        header=case.header,
        atomic_outputs=case.atomic_outputs,
        compile_options={**case.options.get("compile_options", {}), **options},
    )
    template = [(k, getattr(torch, v) if isinstance(v, str) else v) for k, v in case.template]

    def launch() -> None:
        kernel(
            inputs=list(tensors),
            outputs=list(outs),
            grid=case.grid,
            threadgroup=case.threadgroup,
            template=template or None,
        )

    return launch


def _differing(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> float:
    """The largest share of an output's elements that are further apart than LIMIT."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        x, y = a.double(), b.double()
        size = float(x[x.isfinite()].abs().max()) if bool(x.isfinite().any()) else 1.0
        same = ((x - y).abs() <= LIMIT * max(size, 1e-30)) | (x == y) | (x.isnan() & y.isnan())
        worst = max(worst, 1 - float(same.double().mean()))
    return worst


def _graph(launch: Callable[[], None]) -> Any:
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launch()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(CALLS):
            launch()
    return graph


def measure(case: Case) -> tuple[dict[str, Samples], dict[str, float]]:
    """Times by alternative, and how each peer differs from Kiln in safe mode."""
    tensors = [_tensor(value) for value in case.inputs.values()]
    # Addresses in memory that is not there: the result is for the first call.
    outs = {name: _empty(case.outputs, case.init_value) for name in (*VARIANTS, "NVRTC", "NVRTC, fast")}
    launches = {name: _ours(case, tensors, outs[name], options) for name, options in VARIANTS.items()}
    launches |= {
        "NVRTC": _peer(case, tensors, outs["NVRTC"], False),
        "NVRTC, fast": _peer(case, tensors, outs["NVRTC, fast"], True),
    }
    for launch in launches.values():
        launch()
    torch.cuda.synchronize()
    differences = {name: _differing(outs["safe"], outs[name]) for name in outs if name != "safe"}
    graphs = {name: _graph(launch) for name, launch in launches.items()}
    values: dict[str, list[float]] = {name: [] for name in graphs}
    for graph in graphs.values():
        graph.replay()
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            values[name].append(begin.elapsed_time(end) / CALLS)
    return {name: Samples(tuple(times)) for name, times in values.items()}, differences


def _cases(kernels_file: Path | None) -> Iterator[tuple[str, Case]]:
    """Each with where it is from; made when it is wanted."""
    for case in own_kernels():
        yield "bench/kernels.py", case
    if kernels_file:
        for case in of_file(kernels_file):
            yield kernels_file.stem, case
    for case in corpus():
        yield "corpus", case


def _work(kernels_file: Path | None, first: int) -> None:
    """Measures the cases from a number on; prints a line in JSON for each."""
    for number, (source, case) in enumerate(_cases(kernels_file)):
        if number < first:
            continue
        print(json.dumps({"number": number, "name": case.name, "from": source}), flush=True)
        times, differences = measure(case)
        found = {"differences": differences, "times": {name: samples.values for name, samples in times.items()}}
        print(json.dumps(found), flush=True)
    print(json.dumps({"number": -1}), flush=True)


def _results(kernels_file: Path | None) -> Iterator[tuple[dict[str, Any], dict[str, Any] | str]]:
    """Each case with what was measured or what went wrong. A process that a case ends is followed by another one."""
    first = 0
    while first >= 0:
        command = [sys.executable, "-m", "bench.gpu.bodies", str(first), *([str(kernels_file)] if kernels_file else [])]
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
            assert process.stdout
            case: dict[str, Any] | None = None
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            for line in process.stdout:
                timer.cancel()
                timer = threading.Timer(SECONDS, process.kill)
                timer.start()
                content = json.loads(line)
                if "number" in content:
                    case = content
                    first = content["number"]
                elif case:
                    yield case, content
                    case = None
                    first += 1
            timer.cancel()
            process.wait()
            if first < 0:
                return
            errors.seek(0)
            said = errors.read().strip().splitlines() or [f"ended with {process.returncode}"]
            if case is None:
                raise SystemExit("\n".join(said[-20:]))
            yield case, next((line for line in reversed(said) if "Error" in line), said[-1])[:200]
            first += 1


RATIOS = {
    "safe": ("safe", "NVRTC"),
    "no guards": ("safe, no guards", "NVRTC"),
    "fast": ("fast", "NVRTC, fast"),
    "fast, no guards": ("fast, no guards", "NVRTC, fast"),
    "guards": ("safe", "safe, no guards"),
}


def run(kernels_file: Path | None = None) -> tuple[dict[str, Any], list[str]]:
    figures: dict[str, Any] = {}
    rows: list[tuple[float, list[str]]] = []
    ratios: dict[str, dict[str, list[float]]] = {}
    refused = []
    for case, found in _results(kernels_file):
        name, source = case["name"], case["from"]
        if isinstance(found, str):
            refused.append(f"{name}: {found}")
            print(f"  {refused[-1]}", file=sys.stderr, flush=True)
            continue
        times = {key: Samples(tuple(values)) for key, values in found["times"].items()}
        differences = found["differences"]
        of_case = {key: times[a].median / times[b].median for key, (a, b) in RATIOS.items()}
        is_same = max(differences["NVRTC"], differences["safe, no guards"]) <= SHARE
        figures[name] = {
            "from": source,
            "counts": is_same,
            "differences": differences,
            "ratios": of_case,
            "times": {name: samples.as_json() for name, samples in times.items()},
        }
        if not is_same:
            refused.append(f"{name}: the peer computes something else in {differences['NVRTC']:.0%}")
            continue
        for key, value in of_case.items():
            ratios.setdefault(source, {}).setdefault(key, []).append(value)
        print(f"  {name} " + " ".join(f"{v:.2f}" for v in of_case.values()), file=sys.stderr, flush=True)
        row = [name, str(times["safe"]), str(times["NVRTC"]), *(f"{of_case[key]:.2f}" for key in RATIOS)]
        rows.append((of_case["safe"], row))
    summary: dict[str, Any] = {}
    means = []
    everything = {key: [v for of_source in ratios.values() for v in of_source[key]] for key in RATIOS}
    for source, of_source in {**ratios, "all": everything}.items():
        summary[source] = {
            key: {"geometric_mean": statistics.geometric_mean(v), "worst": max(v), "bodies": len(v)}
            for key, v in of_source.items()
        }
        n = len(of_source["safe"])
        means.append(
            [f"{source}, {n} bodies"]
            + [f"{s['geometric_mean']:.2f} (worst {s['worst']:.2f})" for s in summary[source].values()]
        )
    rows.sort(reverse=True)
    header = ["", "Kiln, safe", "NVRTC", *RATIOS]
    printed = [
        table("Metal bodies: Kiln's time to NVRTC's; guards: to Kiln's without", header, [row for _, row in rows]),
        table("geometric means", ["", *RATIOS], means),
    ]
    if refused:
        printed.append("not counted:\n  " + "\n  ".join(refused))
    return {"summary": summary, "bodies": figures, "not_counted": refused}, printed


if __name__ == "__main__":
    _work(Path(sys.argv[2]) if len(sys.argv) > 2 else None, int(sys.argv[1]))
