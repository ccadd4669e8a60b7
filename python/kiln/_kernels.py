"""The three generations of MLX's interface, over one kernel type."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias, overload

from kiln import _core, _libraries
from kiln._core import Kernel

# A line that names a file, and that no dialect takes for code: it has none of code's punctuation.
_FILE_NAME = re.compile(r"(?!\s*//)[^\n;{}()=<>\"'#*]+\.(?:metal|msl|cuh?|cl|h|hh|hpp|c|cc|cpp|cxx|inc|inl|txt)\s*")

# Text, or the file that holds it.
Source: TypeAlias = str | os.PathLike[str] | os.PathLike[bytes]

_MATH_MODES = ("safe", "relaxed", "fast")
_COMPILE_OPTIONS = ("math_mode", "bounds", "specialize", "include_dirs", "writable_inputs")
_KNOWN_OPTIONS = "`math_mode`, `bounds`, `specialize`, `include_dirs` and `writable_inputs`"


def _expected(interface: str, argument: str, what: str, value: object) -> TypeError:
    return TypeError(f"[{interface}] Expected `{argument}` to be {what} but got {_core.kind_of(value)}.")


def is_flag(value: Any) -> bool:
    """Whether it is a bool of Python's, or what NumPy's comparisons give."""
    return isinstance(value, bool) or _core.kind_of(value) in ("numpy.bool", "numpy.bool_")


def read_flag(interface: str, argument: str, value: Any) -> bool:
    """A bool among the arguments. Raises TypeError for anything else."""
    if is_flag(value):
        return bool(value)
    raise _expected(interface, argument, "a bool", value)


def _lone_surrogate(text: str) -> int | None:
    """Where the text has what UTF-8 cannot have."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _check_text(interface: str, argument: str, value: Any) -> None:
    if not isinstance(value, str):
        raise _expected(interface, argument, "a string", value)
    where = _lone_surrogate(value)
    if where is not None:
        raise ValueError(
            f"[{interface}] Expected `{argument}` to be text but got the lone surrogate {value[where]!r} at {where}."
        )


def _path(interface: str, argument: str, value: Any) -> str:
    path = os.fsdecode(value)
    if "\0" in path or _lone_surrogate(path) is not None:
        raise ValueError(f"[{interface}] Expected `{argument}` to be a path in UTF-8 but got {path!r}.")
    return path


def _source(interface: str, argument: str, value: Any) -> tuple[str, str | None]:
    """A text, or the path of the file that holds it."""
    if isinstance(value, os.PathLike):
        return "", _path(interface, argument, value)
    if not isinstance(value, str):
        raise _expected(interface, argument, "a string or a path", value)
    _check_text(interface, argument, value)
    if _FILE_NAME.fullmatch(value):
        path = value.strip()
        raise ValueError(
            f"[{interface}] Expected `{argument}` to be text but got the path {path!r}: write pathlib.Path({path!r}) for "
            "the file."
        )
    return value, None


def _strings(interface: str, argument: str, value: object) -> list[str]:
    if isinstance(value, str):
        raise TypeError(
            f"[{interface}] Expected `{argument}` to be a list of strings but got the string {value!r}: write [{value!r}]."
        )
    if isinstance(value, bytes) or not isinstance(value, Sequence):
        raise _expected(interface, argument, "a list of strings", value)
    strings = list(value)
    for string in strings:
        if not isinstance(string, str):
            raise _expected(interface, argument, "a list of strings", string)
    return strings


def _names(interface: str, argument: str, value: object) -> list[str]:
    names = _strings(interface, argument, value)
    for name in names:
        # What else is no identifier is told by the kernel. It knows nothing of characters beyond ASCII.
        if "\0" in name or not (name.isascii() or name.isidentifier()):
            raise ValueError(f"[{interface}] Expected the names in `{argument}` to be identifiers but got {name!r}.")
    return names


def _shared_memory(interface: str, value: Any) -> int:
    try:
        size = operator.index(value)
    except TypeError as error:
        raise _expected(interface, "shared_memory", "an int", value) from error
    if 0 <= size < 2**63:
        return size
    try:
        digits = str(size)
    except ValueError:  # Python converts no more than a few thousand
        digits = f"a number of {size.bit_length()} bits"
    raise ValueError(f"[{interface}] Expected `shared_memory` to be at least 0 and below 2^63 but got {digits}.")


def _option(key: str) -> str:
    """As a caller writes it."""
    return f'compile_options["{key}"]'


def _compile_options(interface: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options as the kernel type takes them."""
    result: dict[str, Any] = {
        "math_mode": "safe",
        "bounds": None,
        "specialize": None,
        "include_dirs": [],
        "writable_inputs": [],
    }
    if options is None:
        return result
    if not isinstance(options, Mapping):
        raise ValueError(f"[{interface}] Expected `compile_options` to be a dict.")
    for key, value in options.items():
        if not isinstance(key, str) or key not in _COMPILE_OPTIONS:
            raise ValueError(f"[{interface}] Unknown compile option `{key}`. Those are {_KNOWN_OPTIONS}.")
        if key == "math_mode":
            if not isinstance(value, str) or value not in _MATH_MODES:
                raise ValueError(f"[{interface}] Expected math_mode to be 'safe', 'relaxed', or 'fast'.")
            result["math_mode"] = value
        elif key == "bounds":
            if not isinstance(value, str) or value not in ("on", "off"):
                # A bool is what one may take for a switch. Of other things the representation may be anything.
                got = repr(value)[:100] if type(value) in (str, bool) else _core.kind_of(value)
                raise ValueError(f"[{interface}] Expected `{_option(key)}` to be 'on' or 'off' but got {got}.")
            result["bounds"] = value == "on"
        elif key == "specialize":
            result["specialize"] = read_flag(interface, _option(key), value)
        elif key == "writable_inputs":
            result["writable_inputs"] = _names(interface, _option(key), value)
        else:
            if isinstance(value, str | bytes) or not isinstance(value, Sequence):
                raise _expected(interface, _option(key), "a list of folders", value)
            for folder in list(value):
                if not isinstance(folder, str | os.PathLike):
                    raise _expected(interface, _option(key), "a list of folders", folder)
                result["include_dirs"].append(_path(interface, _option(key), folder))
    return result


# Where keeping_made() collects.
_made: list[Kernel] | None = None


@contextlib.contextmanager
def keeping_made() -> Iterator[list[Kernel]]:
    """A list that gets, and keeps alive, every kernel that is made within the block."""
    global _made
    before, _made = _made, []
    try:
        yield _made
    finally:
        _made = before


def _make(
    interface: str,
    *,
    name: Any,
    input_names: list[str] | None,
    output_names: list[str] | None,
    source: Any,
    header: Any,
    ensure_row_contiguous: Any,
    atomic_outputs: Any = False,
    shared_memory: Any = 0,
    compile_options: Mapping[str, Any] | None = None,
    always_shapes: bool = False,
    library: str = "",
    kind: type[Kernel] = Kernel,
) -> Kernel:
    _check_text(interface, "name", name)
    source, source_path = _source(interface, "source", source)
    header, header_path = _source(interface, "header", header)
    kernel = kind(
        dialect="metal" if interface == "metal_kernel" else "cuda",
        name=name,
        input_names=input_names,
        output_names=output_names,
        source=source,
        header=header,
        source_path=source_path,
        header_path=header_path,
        ensure_row_contiguous=read_flag(interface, "ensure_row_contiguous", ensure_row_contiguous),
        atomic_outputs=read_flag(interface, "atomic_outputs", atomic_outputs),
        shared_memory=_shared_memory(interface, shared_memory),
        always_shapes=always_shapes,
        library=library,
        **_compile_options(interface, compile_options),
    )
    if _made is not None:
        _made.append(kernel)
    return kernel


def _by_names(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: Source,
    header: Source = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "input_names": _names("metal_kernel", "input_names", input_names),
        "output_names": _names("metal_kernel", "output_names", output_names),
        "source": source,
        "header": header,
        "ensure_row_contiguous": ensure_row_contiguous,
        "atomic_outputs": atomic_outputs,
        "compile_options": compile_options,
    }


def _by_dictionary(
    name: str,
    source: Source,
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    header: Source = "",
    compile_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "input_names": None,
        "output_names": None,
        "source": source,
        "header": header,
        "ensure_row_contiguous": ensure_row_contiguous,
        "atomic_outputs": atomic_outputs,
        "compile_options": compile_options,
    }


# Python's messages for wrong arguments name the function by this.
_by_names.__qualname__ = _by_dictionary.__qualname__ = "metal_kernel"


_RULE = "a kernel has both, or takes all names from its calls."


def _is_by_dictionary(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Which generation of ``metal_kernel`` is meant: the one without names, whose calls take dicts? Raises TypeError for
    what is of both."""
    behind = arguments[1:]  # the name, which may also be a keyword
    by_dictionary = isinstance(behind[0], str | os.PathLike) if behind else "input_names" not in keywords
    # ("name", "x", ["y"], "body") or ("name", "x", ["y"], source="body").
    has_source_behind = isinstance(behind[2], str | os.PathLike) if len(behind) > 2 else "source" in keywords
    if 1 < len(behind) < 8 and isinstance(behind[0], str) and has_source_behind:
        _strings("metal_kernel", "input_names", behind[0])
    has_output_names = len(behind) > 1 or "output_names" in keywords
    if by_dictionary and "output_names" in keywords and "input_names" not in keywords:
        raise TypeError(f"[metal_kernel] `output_names` needs `input_names`: {_RULE}")
    if not by_dictionary and not has_output_names:
        raise TypeError(f"[metal_kernel] `input_names` needs `output_names`: {_RULE}")
    # ("name", "body", ["x"]) gives names where this generation has `ensure_row_contiguous`.
    names_behind = any(isinstance(argument, list | tuple) for argument in behind[1:])
    if by_dictionary and ("input_names" in keywords or names_behind):
        raise TypeError(
            f"[metal_kernel] Got {'a list of names' if names_behind else '`input_names`'}, and a source in their place "
            "as the second argument: a kernel with names takes them before its source, one without takes all names "
            "from its calls."
        )
    return by_dictionary


def metal_kernel_for(library: str, kind: type[Kernel], /, *arguments: Any, **keywords: Any) -> Kernel:
    """``metal_kernel`` with results of a fixed array library, or of the inputs' where ``library`` is empty; ``kind`` is
    the class of the kernel."""
    generation = _by_dictionary if _is_by_dictionary(arguments, keywords) else _by_names
    return _make("metal_kernel", library=library, kind=kind, **generation(*arguments, **keywords))


def _also_by_dictionary(function: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """``metal_kernel`` for calls of both generations, of which it has the parameters of the current one."""

    @functools.wraps(function)
    def either(*arguments: Any, **keywords: Any) -> Kernel:
        if _is_by_dictionary(arguments, keywords):
            return _make("metal_kernel", **_by_dictionary(*arguments, **keywords))
        return function(*arguments, **keywords)

    return either


def cuda_kernel_for(library: str, kind: type[Kernel], /, *arguments: Any, **keywords: Any) -> Kernel:
    """``cuda_kernel``, as ``metal_kernel_for`` is ``metal_kernel``."""
    _libraries.tell_library_folders()
    return _make("cuda_kernel", library=library, kind=kind, **_cuda_arguments(*arguments, **keywords))


def _cuda_arguments(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: Source,
    header: Source = "",
    ensure_row_contiguous: bool = True,
    shared_memory: int = 0,
    compile_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "input_names": _names("cuda_kernel", "input_names", input_names),
        "output_names": _names("cuda_kernel", "output_names", output_names),
        "source": source,
        "header": header,
        "ensure_row_contiguous": ensure_row_contiguous,
        "shared_memory": shared_memory,
        "compile_options": compile_options,
    }


_cuda_arguments.__qualname__ = "cuda_kernel"  # as above


@overload
def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: Source,
    header: Source = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, Any] | None = None,
) -> Kernel: ...
@overload
def metal_kernel(
    name: str,
    source: Source,
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    header: Source = "",
    compile_options: Mapping[str, Any] | None = None,
) -> Kernel: ...
@_also_by_dictionary
def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: Source,
    header: Source = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, Any] | None = None,
) -> Kernel:
    """A kernel from a body in Metal.

    The body is the code of one thread; a call gives the number of threads. Kiln writes the function around the body,
    from the names given here and from the arguments of a call. In the body,

    * an input ``a`` is a pointer to its elements, ``const device T*``. ``T`` is the Metal type of its dtype: float32 is
      ``float``, uint8 is ``uint8_t``, bool is ``bool``. With fewer than 8 elements it is ``const constant T*``; without
      dimensions it is ``const constant T&``, so that ``a`` is the number itself;
    * an output ``b`` is ``device T*``, row-contiguous, or ``device atomic<T>*``;
    * ``a_shape``, ``a_strides`` (in elements) and ``a_ndim`` describe an input ``a`` that has dimensions;
    * Metal's attributes are available without a declaration: ``thread_position_in_grid`` (``uint3``),
      ``threads_per_grid`` (``uint3``), ``thread_index_in_simdgroup`` (``uint``) and so on.

    Example:
      >>> import kiln
      >>> import numpy as np
      >>> add = kiln.metal_kernel(
      ...     name="add",
      ...     input_names=["a", "b"],
      ...     output_names=["sum"],
      ...     source="uint i = thread_position_in_grid.x; sum[i] = a[i] + b;",
      ... )
      >>> a = np.array([1, 2, 3], np.float32)
      >>> (sum,) = add(
      ...     inputs=[a, 0.5],
      ...     output_shapes=[a.shape],
      ...     output_dtypes=[a.dtype],
      ...     grid=(3, 1, 1),
      ...     threadgroup=(3, 1, 1),
      ... )
      >>> print(sum)
      [1.5 2.5 3.5]

    Args:
      name: any text. It appears in messages and, as an identifier, in the generated text. Kernels of one name do not mix.
      input_names: the names of the inputs in the body: identifiers, each used once. There may be none.
      output_names: the names of the outputs in the body; at least one.
      source: the body of the function without its braces, as a string; or a ``pathlib.Path`` of the file with the body.
        A string is always text, also if it looks like a path.
      header: text, or a path, that precedes the function: helpers, types, constants, macros. ``metal_stdlib`` and MLX's
        helpers (``elem_to_loc``, ``ceildiv``, …) are available without an include.
      ensure_row_contiguous: whether to copy an input that is not row-contiguous (a transposed array, a slice) before the
        kernel runs. Otherwise the body has to use ``a_strides``, which may be negative.
      atomic_outputs: whether outputs are ``device atomic<T>*``, for ``atomic_fetch_add_explicit`` and similar functions.
        Their dtypes are then those of Metal's atomics: int32, uint32, float32, bool, uint64.
      compile_options: a dict of

        * ``math_mode``: ``"safe"`` (IEEE arithmetic as written, the default), ``"relaxed"`` or ``"fast"`` (what
          Metal's modes of these names permit);
        * ``bounds``: ``"on"`` or ``"off"``: whether accesses outside an argument are guarded. A guarded load gives
          zero, a guarded store or atomic does nothing; without guards they are undefined. The default is
          ``KILN_BOUNDS``, or on;
        * ``specialize``: ``True`` or ``False``: whether shapes become constants in the machine code. It is then compiled
          for each of the first four combinations of shapes, and once for all others. On a GPU the grid and the sizes
          of all arrays count as shapes, so that most accesses need no bounds check. The sizes of threadgroups
          are constants, too, for the first 16. The default is ``KILN_SPECIALIZE``, or true;
        * ``include_dirs``: a list of folders to search for ``#include <…>``, in order, and for an ``#include "…"`` that
          is not in the folder of the including file;
        * ``writable_inputs``: a list of inputs that the body may write through a cast (``(device float*)cache``), such as
          a cache to which each launch appends. They are written in place: each must be a writable array, row-contiguous
          unless ``ensure_row_contiguous=False``, and must not overlap another array of the call. A body that writes any
          other input is a ``kiln.UnsupportedError``.

    Returns:
      A ``Kernel``. A call compiles it, runs it and returns a list of arrays; ``help(kiln.Kernel.__call__)`` explains the
      keywords of a call.

    Raises:
      TypeError: an argument is of the wrong kind, or unknown.
      ValueError: a name is not an identifier, is a keyword, or is used twice; there is no output; a compile option has an
        invalid value; a file is missing, is not UTF-8, or cannot be read.

    Files are read when the kernel is made; later changes have no effect.

    An older form, ``metal_kernel(name, source, ensure_row_contiguous=True, atomic_outputs=False, header="")``, takes
    the names from its calls, whose ``inputs``, ``output_shapes``, ``output_dtypes`` and ``template`` are dicts; it
    returns a dict. A string or a path as the second argument, or no ``input_names``, selects it.
    """
    named = _by_names(
        name, input_names, output_names, source, header, ensure_row_contiguous, atomic_outputs, compile_options
    )
    return _make("metal_kernel", **named)


def cuda_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: Source,
    header: Source = "",
    ensure_row_contiguous: bool = True,
    shared_memory: int = 0,
    compile_options: Mapping[str, Any] | None = None,
) -> Kernel:
    """A kernel from a body in CUDA.

    It runs where its arrays are: on an NVIDIA GPU or on the CPU. Whole blocks run: the grid is rounded up to a multiple
    of the block, so the body has to check that its thread is within the arrays.

    In the body an input ``a`` is ``const T*``, also without dimensions. ``a_shape`` and ``a_strides`` are ``Shape`` and
    ``Strides`` (``a_shape[0]``, ``a_shape.size()``) of at most 10 dimensions, and ``a_ndim`` is an ``int``. Template
    arguments are declared at the head of the body.

    Example:
      >>> import kiln
      >>> import numpy as np
      >>> double = kiln.cuda_kernel(
      ...     name="double_it",
      ...     input_names=["a"],
      ...     output_names=["b"],
      ...     source="int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < a_shape[0]) b[i] = 2 * a[i];",
      ... )
      >>> a = np.arange(8, dtype=np.float32)
      >>> (b,) = double(
      ...     inputs=[a],
      ...     output_shapes=[a.shape],
      ...     output_dtypes=[a.dtype],
      ...     grid=(8, 1, 1),
      ...     threadgroup=(8, 1, 1),
      ... )
      >>> print(b)
      [ 0.  2.  4.  6.  8. 10. 12. 14.]

    Args:
      name, input_names, output_names, source, header, ensure_row_contiguous, compile_options: as for
        ``metal_kernel``.
      shared_memory: dynamic shared memory of a block, in bytes; at least 0.

    Returns:
      A ``Kernel``.

    Raises:
      ValueError, TypeError: an argument is wrong, as for ``metal_kernel``.
    """
    return cuda_kernel_for(
        "",
        Kernel,
        name,
        input_names,
        output_names,
        source,
        header,
        ensure_row_contiguous,
        shared_memory,
        compile_options,
    )


class MetalKernel:
    """MLX's oldest form of a Metal kernel: grid and outputs belong to the kernel, not to a call.

    A call names the inputs by its keywords. ``inp_shape``, ``inp_strides`` and ``inp_ndim`` are always passed for an
    input ``inp`` that has dimensions; strides are ``const constant size_t*``.

    Example:
      >>> import kiln
      >>> import numpy as np
      >>> scale = kiln.MetalKernel(
      ...     name="scale",
      ...     source="uint i = thread_position_in_grid.x; out[i] = inp[i] * FACTOR;",
      ...     grid=(3, 1, 1),
      ...     threadgroup=(3, 1, 1),
      ...     output_shapes={"out": (3,)},
      ...     output_dtypes={"out": "int32"},
      ... )
      >>> scale.template(FACTOR=10)
      >>> print(scale(inp=np.array([1, 2, 3], np.int32))["out"])
      [10 20 30]

    Args:
      name, source: as for ``metal_kernel``.
      grid, threadgroup: an int or 1 to 3 ints each, in threads, as for ``Kernel.__call__``.
      output_shapes: a dict from names to shapes; its order is that of the outputs.
      output_dtypes: a dict from the same names to dtypes.
      ensure_row_contiguous, header, atomic_outputs, compile_options: as for ``metal_kernel``.
      verbose: whether each call prints the generated text.
      init_value: the initial value of all elements of all outputs.

    Raises:
      ValueError, TypeError: an argument is wrong. A call reads the arguments that only it needs, and raises then.
    """

    _library = ""
    _kind = Kernel

    def __init__(
        self,
        name: str,
        source: Source,
        grid: SupportsIndex | Sequence[SupportsIndex],
        threadgroup: SupportsIndex | Sequence[SupportsIndex],
        output_shapes: Mapping[str, Sequence[SupportsIndex]],
        output_dtypes: Mapping[str, Any],
        ensure_row_contiguous: bool = True,
        verbose: bool = False,
        header: Source = "",
        atomic_outputs: bool = False,
        init_value: SupportsFloat | SupportsIndex | None = None,
        compile_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._kernel = _make(
            "metal_kernel",
            name=name,
            input_names=None,
            output_names=None,
            source=source,
            header=header,
            ensure_row_contiguous=ensure_row_contiguous,
            atomic_outputs=atomic_outputs,
            compile_options=compile_options,
            always_shapes=True,
            library=self._library,
            kind=self._kind,
        )
        self._call: dict[str, Any] = {
            "grid": grid,
            "threadgroup": threadgroup,
            "output_shapes": output_shapes,
            "output_dtypes": output_dtypes,
            "init_value": init_value,
            "verbose": verbose,
        }
        self._template: dict[str, Any] = {}

    def template(self, /, **arguments: Any) -> None:
        """Sets the template arguments of later calls by name, and replaces those set before.

        A value is a dtype (a string, or a dtype of any array library), a 32-bit int or a bool. The call checks them.
        """
        self._template = dict(arguments)

    def __call__(self, /, **inputs: Any) -> dict[str, Any]:
        """Runs the kernel with the inputs by name: arrays of one library, or numbers.

        Returns:
          A dict of the outputs by their names, in the order of ``output_shapes``.

        Raises what ``Kernel.__call__`` raises.
        """
        return self._kernel(inputs=inputs, template=self._template, **self._call)

    def source_for(self, /, **inputs: Any) -> str:
        """The text that a call with these inputs compiles, signature and all. Runs and compiles nothing."""
        return self._kernel.source_for(inputs=inputs, template=self._template, **self._call)

    def compile(self, /, **inputs: Any) -> _core.CompiledKernel:
        """Compiles now what a call with these inputs would run, and runs nothing. Raises what the call would raise."""
        return self._kernel.compile(inputs=inputs, template=self._template, **self._call)

    @property
    def name(self) -> str:
        """The name it was made with."""
        return self._kernel.name

    @property
    def source(self) -> str:
        """The body; of a kernel that was made from a file, what the file held then."""
        return self._kernel.source

    @property
    def header(self) -> str:
        """The text before the function; of a kernel that was made from a file, what the file held then."""
        return self._kernel.header

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, as a new list. Those of the inputs come with a call."""
        return list(self._call["output_shapes"])

    @property
    def options(self) -> dict[str, Any]:
        """``ensure_row_contiguous``, ``atomic_outputs`` and ``compile_options``, as ``Kernel.options``."""
        return self._kernel.options

    @property
    def history(self) -> list[_core.Launch]:
        """The last 1,000 launches, oldest first. With MLX arrays a launch is there when the result was evaluated."""
        return self._kernel.history

    def __repr__(self) -> str:
        return f"<kiln.MetalKernel `{self.name}`>"
