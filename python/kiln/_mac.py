"""Answers of a Mac for chosen packages: what ``python -m kiln run --mac`` puts in place.

Packages with Metal kernels ask where they run before they make one: ``sys.platform``, ``platform.system()``,
``platform.machine()``, ``"gpu" in str(mx.default_device())``. Chosen callers get a Mac's answers, and all others, the
standard library first, get the real ones: they load libraries and choose paths by them.

Each answer is given by who asks. The functions are replaced by ones that look at their caller's frame, and ``sys``
gets a class with a property ``platform`` that does the same, which also serves ``from sys import platform``. Rejected:
handing each chosen module an own ``sys`` through an import hook. It misses what is imported already and what ``exec``
and ``eval`` run, and a module that is not ``sys.modules["sys"]`` breaks programs that patch it.

A caller is chosen by its top-level package: those named, or else those that make kernels, which their source text
tells; a package's files are read once, when it first asks. The program itself is always chosen, and a test is where the
tests in its folder import a chosen package or MLX.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
import sysconfig
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kiln import _libraries

_RELEASE = "15.0"  # of macOS, whose Metal is version 3.2, as Kiln's
_KERNEL = "24.0.0"  # of Darwin
_VERSION = f"Darwin Kernel Version {_KERNEL}: root:xnu-11215.1.10/RELEASE_ARM64_T6000"

# Packages that never see a Mac, whatever their text says: libraries of arrays, and what runs this.
_NEVER = {"kiln", *(library.package for library in _libraries.LIBRARIES)}

_MAKES_KERNELS = re.compile(rb"\b(?:metal_kernel|MetalKernel|cuda_kernel)\b")
_KNOWS_MLX = re.compile(rb"\b(?:mlx|mx|kiln)\b")
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)", re.MULTILINE)


def _is_test(path: str) -> bool:
    folder, name = os.path.split(path)
    return (
        name == "conftest.py"
        or name.endswith("_test.py")
        or (name.startswith("test_") and name.endswith(".py"))
        or os.path.basename(folder) in ("test", "tests")
    )


def _is_installed(path: str) -> bool:
    """Whether a file belongs to a distribution or to Python itself."""
    real = os.path.realpath(path)
    parts = real.split(os.sep)
    stdlib = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
    return "site-packages" in parts or "dist-packages" in parts or real.startswith(stdlib)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _python_files(folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        for where, inner, names in os.walk(folder):
            inner[:] = [name for name in inner if name not in ("__pycache__", "site-packages") and name[0] != "."]
            yield from (os.path.join(where, name) for name in names if name.endswith(".py"))


def _files_of(root: str) -> Iterable[str]:
    """The Python files of a top-level package or module, which need not be imported."""
    module = sys.modules.get(root)
    specification = getattr(module, "__spec__", None)
    if module is None and root:
        try:
            specification = importlib.util.find_spec(root)
        except (ImportError, ValueError):
            return []
    folders = getattr(module, "__path__", None) or getattr(specification, "submodule_search_locations", None)
    if folders:
        return _python_files(map(str, folders))
    file = getattr(module, "__file__", None) or getattr(specification, "origin", None)
    return [file] if isinstance(file, str) else []


def _imported(text: bytes) -> set[str]:
    """The top-level packages that a text imports."""
    names = (name for line in _IMPORTS.findall(text) for name in line.decode("ascii", "replace").split(","))
    return {name.strip().partition(".")[0] for name in names}


class Callers:
    """Who gets a Mac's answers."""

    def __init__(self, packages: Iterable[str], program: str | None) -> None:
        """``packages``: names of packages or modules; none of them means those that make kernels. ``program``: the name
        of the module that runs as ``__main__``, or None for a file."""
        self._named = frozenset(package.replace("-", "_") for package in packages)
        self._program = program
        self._chosen: dict[str, bool] = {}
        self._test_folders: dict[tuple[str, ...], bool] = {}

    def has(self, frame: types.FrameType) -> bool:
        """Whether the code of this frame is chosen."""
        variables = frame.f_globals
        name, path = variables.get("__name__"), variables.get("__file__")
        if name == "__main__":
            return self._is_main_chosen(path)
        if not isinstance(name, str):
            return False
        if self._is_chosen(name):
            return True
        return isinstance(path, str) and _is_test(path) and self._is_test_chosen(os.path.dirname(os.path.abspath(path)))

    def _is_main_chosen(self, path: Any) -> bool:
        if self._program is None or self._is_chosen(self._program):
            return True
        # A tool that is installed, such as pytest, runs the program and is none.
        return isinstance(path, str) and not _is_installed(path)

    def _is_chosen(self, name: str) -> bool:
        if self._named:
            return any(f"{name}.".startswith(f"{package}.") for package in self._named)
        root = name.partition(".")[0]
        chosen = self._chosen.get(root)
        if chosen is None:
            self._chosen[root] = False  # while it is found out
            chosen = self._makes_kernels(root)
            if chosen or root in sys.modules:
                self._chosen[root] = chosen
            else:
                del self._chosen[root]  # it may be found later, when the path has changed
        return chosen

    def _makes_kernels(self, root: str) -> bool:
        if root in _NEVER or root in sys.stdlib_module_names:
            return False
        for path in _files_of(root):
            text = _read(path)
            # The search for a plain word is the quick one.
            if (b"etal" in text or b"cuda_kernel" in text) and _MAKES_KERNELS.search(text) and _KNOWS_MLX.search(text):
                return True
        return False

    def _is_test_chosen(self, folder: str) -> bool:
        key = (folder, *sys.path)  # by which packages are found
        chosen = self._test_folders.get(key)
        if chosen is None:
            self._test_folders[key] = False
            imported = set().union(*(_imported(_read(path)) for path in _python_files([folder]) if _is_test(path)))
            chosen = any(map(self._is_chosen, imported)) or (not self._named and "mlx" in imported)
            self._test_folders[key] = chosen
        return chosen


def _by_caller(callers: Callers, original: Callable[..., Any], mac: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is ``mac`` for chosen callers, and ``original`` for all others."""

    def function(*arguments: Any, **keywords: Any) -> Any:
        chosen = callers.has(sys._getframe(1))
        return (mac if chosen else original)(*arguments, **keywords)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        if hasattr(original, name):
            setattr(function, name, getattr(original, name))
    return function


def _answer_system(callers: Callers) -> None:
    real = sys.platform
    patched: str | None = None

    class System(types.ModuleType):
        @property
        def platform(self) -> str:
            if patched is not None:
                return patched
            return "darwin" if callers.has(sys._getframe(1)) else real

        @platform.setter
        def platform(self, value: str) -> None:
            # A test that sets it means all callers, until it sets it back.
            nonlocal patched
            patched = None if patched is not None and value == real else value

    sys.__class__ = System

    node, os_uname = os.uname().nodename, os.uname
    uname = platform.uname_result("Darwin", node, _KERNEL, _VERSION, "arm64")
    vars(uname)["processor"] = "arm"  # found out at first use otherwise
    mac: dict[str, Callable[..., Any]] = {
        "system": lambda: "Darwin",
        "machine": lambda: "arm64",
        "processor": lambda: "arm",
        "release": lambda: _KERNEL,
        "version": lambda: _VERSION,
        "mac_ver": lambda *_, **__: (_RELEASE, ("", "", ""), "arm64"),
        "platform": lambda *_, **__: f"macOS-{_RELEASE}-arm64-arm-64bit",
        "uname": lambda: uname,
    }
    for name, answer in mac.items():
        setattr(platform, name, _by_caller(callers, getattr(platform, name), answer))
    os_answer = os.uname_result(("Darwin", node, _KERNEL, _VERSION, "arm64"))
    os.uname = _by_caller(callers, os_uname, lambda: os_answer)
    sysconfig.get_platform = _by_caller(callers, sysconfig.get_platform, lambda: "macosx-15.0-arm64")


def _answer_mlx(callers: Callers, put: Callable[[Any, str, Callable[[Any], Any]], None], has_gpu: bool) -> None:
    """``put`` is that of an installation of ``kiln.mlx``."""
    import mlx.core as mx

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    information = {
        "device_name": "Apple M1",
        "architecture": "applegpu_g13g",
        "memory_size": memory,
        "max_recommended_working_set_size": memory * 3 // 4,
        "max_buffer_length": memory // 2,
        "resource_limit": 499000,
    }
    for module in (mx, mx.metal):
        if hasattr(module, "device_info"):
            put(module, "device_info", lambda own: _by_caller(callers, own, lambda *_, **__: dict(information)))
    if has_gpu:
        return

    # A program that asks for mx.cpu, in this thread, gets the CPU by name, too.
    state = threading.local()

    class Gpu(mx.Device):
        """The CPU device, by the name of a GPU."""

        def __init__(self, shown: str) -> None:
            super().__init__(mx.cpu)
            self._shown = shown

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Gpu)

        def __hash__(self) -> int:
            return hash(Gpu)

        @property
        def type(self) -> Any:
            return mx.DeviceType.gpu

        def __repr__(self) -> str:
            return self._shown

        def __str__(self) -> str:
            return self._shown

    gpu, unnamed = Gpu("Device(gpu, 0)"), Gpu(str(mx.Device(mx.cpu)))

    def names_cpu(device: Any) -> bool | None:
        """None where it does not say."""
        if isinstance(device, Gpu):
            return False
        return True if isinstance(device, mx.Device | mx.DeviceType) else None

    def default_device(own: Any) -> Any:
        def function() -> Any:
            if getattr(state, "cpu", False):
                return own()
            return gpu if callers.has(sys._getframe(1)) else unnamed

        return function

    def set_default_device(own: Any) -> Any:
        def function(device: Any) -> None:
            own(device)
            state.cpu = names_cpu(device)

        return function

    class Stream:
        """What ``mx.stream`` gives: for a block, the device is that of the stream."""

        def __init__(self, own: Any, device: Any) -> None:
            self._own, self._cpu = own, names_cpu(device)

        def __enter__(self) -> Any:
            result = self._own.__enter__()
            self._before = getattr(state, "cpu", False)
            state.cpu = self._before if self._cpu is None else self._cpu
            return result

        def __exit__(self, *exception: Any) -> Any:
            state.cpu = self._before
            return self._own.__exit__(*exception)

    device_type = mx.Device

    class DeviceMeta(type):
        def __call__(cls, type: Any, index: int = 0) -> Any:
            return gpu if isinstance(type, Gpu) or type is mx.DeviceType.gpu else device_type(type, index)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, device_type)

    class Device(metaclass=DeviceMeta):
        __doc__ = device_type.__doc__

    def equal(own: Any) -> Any:
        def function(self: Any, other: object) -> Any:
            return self is mx.DeviceType.gpu if isinstance(other, Gpu) else own(self, other)

        return function

    put(mx.DeviceType, "__eq__", equal)
    put(mx, "gpu", lambda _: gpu)
    put(mx, "default_device", default_device)
    put(mx, "set_default_device", set_default_device)
    put(mx, "stream", lambda own: lambda s: Stream(own(s), s))
    put(mx, "Device", lambda _: Device)
    for name in ("device_count", "is_available"):
        if hasattr(mx, name):
            put(mx, name, lambda own: lambda device: own(mx.cpu if isinstance(device, Gpu) else device))


def answer(packages: Iterable[str], program: str | None) -> None:
    """Puts a Mac's answers in place, for the rest of the process. ``kiln.mlx.install(metal=True)`` comes after it."""
    import kiln.mlx

    callers = Callers(packages, program)
    has_gpu = _libraries.import_mlx().has_gpu()
    installation = kiln.mlx._Installation()
    _answer_mlx(callers, installation.put, has_gpu)
    _answer_system(callers)
