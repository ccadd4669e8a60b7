# The types of the extension module, whose docstrings say what things are. tests/python/test_types.py holds the names and
# parameters against the module's own.

from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias, overload

from typing_extensions import CapsuleType

from kiln._functions import Function
from kiln.errors import Diagnostic

# An array of a supported library, or a number.
_Input: TypeAlias = Any
# A string, or a dtype of any supported library.
_Dtype: TypeAlias = Any
_Shape: TypeAlias = Sequence[SupportsIndex]
_Threads: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Number: TypeAlias = SupportsFloat | SupportsIndex
_Template: TypeAlias = Sequence[tuple[str, Any]] | Mapping[str, Any] | None

version: str

class CompiledKernel:
    @property
    def name(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def architecture(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def engine_reason(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def machine_code(self) -> bytes: ...
    @property
    def code_bytes(self) -> int: ...
    @property
    def threadgroup_memory_bytes(self) -> int: ...
    @property
    def thread_memory_bytes(self) -> int: ...
    @property
    def compile_ms(self) -> float: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    def stages(self, after: Sequence[str] = ()) -> dict[str, str]: ...
    def passes(self) -> list[CompilePass]: ...
    def remarks(self) -> list[CompileRemark]: ...

class CompilePass:
    @property
    def name(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def fired(self) -> bool: ...
    @property
    def number(self) -> int | None: ...
    @property
    def switched_off(self) -> bool: ...
    @property
    def ms(self) -> float: ...
    @property
    def instructions_before(self) -> int: ...
    @property
    def instructions_after(self) -> int: ...

class CompileRemark:
    def __str__(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def file(self) -> str: ...

class Launch:
    @property
    def target(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def engine_reason(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def specialized(self) -> bool: ...
    @property
    def not_stored(self) -> str: ...
    @property
    def compile_ms(self) -> float: ...
    @property
    def run_ms(self) -> float: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def threadgroup(self) -> tuple[int, int, int]: ...
    @property
    def input_dtypes(self) -> list[str]: ...
    @property
    def output_dtypes(self) -> list[str]: ...

class Kernel:
    def __init__(
        self,
        *,
        dialect: str,
        name: str,
        input_names: Sequence[str] | None,
        output_names: Sequence[str] | None,
        source: str,
        header: str,
        ensure_row_contiguous: bool,
        atomic_outputs: bool,
        shared_memory: int,
        math_mode: str,
        bounds: bool | None,
        specialize: bool | None,
        always_shapes: bool,
        library: str,
        source_path: str | None = None,
        header_path: str | None = None,
        include_dirs: Sequence[str] = ...,
        writable_inputs: Sequence[str] = ...,
        allows_input_stores: bool = False,
        files: dict[str, Any] | None = None,
        batched_inputs: Sequence[bool] = ...,
        sliced_axis: int = -1,
    ) -> None: ...
    @overload
    def __call__(
        self,
        *,
        inputs: Sequence[_Input],
        output_shapes: Sequence[_Shape],
        output_dtypes: Sequence[_Dtype],
        grid: _Threads,
        threadgroup: _Threads,
        template: _Template = None,
        init_value: _Number | None = None,
        verbose: bool = False,
        stream: Any = None,
        outputs: None = None,
    ) -> list[Any]: ...
    @overload
    def __call__(
        self,
        *,
        inputs: Mapping[str, _Input],
        output_shapes: Mapping[str, _Shape],
        output_dtypes: Mapping[str, _Dtype],
        grid: _Threads,
        threadgroup: _Threads,
        template: _Template = None,
        init_value: _Number | None = None,
        verbose: bool = False,
        stream: Any = None,
        outputs: None = None,
    ) -> dict[str, Any]: ...
    @overload
    def __call__(
        self,
        *,
        inputs: Sequence[_Input],
        outputs: Sequence[Any],
        grid: _Threads,
        threadgroup: _Threads,
        template: _Template = None,
        init_value: _Number | None = None,
        verbose: bool = False,
        stream: Any = None,
    ) -> list[Any]: ...
    @overload
    def __call__(
        self,
        *,
        inputs: Mapping[str, _Input],
        outputs: Mapping[str, Any],
        grid: _Threads,
        threadgroup: _Threads,
        template: _Template = None,
        init_value: _Number | None = None,
        verbose: bool = False,
        stream: Any = None,
    ) -> dict[str, Any]: ...
    @overload
    def source_for(
        self,
        *,
        inputs: Sequence[_Input] | Mapping[str, _Input],
        output_shapes: Sequence[_Shape] | Mapping[str, _Shape] | None = None,
        output_dtypes: Sequence[_Dtype] | Mapping[str, _Dtype] | None = None,
        grid: _Threads,
        threadgroup: _Threads,
        template: _Template = None,
        init_value: _Number | None = None,
        verbose: bool = False,
        stream: Any = None,
        outputs: Sequence[Any] | Mapping[str, Any] | None = None,
        input_shapes: None = None,
        input_dtypes: None = None,
        target: None = None,
    ) -> str: ...
    @overload
    def source_for(
        self,
        *,
        inputs: None = None,
        input_shapes: Sequence[_Shape] | Mapping[str, _Shape],
        input_dtypes: Sequence[_Dtype] | Mapping[str, _Dtype],
        output_shapes: Sequence[_Shape] | Mapping[str, _Shape],
        output_dtypes: Sequence[_Dtype] | Mapping[str, _Dtype],
        grid: _Threads,
        threadgroup: _Threads,
        template: _Template = None,
        init_value: _Number | None = None,
        verbose: bool = False,
        stream: None = None,
        outputs: None = None,
        target: str | None = None,
    ) -> str: ...
    @overload
    def compile(
        self,
        *,
        inputs: Sequence[_Input] | Mapping[str, _Input],
        output_shapes: Sequence[_Shape] | Mapping[str, _Shape] | None = None,
        output_dtypes: Sequence[_Dtype] | Mapping[str, _Dtype] | None = None,
        grid: _Threads,
        threadgroup: _Threads,
        template: _Template = None,
        init_value: _Number | None = None,
        verbose: bool = False,
        stream: Any = None,
        outputs: Sequence[Any] | Mapping[str, Any] | None = None,
        input_shapes: None = None,
        input_dtypes: None = None,
        target: None = None,
    ) -> CompiledKernel: ...
    @overload
    def compile(
        self,
        *,
        inputs: None = None,
        input_shapes: Sequence[_Shape] | Mapping[str, _Shape],
        input_dtypes: Sequence[_Dtype] | Mapping[str, _Dtype],
        output_shapes: Sequence[_Shape] | Mapping[str, _Shape],
        output_dtypes: Sequence[_Dtype] | Mapping[str, _Dtype],
        grid: _Threads,
        threadgroup: _Threads,
        template: _Template = None,
        init_value: _Number | None = None,
        verbose: bool = False,
        stream: None = None,
        outputs: None = None,
        target: str | None = None,
    ) -> CompiledKernel: ...
    def function(
        self,
        *,
        output_shapes: Sequence[_Shape] | Callable[..., Sequence[Sequence[Any]]],
        output_dtypes: Sequence[_Dtype] | Callable[..., Sequence[_Dtype]],
        grid: _Threads | Callable[..., Any],
        threadgroup: _Threads | Callable[..., Any],
        template: _Template | Callable[..., _Template] = None,
        init_value: _Number | Callable[..., _Number | None] | None = None,
    ) -> Function: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Kernel: ...
    def __deepcopy__(self, memo: object, /) -> Kernel: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def header(self) -> str: ...
    @property
    def input_names(self) -> list[str] | None: ...
    @property
    def output_names(self) -> list[str] | None: ...
    @property
    def options(self) -> dict[str, Any]: ...
    @property
    def history(self) -> list[Launch]: ...

# For the package itself.

def register_library(library: CapsuleType, /) -> None: ...
def make_compiled_kernel() -> CapsuleType: ...
def register_numpy() -> None: ...

DTYPES: tuple[str, ...]

def register_torch() -> None: ...
def register_cupy() -> None: ...
def register_jax() -> None: ...
def dtype_name(dtype: object, /) -> str | None: ...
def kind_of(object: object) -> str: ...
def is_numpy_scalar(object: object) -> bool: ...
def settings() -> list[tuple[str, str, str]]: ...
def cpu_threads() -> int: ...
def cpu_architecture() -> str: ...
def cpu_engine() -> str: ...
def nvidia_status() -> dict[str, Any]: ...
def compiler_path() -> str: ...
def byte_count(text: str, /) -> int | None: ...
def cache_status() -> dict[str, Any]: ...
def bundle_status() -> dict[str, Any]: ...
def cache_items() -> list[dict[str, Any]]: ...
def cache_prune(bytes: int, /) -> tuple[int, int]: ...
def cache_clear() -> tuple[int, int]: ...
def cache_verify() -> list[dict[str, Any]]: ...
def start_recording() -> None: ...
def recorded_kernels() -> list[dict[str, Any]]: ...
def spec_of(kernel: Kernel, /) -> dict[str, Any]: ...
def part_inputs(batched_inputs: Sequence[bool], sliced_axis: int, output_names: Sequence[str], /) -> list[str]: ...
def texts_of(kernel: Kernel, /) -> tuple[str, str, bool]: ...
def launch_totals(kernel: Kernel, /) -> dict[str, Any]: ...
def compile_ahead(
    *,
    kernel: Kernel,
    inputs: Sequence[tuple[str, Sequence[int], Sequence[int]]],
    outputs: Sequence[tuple[str, Sequence[int]]],
    template: Sequence[tuple[str, str | int | bool]],
    input_names: Sequence[str],
    output_names: Sequence[str],
    specialized: bool,
    architecture: str,
    grid: Sequence[int] = (1, 1, 1),
    threadgroup: Sequence[int] = (1, 1, 1),
) -> tuple[str, str, str, str, bytes]: ...
def register_xla_launch(
    key: str, kernel: Kernel, templates: Sequence[tuple[str, str | int | bool]], init_value: int | float | None
) -> None: ...
def xla_handler(on_gpu: bool, /) -> CapsuleType: ...
def has_defined_torch_operator() -> bool: ...
def implement_torch_operator() -> bool: ...
def add_torch_launch(text: str, kernel: Kernel, /) -> None: ...
def make_torch_call(dispatch: Callable[..., Any], /) -> Callable[..., Any]: ...
def write_bundle(path: str, compilers: Sequence[str], entries: Mapping[str, bytes], /) -> None: ...
def add_package_folder(folder: str, /) -> None: ...
def describe_nvrtc() -> str: ...
