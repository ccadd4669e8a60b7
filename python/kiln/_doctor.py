"""``python -m kiln doctor``: what is usable here, and for what is not, why and what would make it so."""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import kiln
from kiln import _cache, _core, _kernels, _libraries

_BODY = "out[thread_position_in_grid.x] = 2 * inp[thread_position_in_grid.x];"


class Finding(NamedTuple):
    name: str
    usable: bool
    detail: str
    """Versions and sizes; or why it is not usable and what would make it so."""


# Of the kernels that were run to see what is usable.
_launches: list[kiln.Launch] = []


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


class _Arrays(NamedTuple):
    """A library to try kernels with."""

    make: Callable[[list[float]], Any]
    to_list: Callable[[Any], list[float]]


def _numpy() -> _Arrays:
    _libraries.meet_by_name("numpy")
    import numpy as np

    return _Arrays(lambda values: np.array(values, np.float32), lambda array: array.tolist())


def _mlx() -> _Arrays:
    _libraries.meet_by_name("mlx")
    import mlx.core as mx

    return _Arrays(lambda values: mx.array(values, mx.float32), lambda array: array.tolist())


def _torch(device: str = "cpu") -> _Arrays:
    _libraries.meet_by_name("torch")
    import torch

    return _Arrays(
        lambda values: torch.tensor(values, dtype=torch.float32, device=device), lambda array: array.cpu().tolist()
    )


def _jax(platform: str | None = None) -> _Arrays:
    _libraries.meet_by_name("jax")
    import jax
    import jax.numpy as jnp

    device = jax.devices(platform)[0] if platform else None
    return _Arrays(lambda values: jax.device_put(jnp.array(values, jnp.float32), device), lambda array: array.tolist())


def _cupy() -> _Arrays:
    _libraries.meet_by_name("cupy")
    import cupy as cp

    return _Arrays(lambda values: cp.array(values, cp.float32), lambda array: array.tolist())


def _any() -> _Arrays:
    """Of the first library that has arrays in the CPU's memory; those that are quick to import come first."""
    for library in (_numpy, _mlx, _torch, lambda: _jax("cpu")):
        # Whatever a broken one raises stands in its own row.
        with contextlib.suppress(Exception):
            return library()
    raise ImportError("cannot be tried without an array library; see below")


def _call(method: str, name: str, arrays: _Arrays) -> Any:
    kernel = kiln.metal_kernel(name, ["inp"], ["out"], _BODY)
    return getattr(kernel, method)(
        inputs=[arrays.make([0, 1, 2, 3])],
        grid=(4, 1, 1),
        threadgroup=(4, 1, 1),
        output_shapes=[(4,)],
        output_dtypes=["float32"],
    )


def _run(name: str, arrays: _Arrays) -> None:
    with _kernels.keeping_made() as kernels:
        (out,) = _call("__call__", name, arrays)
    if arrays.to_list(out) != [0, 2, 4, 6]:
        raise RuntimeError("a kernel gave wrong numbers; this is a defect of Kiln")
    _launches.extend(launch for kernel in kernels for launch in kernel.history)


def _reason(check: Callable[[], str]) -> tuple[bool, str]:
    """Runs a check, which returns details; what it raises is the reason that something is not usable."""
    try:
        return True, check()
    except Exception as error:
        return False, f"{error}" or type(error).__name__


def _check_compiler() -> str:
    compiled = _call("compile", "doctor_compiler", _any())
    # Machine code may have been there already, the stages before it are not.
    start = time.perf_counter()
    compiled.stages()
    return f"{_core.compiler_path()}, compiled a kernel in {1e3 * (time.perf_counter() - start):.1f} ms"


def _check_nvrtc() -> str:
    _libraries.tell_library_folders()
    return _core.describe_nvrtc()


def _check_bundle() -> str:
    status = _core.bundle_status()
    if status["problem"]:
        raise RuntimeError(status["problem"])
    return f"{status['path']}, {_cache.counted(status['entries'], 'entry', 'entries')}"


def _check_cpu() -> str:
    what = f"{_core.cpu_architecture()}, {_core.cpu_threads()} threads, {_core.cpu_engine()} engine"
    try:
        _run("doctor_cpu", _any())
    except Exception as error:
        # The machine is named also where nothing can run on it.
        raise RuntimeError(f"{what}\n{error}") from error
    return what


def _check_nvidia() -> str:
    status = _core.nvidia_status()
    gpus = [
        f"{gpu['name']}, {gpu['architecture']}, {gpu['multiprocessors']} multiprocessors, "
        f"{gpu['memory_bytes'] / 2**30:.1f} GiB"
        for gpu in status["gpus"]
    ]
    return "\n".join([f"{status['path']}, for CUDA {status['driver']}", *gpus])


def _check_torch() -> str:
    _run("doctor_torch", _torch())
    import torch

    if not torch.cuda.is_available():
        return f"{_version('torch')}, without a GPU"
    _run("doctor_torch_gpu", _torch("cuda"))
    return f"{_version('torch')}, also on a GPU"


def _check_jax() -> str:
    _run("doctor_jax", _jax())
    import jax

    return f"{_version('jax')}, on {jax.default_backend()}"


def _check_cupy() -> str:
    _run("doctor_cupy", _cupy())
    import cupy

    return str(cupy.__version__)


def _check_numpy() -> str:
    _run("doctor_numpy", _numpy())
    bfloat16 = "with bfloat16" if importlib.util.find_spec("ml_dtypes") else "without bfloat16: pip install ml_dtypes"
    return f"{_version('numpy')}, {bfloat16}"


def _check_mlx() -> str:
    _run("doctor_mlx", _mlx())
    gpu = "on its GPU" if _libraries.import_mlx().has_gpu() else "without a GPU of its own"
    return f"{_version('mlx')}, {gpu}\nKiln has modules for MLX {_libraries.mlx_versions()}"


def _disk() -> tuple[bool, str]:
    usable, detail = _cache.describe()
    # What the folder does not show: a full disk, a file system that is read-only.
    not_stored = next((launch.not_stored for launch in _launches if launch.not_stored), "")
    if usable and not_stored and _core.cache_status()["mode"] == "on":
        usable, detail = False, f"{detail}\nnothing is stored: {not_stored}"
    return usable, detail


def _kept() -> list[Finding]:
    """Machine code of earlier processes. Asked for when the others have used it."""
    try:
        kept = [Finding("disk", *_disk())]
        bundle = _core.bundle_status()["path"]
    except ValueError as error:  # a variable has no valid value
        return [Finding("disk", False, str(error))]
    if bundle:
        kept.append(Finding("bundle", *_reason(_check_bundle)))
    return kept


def findings() -> dict[str, list[Finding]]:
    """What the report shows, by heading."""

    def found(name: str, check: Callable[[], str]) -> Finding:
        return Finding(name, *_reason(check))

    return {
        "Compiler": [found("libkiln_compiler.so", _check_compiler)],
        "CUDA compiler": [found("nvrtc", _check_nvrtc)],
        "Targets": [
            found("cpu", _check_cpu),
            found("nvidia", _check_nvidia),
        ],
        "Array libraries": [
            found("numpy", _check_numpy),
            found("mlx", _check_mlx),
            found("torch", _check_torch),
            found("jax", _check_jax),
            found("cupy", _check_cupy),
        ],
        "Compiled before": _kept(),
    }


def _unknown_variables() -> list[str]:
    """What the environment has that looks like a setting and is none, in sentences."""
    known = [variable for variable, _, _ in _core.settings()]
    # What all begin with makes none alike.
    prefix = "KILN_"
    ends = [variable.removeprefix(prefix) for variable in known]
    sentences = []
    for name in sorted(name for name in os.environ if name.startswith(prefix) and name not in known):
        close = difflib.get_close_matches(name.removeprefix(prefix), ends, 1)
        sentences.append(f"{name} is set, and is no setting{f'; did you mean {prefix}{close[0]}?' if close else ''}")
    return sentences


def _print_json(report: dict[str, list[Finding]]) -> None:
    content = {
        "version": kiln.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{heading.lower().replace(" ", "_"): [row._asdict() for row in rows] for heading, rows in report.items()},
        "settings": [
            {"variable": variable, "value": os.environ.get(variable), "values": values, "meaning": meaning}
            for variable, values, meaning in _core.settings()
        ],
        "unknown_variables": _unknown_variables(),
    }
    print(json.dumps(content, indent=2))


def _print_settings(*, every: bool) -> None:
    """Those that are set, or all; and what looks like one and is none."""
    lines = []
    for variable, values, meaning in _core.settings():
        value = os.environ.get(variable)
        if value or every:
            lines.append(f"{variable} {'= ' + value if value else 'is not set'}: {meaning} ({values})")
    print("\nSettings")
    for line in lines or ["none is set; --settings lists them"]:
        print(f"  {line}")
    for sentence in _unknown_variables():
        print(f"  {sentence}")


def _print_text(report: dict[str, list[Finding]]) -> None:
    print(f"Kiln {kiln.__version__}, Python {platform.python_version()}, {platform.platform()}")
    reasons: set[str] = set()
    for heading, rows in report.items():
        print(f"\n{heading}")
        width = max(len(row.name) for row in rows)
        for row in rows:
            lines = row.detail.splitlines() or [""]
            if not row.usable:
                # What keeps the compiler from being used keeps everything else from it.
                lines = ["for the same reason" if line in reasons else line for line in lines]
                reasons.update(lines)
            first, *rest = lines
            print(f"  {row.name:{width}}  {'usable    ' if row.usable else 'not usable'}  {first}")
            for line in rest:
                print(f"  {'':{width}}              {line}")


def main(*, as_json: bool = False, every_setting: bool = False) -> int:
    """Prints the report. 0 where the compiler, a target and an array library are usable. (Only CUDA bodies on a GPU need
    NVRTC.)"""
    report = findings()
    if as_json:
        _print_json(report)
    else:
        _print_text(report)
        _print_settings(every=every_setting)
    needed = [rows for heading, rows in report.items() if heading not in ("CUDA compiler", "Compiled before")]
    return 0 if all(any(row.usable for row in rows) for rows in needed) else 1
