"""Functions of arrays, which array libraries can transform: a kernel with its shapes, its grid and its rules.

A kernel's call says how large its outputs and its grid are with numbers, so nothing but a launch can be made of it. A
function says the same by what computes these numbers from shapes and dtypes. That is all that a library needs which
traces or transforms a program before there are elements: PyTorch's compiler and its vmap, JAX's jit, MLX's shapeless
graphs. Derivatives and batches come from rules, which are functions of arrays themselves, so one set of rules serves
every library and every transformation of transformations.

Each library has its own way to be told of a function; those are in `_functions_torch.py`, `_functions_jax.py` and
`_functions_mlx.py`. NumPy and CuPy transform nothing, and are called at once.

A launch is identified by its text: the kernel's texts, names and options, and the template arguments, as JSON. It is what
a library's graph keeps, so that a graph which is stored finds the kernel in another process, which has not made it.
(A number of this process would find another kernel there, and a hash none.)
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import itertools
import json
import operator
import os
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kiln import _core
from kiln._core import Kernel

_Rule = TypeVar("_Rule", bound=Callable[..., Any])


class ArraySpec:
    """The shape and dtype of an input, which a function's callables receive in place of the array.

    A library may trace a program without knowing all sizes. It then passes symbols for them, which can be added,
    multiplied and divided.
    """

    __slots__ = ("dtype", "shape")

    shape: tuple[Any, ...]
    """Its sizes, the slowest dimension first: ints, or symbols for sizes that are not known yet."""

    dtype: str
    """Such as ``"float32"``."""

    def __init__(self, shape: tuple[Any, ...], dtype: str) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """How many elements it has."""
        size = 1
        for dimension in self.shape:
            size = size * dimension
        return size

    def __repr__(self) -> str:
        return f"ArraySpec(shape={self.shape}, dtype={self.dtype!r})"


class Plan(NamedTuple):
    """What a launch of a function needs beside arrays. Sizes may be symbolic."""

    output_shapes: tuple[tuple[Any, ...], ...]
    output_dtypes: tuple[str, ...]
    grid: tuple[Any, Any, Any]
    threadgroup: tuple[Any, Any, Any]
    template: tuple[tuple[str, Any], ...]
    init_value: float | int | None


# ---- Kernels by their texts.

_kernels: dict[str, Kernel] = {}
_lock = threading.Lock()


def _renew_lock() -> None:
    """In a child that was forked while another thread held it. What it protects is whole whenever that may happen."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _spec_of_kernel(kernel: Kernel) -> dict[str, Any]:
    spec = _core.spec_of(kernel)
    # A function's results are those of its inputs' library, and it writes none of them.
    spec["library"] = ""
    spec["allows_input_stores"] = False
    return spec


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def parse_launch(text: str) -> tuple[Kernel, list[tuple[str, Any]]]:
    """The kernel and the template arguments of a launch's text. Equal kernels are one."""
    parts = json.loads(text)
    key = _as_json(parts["kernel"])
    with _lock:
        kernel = _kernels.get(key)
        if kernel is None:
            kernel = _kernels[key] = Kernel(**parts["kernel"])
    return kernel, [(name, value) for name, value in parts["template"]]


# ---- Pickling.


def restore_kernel(module: str, name: str, made: dict[str, Any]) -> Kernel:
    """What ``Kernel.__reduce__`` names."""
    kind = getattr(importlib.import_module(module), name)
    kernel: Kernel = kind(**made)
    return kernel


def _restore_function(
    kernel: Kernel, arguments: dict[str, Any], rules: dict[str, Any], sharding: Sharding | None = None
) -> Function:
    function = Function(kernel, **arguments)
    function._set_rules(rules)
    function._sharding = sharding
    return function


# ---- Functions.


def _refused_parameters(function: Callable[..., Any], count: int) -> str | None:
    """The parameters of a function that cannot be called with so many arguments. None where it can, or they are unknown."""
    try:
        # That of a wrapper is what is called, whatever it wraps.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return str(signature)
    return None


_numbers = itertools.count(1)
_PROCESS = uuid.uuid4().hex
# All of the process. Several have one reference where they are copies of each other, as unpickling makes them.
_functions: weakref.WeakSet[Function] = weakref.WeakSet()


def find_function(reference: str) -> Function | None:
    """A function of this process that has, or once had, such a ``reference``."""
    with _lock:
        return next((function for function in _functions if reference in function._references), None)


_by_handle: weakref.WeakValueDictionary[str, Function] = weakref.WeakValueDictionary()


def function_of(handle: str) -> Function:
    """The function that has, or once had, such a handle."""
    return _by_handle[handle]


def _call_at_once(function: Function, inputs: tuple[Any, ...]) -> Any:
    """NumPy, CuPy, numbers alone, and what comes by DLPack."""
    return function._launch(inputs)


# How a function is called with arrays of a library that transforms functions, by the library's name.
_calls: dict[str, Callable[[Function, tuple[Any, ...]], Any]] = {}
# And what is known of an input without elements, where the library has such arrays.
_spec_of: dict[str, Callable[[Function, int, Any], ArraySpec]] = {}
# The library that an array's type belongs to; empty for numbers and all others.
_met: dict[type, str] = {}


def _library_of(kind: type) -> str:
    """The key in `_calls`, where it then is."""
    if kind in _met:
        return _met[kind]
    library = ""
    roots = {base.__module__.partition(".")[0] for base in kind.__mro__ if isinstance(base.__module__, str)}
    for name in ("torch", "jax", "mlx"):
        if name in roots or (name == "jax" and "jaxlib" in roots):
            library = name
            module = importlib.import_module(f"kiln._functions_{name}")
            if hasattr(module, "_spec"):
                _spec_of[name] = module._spec
            _calls[name] = module.call
    _met[kind] = library
    return library


# Dynamo calls it where it would read it, which it cannot (torch.compiler.assume_constant_result, without PyTorch).
vars(_library_of)["_dynamo_marked_constant"] = True


class Size:
    """A size that is not known, in a callable of sizes: a sum, product or quotient of the inputs' dimensions, kept as
    the steps that compute it, in the order of a stack machine (``python/src/xla_function.cpp``).

    JAX has symbols of its own, which exist while it traces. The launch comes when it has forgotten them.
    """

    __slots__ = ("steps",)

    ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, CONSTANT, DIMENSION = range(7)

    def __init__(self, steps: tuple[int, ...]) -> None:
        self.steps = steps

    @staticmethod
    def steps_of(value: Any) -> tuple[int, ...]:
        if isinstance(value, Size):
            return value.steps
        return (Size.CONSTANT, operator.index(value))

    def _with(self, operation: int, left: Any, right: Any) -> Size:
        return Size((*Size.steps_of(left), *Size.steps_of(right), operation))

    def __add__(self, other: Any) -> Size:
        return self._with(Size.ADD, self, other)

    def __radd__(self, other: Any) -> Size:
        return self._with(Size.ADD, other, self)

    def __sub__(self, other: Any) -> Size:
        return self._with(Size.SUBTRACT, self, other)

    def __rsub__(self, other: Any) -> Size:
        return self._with(Size.SUBTRACT, other, self)

    def __mul__(self, other: Any) -> Size:
        return self._with(Size.MULTIPLY, self, other)

    def __rmul__(self, other: Any) -> Size:
        return self._with(Size.MULTIPLY, other, self)

    def __floordiv__(self, other: Any) -> Size:
        return self._with(Size.DIVIDE, self, other)

    def __rfloordiv__(self, other: Any) -> Size:
        return self._with(Size.DIVIDE, other, self)

    def __mod__(self, other: Any) -> Size:
        return self._with(Size.REMAINDER, self, other)

    def __rmod__(self, other: Any) -> Size:
        return self._with(Size.REMAINDER, other, self)

    def __neg__(self) -> Size:
        return self._with(Size.SUBTRACT, 0, self)

    def __pos__(self) -> Size:
        return self

    def _fail(self, *_: Any) -> Any:
        raise TypeError("a size that is not known yet can be added, multiplied and divided, and nothing else")

    __bool__ = __index__ = __int__ = __float__ = _fail
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _fail
    __hash__ = None  # type: ignore[assignment]


_RULES = ("vjp", "jvp", "vmap")
# What of a function is a value or a callable. (What reads them Dynamo reads too: that of PyTorch 2.8 knows no unions of
# types, as `list | tuple`.)
_ARGUMENTS = ("output_shapes", "output_dtypes", "grid", "threadgroup", "template", "init_value")


class Sharding(NamedTuple):
    """What ``Function.sharding`` says."""

    inputs: tuple[int | None, ...]
    outputs: tuple[int | str, ...]

    @classmethod
    def checked(cls, function: Function, inputs: Any, outputs: Any) -> Sharding:
        def is_axis(value: Any) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0

        for name, values, names, other in (
            ("inputs", inputs, function.input_names, None),
            ("outputs", outputs, function.output_names, "sum"),
        ):
            if not isinstance(values, (list, tuple)) or len(values) != len(names):
                raise ValueError(f"{function._prefix}Expected `{name}` to have a value for each of {', '.join(names)}.")
            for value in values:
                if not is_axis(value) and value != other:
                    raise ValueError(f"{function._prefix}Expected `{name}` to be axes or {other!r} but got {value!r}.")
        if all(axis is None for axis in inputs):
            raise ValueError(f"{function._prefix}Expected `inputs` to have an axis along which an input is cut.")
        return cls(tuple(inputs), tuple(outputs))


class Function:
    """A function of arrays, made of a kernel by ``Kernel.function``.

    It takes arrays of any supported library, in the order of the kernel's ``input_names``, or numbers in their place. It
    returns an array, or a tuple of them where the kernel has several outputs. What the array library does with functions
    it does with this one: PyTorch's ``torch.compile``, ``torch.export`` and meta tensors, JAX's ``jit``, MLX's
    ``compile``. For derivatives and batches it needs rules, which ``vjp``, ``jvp`` and ``vmap`` attach.

    Raises what ``Kernel.__call__`` raises, and ``TypeError`` where a transformation needs a rule that is missing.
    """

    def __init__(self, kernel: Kernel, **arguments: Any) -> None:
        spec = _spec_of_kernel(kernel)
        self._interface = f"{spec['dialect']}_kernel"
        self._prefix = f"[{self._interface}] "
        self.name = spec["name"]
        # As a function of Python's has it, which transformations use in their messages.
        self.__name__ = self.name
        if spec["input_names"] is None:
            raise ValueError(
                f"{self._prefix}`{self.name}` was made without `input_names`, and a function takes its arrays in their order."
            )
        if spec["writable_inputs"]:
            raise ValueError(
                f"{self._prefix}`{self.name}` writes inputs (`writable_inputs`), and a function of arrays writes none."
            )
        self.input_names: tuple[str, ...] = tuple(spec["input_names"])
        self.output_names: tuple[str, ...] = tuple(spec["output_names"])
        self._made_of = kernel
        self._kernel_json = _as_json(spec)
        self._kernel = parse_launch(f'{{"kernel":{self._kernel_json},"template":[]}}')[0]
        self._arguments = arguments
        self._references: set[str] = set()
        # Of batches: by which inputs have one.
        self._parts: dict[Any, Any] = {}
        self._set_rules(dict.fromkeys(_RULES))
        with _lock:
            _functions.add(self)
        self._keywords: dict[Any, dict[str, Any]] = {}
        # What libraries keep of it, by their names.
        self._compiled: dict[str, Any] = {}
        self._sharding: Sharding | None = None
        for name in _ARGUMENTS:
            if not callable(arguments[name]):
                self._check_value(name, arguments[name])
            elif (parameters := _refused_parameters(arguments[name], len(self.input_names))) is not None:
                raise TypeError(
                    f"{self._prefix}Expected `{name}` to take an argument for each input, ({', '.join(self.input_names)}), "
                    f"but got a function of {parameters}."
                )

    # ---- What users call beside the function itself.

    @property
    def history(self) -> list[_core.Launch]:
        """The last 1,000 launches of this function and of equal ones, oldest first, as ``Kernel.history`` lists them. Slices
        and batches along the grid have launches of their own, which are not there.
        """
        return self._kernel.history

    def vjp(self, rule: _Rule) -> _Rule:
        """Attaches the rule for gradients (reverse mode); also as a decorator. Returns the rule.

        ``rule(primals, cotangents, outputs)`` returns a gradient for each input, ``None`` for one that has none. As in
        ``mx.custom_function``, each of the three is an array where the kernel has one input or one output, and a tuple
        of arrays where it has several; so is what the rule returns. It computes with functions of arrays and with
        operators, so that it works with every library, and is itself differentiated for derivatives of higher order.
        """
        return self._attach("vjp", rule)

    def jvp(self, rule: _Rule) -> _Rule:
        """Attaches the rule for directional derivatives (forward mode); also as a decorator. Returns the rule.

        ``rule(primals, tangents)`` returns a tangent for each output. A tangent that is zero is ``None``. Arrays and
        tuples are as in ``vjp``.
        """
        return self._attach("jvp", rule)

    def vmap(self, rule: _Rule) -> _Rule:
        """Attaches the rule for batches; also as a decorator. Returns the rule.

        ``rule(inputs, axes)`` returns the outputs for a whole batch and the axis of the batch in each:
        ``(outputs, axes)``. ``axes`` has the axis of the batch in each input, ``None`` for an input that all have in
        common. Arrays and tuples are as in ``vjp``.

        Two strings stand for rules. ``"grid"`` makes the batch one more axis of the grid: the grids of its elements lie
        one after the other along z, in one launch, and each sees its own positions, sizes and arrays. Derivatives of a
        batch come from the function's other rules. Each element has the bits of a launch of its own: accesses outside of
        an array reach no neighbour in the batch (except in CUDA bodies on a GPU, which have no bounds checks).
        ``"sequential"`` launches the kernel for one element of the batch after the other.

        Raises ``UnsupportedError`` with the line of what sees the grid of the launch in spite of that, as ``blockIdx`` in
        the header of a CUDA kernel.
        """
        if isinstance(rule, str):
            if rule not in ("grid", "sequential"):
                raise ValueError(
                    f"{self._prefix}Expected `vmap` to be a function, 'grid' or 'sequential' but got {rule!r}."
                )
            self._set_rules({**self._rules, "vmap": rule})
            if rule == "grid":
                try:
                    self._grid_parts().batched_function(self, (True,) * len(self.input_names))
                except Exception:
                    self._set_rules({**self._rules, "vmap": None})
                    raise
            return rule
        return self._attach("vmap", rule)

    def _attach(self, name: str, rule: _Rule) -> _Rule:
        if not callable(rule):
            kinds = "a function, 'grid' or 'sequential'" if name == "vmap" else "a function"
            raise TypeError(f"{self._prefix}Expected `{name}` to be {kinds} but got {_core.kind_of(rule)}.")
        inputs = self.input_names[0] if len(self.input_names) == 1 else f"({', '.join(self.input_names)})"
        others = {"vjp": ("cotangents", "outputs"), "jvp": ("tangents",), "vmap": ("axes",)}[name]
        if (parameters := _refused_parameters(rule, 1 + len(others))) is not None:
            raise TypeError(
                f"{self._prefix}Expected the {name} rule of `{self.name}` to be called as "
                f"`rule({', '.join((inputs, *others))})` but got a function of {parameters}."
            )
        self._set_rules({**self._rules, name: rule})
        return rule

    # ---- Several devices.

    def shard(self, index: Any, count: int, axis: int = 0) -> Function:
        """A function that launches one of ``count`` slices of the grid, for one of as many devices.

        The grid is divided along its ``axis`` (0 is x) into whole threadgroups. Positions and sizes are those of the
        whole grid, so that all slices together give the bits of one launch. Outputs have their whole shapes: what the
        threads of other slices would write is ``init_value`` where there is one, else undefined. The slice has no rules,
        since they are the whole function's.

        ``index`` is a number. In a program that runs on several devices at once, it is an array, as
        ``jax.lax.axis_index("devices")`` is; the slices must then be of one size.

        Raises ``ValueError`` for an index or an axis that is not there, and ``UnsupportedError`` as ``vmap`` does.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"{self._prefix}Expected `count` to be at least 1 but got {count!r}.")
        if axis not in (0, 1, 2):
            raise ValueError(f"{self._prefix}Expected `axis` to be 0, 1 or 2 but got {axis!r}.")
        if isinstance(index, int) and not 0 <= index < count:
            raise ValueError(f"{self._prefix}Expected `index` to be in [0, {count - 1}] but got {index}.")
        result: Function = self._grid_parts().Slice(self, index, count, axis)
        return result

    def sharding(self, inputs: Sequence[int | None], outputs: Sequence[int | str]) -> Function:
        """Says how a call can be divided among devices: each calls the function with its parts of the inputs.

        ``inputs`` has for each input the axis along which it is cut, or ``None`` for one that every device has whole.
        ``outputs`` has for each output the axis along which the results are parts of the whole's, or ``"sum"`` where
        they are summed. Returns the function.

        PyTorch's ``DTensor``s and JAX's sharded arrays then follow it; without it they are an error.
        """
        self._sharding = Sharding.checked(self, inputs, outputs)
        return self

    @staticmethod
    def _grid_parts() -> Any:
        return importlib.import_module("kiln._grid_parts")

    def __call__(self, /, *inputs: Any) -> Any:
        """Calls the function with an array, or a number, for each input of the kernel.

        Raises:
          ValueError, TypeError: there are more or fewer inputs; a callable fails; a transformation needs a rule that the
            function does not have.
          Exception: all that ``Kernel.__call__`` raises.
        """
        for value in inputs:
            library = _library_of(type(value))
            # Arrays of NumPy's may stand beside those of JAX.
            if library:
                return _calls[library](self, inputs)
        return _call_at_once(self, inputs)

    def __repr__(self) -> str:
        rules = [name for name in _RULES if self._rules[name] is not None]
        return f"<kiln.Function of `{self.name}`{' with ' + ', '.join(rules) if rules else ''}>"

    def __reduce__(self) -> Any:
        return _restore_function, (self._made_of, self._arguments, self._rules, self._sharding)

    # ---- What a launch needs.

    def _numbers(self, specs: tuple[ArraySpec, ...]) -> tuple[Any, ...]:
        """What the last inputs are, which depends on the shapes of the others."""
        return ()

    def _launch(self, inputs: tuple[Any, ...]) -> Any:
        """Calls the kernel, with arrays that have elements."""
        outputs = self._kernel(inputs=inputs, **self._call_of(inputs))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _call_of(self, inputs: tuple[Any, ...]) -> dict[str, Any]:
        """The other keywords of that call. They are the same objects for inputs of the same shapes and dtypes, which the
        kernel does not read again."""
        try:
            key: Any = tuple([(x.shape, x.dtype) for x in inputs])
            keywords = self._keywords.get(key)
        except (AttributeError, TypeError):  # numbers, and what only speaks DLPack
            key = keywords = None
        if keywords is None:
            self._check_count(inputs)
            plan = self._plan(tuple([spec_of_input(value) for value in inputs]))
            keywords = plan._asdict()
            if key is not None:
                # As many as a program has that alternates between a few shapes.
                if len(self._keywords) >= 64:
                    self._keywords.clear()
                self._keywords[key] = keywords
        return keywords

    def _check_count(self, inputs: Sequence[Any]) -> None:
        if len(inputs) != len(self.input_names):
            wanted = len(self.input_names)
            names = f" ({', '.join(self.input_names)})" if wanted else ""
            raise ValueError(
                f"{self._prefix}`{self.name}` takes {wanted} input{'' if wanted == 1 else 's'}{names} but got {len(inputs)}."
            )

    def _bare(self, outputs: Sequence[Any]) -> Any:
        """What a function returns: an array or a tuple of them."""
        return outputs[0] if len(self.output_names) == 1 else tuple(outputs)

    def _plan(self, specs: tuple[ArraySpec, ...]) -> Plan:
        """What a launch with such inputs needs; sizes may be symbolic. Raises ValueError and TypeError."""
        return Plan(
            self._shapes("output_shapes", self._value("output_shapes", specs)),
            self._dtypes("output_dtypes", self._value("output_dtypes", specs)),
            self._extent("grid", self._value("grid", specs)),
            self._extent("threadgroup", self._value("threadgroup", specs)),
            self._template(self._value("template", specs)),
            self._number_or_none("init_value", self._value("init_value", specs)),
        )

    def _extents_of(self, specs: tuple[ArraySpec, ...]) -> tuple[Any, ...]:
        """Grid and threadgroup alone, of sizes that may be ``Size``s."""
        return (
            *self._extent("grid", self._value("grid", specs)),
            *self._extent("threadgroup", self._value("threadgroup", specs)),
        )

    def _text(self, plan: Plan) -> str:
        """What identifies a launch, for every process."""
        # As JSON has it. Dynamo reads this too, which knows nothing of Python's own writer.
        pairs = []
        for name, value in plan.template:
            if value is True or value is False:
                shown = "true" if value else "false"
            else:
                shown = f'"{value}"' if isinstance(value, str) else f"{value}"
            pairs.append(f'["{name}",{shown}]')
        return f'{{"kernel":{self._kernel_json},"template":[{",".join(pairs)}]}}'

    def _value(self, name: str, specs: tuple[ArraySpec, ...]) -> Any:
        value = self._arguments[name]
        return value(*specs) if callable(value) else value

    def _check_value(self, name: str, value: Any) -> None:
        if name == "output_shapes":
            self._shapes(name, value)
        elif name == "output_dtypes":
            self._dtypes(name, value)
        elif name in ("grid", "threadgroup"):
            self._extent(name, value)
        elif name == "template":
            self._template(value)
        else:
            self._number_or_none(name, value)

    def _expected(self, name: str, what: str, value: Any) -> TypeError:
        return TypeError(f"{self._prefix}Expected `{name}` to be {what} but got {_core.kind_of(value)}.")

    def _items(self, name: str, what: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise self._expected(name, what, value)
        return tuple(value)

    def _size(self, name: str, value: Any) -> Any:
        """A size as a plan has it: an int, or a symbol as it is."""
        if type(value) is int:
            return value
        kind = type(value)
        module = kind.__module__
        if kind is Size or kind.__name__ in ("SymInt", "_DimExpr"):
            return value
        # An array of one element is data, whatever it is convertible to. NumPy's own sizes are its scalars.
        if hasattr(kind, "__dlpack__") and not module.startswith("numpy"):
            raise TypeError(
                f"{self._prefix}Expected `{name}` to be computed from shapes and dtypes but got {_core.kind_of(value)}, "
                "whose elements are data."
            )
        try:
            return operator.index(value)
        except TypeError as error:
            raise self._expected(name, "made of ints", value) from error

    def _shapes(self, name: str, value: Any) -> tuple[tuple[Any, ...], ...]:
        shapes = self._items(name, "a list of shapes", value)
        if shapes and all([type(shape) is int for shape in shapes]):
            # `x.shape` in the place of a list of shapes, or `[x.shape[0]]`.
            is_list = not isinstance(value, tuple)
            is_one_each = is_list and len(shapes) == len(self.output_names)
            raise TypeError(
                f"{self._prefix}Expected `{name}` to be a list of shapes but got "
                f"{'a list of ints' if is_list else 'one shape'}: write "
                f"{[(size,) for size in shapes] if is_one_each else [shapes]}."
            )
        self._check_outputs(name, shapes)
        return tuple(
            [tuple([self._size(name, n) for n in self._items(name, "a list of shapes", shape)]) for shape in shapes]
        )

    def _check_outputs(self, name: str, values: tuple[Any, ...]) -> None:
        if len(values) != len(self.output_names):
            raise ValueError(
                f"{self._prefix}Expected `{name}` to have size {len(self.output_names)} but got size {len(values)}."
            )

    def _dtypes(self, name: str, value: Any) -> tuple[str, ...]:
        dtypes = self._items(name, "a list of dtypes", value)
        self._check_outputs(name, dtypes)
        return tuple([self._dtype(name, dtype) for dtype in dtypes])

    def _dtype(self, name: str, value: Any) -> str:
        if isinstance(value, str) and value in _core.DTYPES:
            return value
        known = _core.dtype_name(value)
        if known is None:
            shown = repr(value) if isinstance(value, str) else _core.kind_of(value)
            raise TypeError(f"{self._prefix}Expected `{name}` to be made of dtypes but got {shown}.")
        return known

    def _extent(self, name: str, value: Any) -> tuple[Any, Any, Any]:
        if not isinstance(value, (list, tuple)):
            value = (value,)
        sizes = [self._size(name, size) for size in value]
        if not 1 <= len(sizes) <= 3:
            raise ValueError(f"{self._prefix}Expected `{name}` to have 1 to 3 dimensions but got {len(sizes)}.")
        while len(sizes) < 3:
            sizes.append(1)
        return sizes[0], sizes[1], sizes[2]

    def _template(self, value: Any) -> tuple[tuple[str, Any], ...]:
        if value is None:
            return ()
        pairs = list(value.items()) if isinstance(value, Mapping) else self._items("template", "a list of pairs", value)
        result = []
        for pair in pairs:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], str):
                raise self._expected("template", "a list of pairs", pair)
            if not pair[0].isidentifier():
                raise ValueError(
                    f"{self._prefix}Expected the names in `template` to be identifiers but got {pair[0]!r}."
                )
            result.append((pair[0], self._template_value(pair[1])))
        return tuple(result)

    def _template_value(self, value: Any) -> Any:
        if isinstance(value, (bool, int)):
            return value
        if type(value).__name__ in ("SymInt", "_DimExpr"):
            return operator.index(value)  # code is made for it
        known = value if isinstance(value, str) and value in _core.DTYPES else _core.dtype_name(value)
        return known if known is not None else self._size("template", value)

    def _number_or_none(self, name: str, value: Any) -> float | int | None:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if hasattr(type(value), "__dlpack__") and not type(value).__module__.startswith("numpy"):
            raise TypeError(
                f"{self._prefix}Expected `{name}` to be computed from shapes and dtypes but got {_core.kind_of(value)}, "
                "whose elements are data."
            )
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise self._expected(name, "a number", value) from error

    # ---- Rules, as libraries apply them: with tuples in the place of single arrays.

    def _set_rules(self, rules: dict[str, Any]) -> None:
        self._rules = rules
        # Another one for other rules: what a library has compiled of the function looks at the number alone.
        self._number = next(_numbers)
        self._handle = str(self._number)  # which Dynamo does not take for a size
        _by_handle[self._handle] = self
        references = [[name, self._rule_reference(rule)] for name, rule in rules.items()]
        content = _as_json([self._kernel_json, *references])
        # What `find_function` finds it by. The same in every process where kernel and rules are the same functions of
        # modules; nowhere else is there a function of that reference.
        self._reference = hashlib.sha256(content.encode()).hexdigest()
        self._references = {*self._references, self._reference}
        self._parts.clear()

    def _rule_reference(self, rule: Any) -> str:
        if rule is None or isinstance(rule, str):
            return str(rule)
        module, name = getattr(rule, "__module__", None), getattr(rule, "__qualname__", "<")
        code = getattr(rule, "__code__", None)
        if code is None or module in (None, "__main__") or "<" in name or getattr(rule, "__closure__", None):
            return f"{_PROCESS}:{self._number}:{id(rule)}"
        # Several functions of a module may have one name, as `_`.
        return f"{module}:{name}:{code.co_firstlineno}"

    def _has(self, rule: str) -> bool:
        """Whether a rule is attached."""
        return self._rules[rule] is not None

    def _missing(self, rule: str, library: str, transformation: str, index: int | None = None) -> TypeError:
        """The error of a transformation that needs a rule which is missing; of the input `index`, where it is one's."""
        whom = f"`{self.name}`" if index is None else f"Input `{self.input_names[index]}` of `{self.name}`"
        what = {
            "vjp": "is differentiated" if index is None else "requires a gradient",
            "jvp": "is differentiated in forward mode" if index is None else "has a tangent",
            "vmap": "is batched",
        }[rule]
        remedy = f"attach one with `f.{rule}(rule)`" + (' or `f.vmap("grid")`' if rule == "vmap" else "")
        return self._error(
            f"{whom} {what} ({library}, {transformation}), and the function has no {rule} rule: {remedy}."
        )

    def _error(self, message: str) -> TypeError:
        """An error of a call, which begins with the interface's name."""
        return TypeError(self._prefix + message)

    def _wrong_dtype(self, index: int, dtype: Any) -> TypeError:
        """The error of an input whose dtype no kernel takes."""
        return TypeError(
            f"{self._prefix}Input `{self.input_names[index]}` has dtype {dtype}, which no kernel can take."
        )

    def _apply_vjp(self, primals: Sequence[Any], cotangents: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of the inputs, ``None`` for those that have none."""
        result = self._rules["vjp"](self._bare_inputs(primals), self._bare(cotangents), self._bare(outputs))
        gradients = self._results("vjp", "input", result, self.input_names)
        for name, primal, gradient in zip(self.input_names, primals, gradients, strict=True):
            if gradient is not None and tuple(gradient.shape) != tuple(primal.shape):
                raise ValueError(
                    f"{self._prefix}The vjp rule of `{self.name}` gave a gradient of shape {tuple(gradient.shape)} for "
                    f"input `{name}` of shape {tuple(primal.shape)}."
                )
        return gradients

    def _apply_jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        """The tangents of the outputs."""
        result = self._rules["jvp"](self._bare_inputs(primals), self._bare_inputs(tangents))
        return self._results("jvp", "output", result, self.output_names)

    def _apply_vmap(self, inputs: Sequence[Any], axes: Sequence[int | None]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The outputs of a batch and the batch's axis in each, by a rule that is a function."""
        if self._rules["vmap"] == "grid":
            result = self._grid_parts().apply_vmap(self, inputs, axes)
        else:
            result = self._rules["vmap"](self._bare_inputs(inputs), self._bare_inputs(axes))
        if not isinstance(result, (list, tuple)) or len(result) != 2:
            raise TypeError(
                f"{self._prefix}Expected the vmap rule of `{self.name}` to return the outputs and their axes but got "
                f"{_core.kind_of(result)}."
            )
        outputs = self._results("vmap", "output", result[0], self.output_names)
        out_axes = self._results("vmap", "output", result[1], self.output_names)
        return outputs, out_axes

    def _is_sequential(self) -> bool:
        """Whether a batch is one launch after the other."""
        return bool(self._rules["vmap"] == "sequential")

    def _bare_inputs(self, values: Sequence[Any]) -> Any:
        return values[0] if len(self.input_names) == 1 else tuple(values)

    def _results(self, rule: str, kind: str, result: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
        if not isinstance(result, (list, tuple)):
            result = (result,)
        if len(result) != len(names):
            raise ValueError(
                f"{self._prefix}Expected the {rule} rule of `{self.name}` to return a value for each of {len(names)} "
                f"{kind}{'' if len(names) == 1 else 's'} but got {len(result)}."
            )
        return tuple(result)


def spec_of_input(value: Any) -> ArraySpec:
    """Of an array with elements, or of a number."""
    if isinstance(value, bool):
        return ArraySpec((), "bool")
    if isinstance(value, int):
        return ArraySpec((), "int32" if -(2**31) <= value < 2**31 else "int64")
    if isinstance(value, float):
        return ArraySpec((), "float32")
    if isinstance(value, complex):
        return ArraySpec((), "complex64")
    dtype = getattr(value, "dtype", None)
    return ArraySpec(tuple(getattr(value, "shape", ())), _core.dtype_name(dtype) or str(dtype))


def make_function(
    kernel: Kernel,
    *,
    output_shapes: Any,
    output_dtypes: Any,
    grid: Any,
    threadgroup: Any,
    template: Any = None,
    init_value: Any = None,
) -> Function:
    """What ``Kernel.function`` does."""
    return Function(
        kernel,
        output_shapes=output_shapes,
        output_dtypes=output_dtypes,
        grid=grid,
        threadgroup=threadgroup,
        template=template,
        init_value=init_value,
    )


make_function.__qualname__ = "function"  # in Python's messages about arguments


def array_namespace(*arrays: Any) -> Any:
    """The module whose functions compute with such arrays: ``numpy``, ``torch``, ``jax.numpy``, ``mlx.core``, ``cupy``.

    For rules of functions that need more than operators, and serve every library::

        @f.vmap
        def f_vmap(x, axis):
            xp = kiln.array_namespace(x)
            return f(xp.moveaxis(x, axis, 0)), 0

    The first array of a library that Kiln knows decides; numbers and ``None`` have none. The functions that all these
    modules have are those of the array API standard and of NumPy: ``moveaxis``, ``broadcast_to``, ``zeros_like``,
    ``stack``, ``where``, ``exp``.

    Raises:
      TypeError: there is none.
    """
    for array in arrays:
        for base in type(array).__mro__:
            root = base.__module__.partition(".")[0]
            module = _NAMESPACES.get(root)
            if module is not None:
                return importlib.import_module(module)
    raise TypeError("[array_namespace] Expected an array of NumPy, MLX, PyTorch, JAX or CuPy.")


_NAMESPACES = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax.numpy",
    "jaxlib": "jax.numpy",
    "mlx": "mlx.core",
    "cupy": "cupy",
}
