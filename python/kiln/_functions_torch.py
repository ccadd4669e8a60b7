"""Functions of arrays in PyTorch.

One operator, ``kiln::launch``, is every launch that PyTorch must see: it has the launch's text (`_functions.py`), so a
program that ``torch.export`` or AOTInductor has stored runs in a process that has not made the kernel. Around it stands
an ``autograd.Function`` with the rules.

What was tried and does not serve: ``torch.library.custom_op`` costs twice the dispatch; ``register_autograd`` fails under
``torch.func.grad`` and drops tangents without an error; an ``autograd.Function`` that Dynamo reads can have no ``jvp``, and
costs six microseconds of guards at each call; dtypes as ``ScalarType[]`` fail in AOTInductor, so they are in the text.

A call of plain tensors of which no gradient is wanted goes to the kernel itself: the operator costs several times what
a small launch does.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any, NamedTuple

import torch
import torch.autograd.forward_ad as _forward_ad
from torch import _C

from kiln import _core, _functions
from kiln._functions import ArraySpec, Function, Plan

_DTYPES: list[torch.dtype] = [getattr(torch, name) for name in _core.DTYPES if hasattr(torch, name)]
_CODES: dict[torch.dtype, int] = {dtype: code for code, dtype in enumerate(_DTYPES)}
_NAMES: dict[torch.dtype, str] = {dtype: str(dtype).removeprefix("torch.") for dtype in _DTYPES}
_BY_NAME: dict[str, int] = {name: _CODES[dtype] for dtype, name in _NAMES.items()}

# ---- The operator.

# Of arguments as few as there can be: each is read, checked and copied at each call. `text` says what is launched (`_text`),
# `sizes` how large it is: the dimensions of each output, then the grid's three and the threadgroup's three.
if not _core.has_defined_torch_operator():  # as where a program in C++ has, and then begins with Python
    _definition = torch.library.Library("kiln", "DEF")
    _definition.define(
        "launch(str text, Tensor[] inputs, SymInt[] sizes) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,)
    )
_library = torch.library.Library("kiln", "FRAGMENT")


class _Launch(NamedTuple):
    """What a text says."""

    kernel: _core.Kernel
    template: list[tuple[str, Any]]
    dtypes: list[torch.dtype]
    ranks: list[int]
    init_value: float | int | None
    function: str


_launches: dict[str, _Launch] = {}


def _parse(text: str) -> _Launch:
    launch = _launches.get(text)
    if launch is None:
        kernel, template = _functions.parse_launch(text)
        parts = json.loads(text)
        number = parts["init_value"]
        launch = _launches[text] = _Launch(
            kernel,
            template,
            [_DTYPES[_BY_NAME[dtype]] for dtype, _ in parts["outputs"]],
            [rank for _, rank in parts["outputs"]],
            None if number is None else float(number) if set(number) - set("-0123456789") else int(number),
            parts["function"],
        )
    return launch


def _split(sizes: Any, ranks: list[int]) -> list[list[Any]]:
    """Of each output, its shape; then those of the grid and the threadgroup."""
    result = []
    begin = 0
    for rank in [*ranks, 3, 3]:
        result.append(list(sizes[begin : begin + rank]))
        begin += rank
    return result


def _launch(text: str, inputs: list[torch.Tensor], sizes: list[int]) -> list[torch.Tensor]:
    """The operator for versions of PyTorch that take none in C++ with such arguments."""
    launch = _parse(text)
    # A stored program has the launch and not its rules: a gradient would end here.
    if torch.is_grad_enabled():
        for tensor in inputs:
            if tensor.requires_grad:
                raise TypeError(
                    "[kiln] An input of a launch of a stored program requires a gradient, and the program has no rule for "
                    "one: run it under torch.no_grad(), or call the function that it was made of."
                )
    *shapes, grid, threadgroup = _split(sizes, launch.ranks)
    result: list[torch.Tensor] = launch.kernel(
        inputs=inputs,
        output_shapes=shapes,
        output_dtypes=launch.dtypes,
        grid=tuple(grid),
        threadgroup=tuple(threadgroup),
        template=launch.template,
        init_value=launch.init_value,
    )
    return result


def _launch_fake(text: str, inputs: list[torch.Tensor], sizes: list[Any]) -> list[torch.Tensor]:
    launch = _parse(text)
    shapes = _split(sizes, launch.ranks)
    return [inputs[0].new_empty(shape, dtype=dtype) for shape, dtype in zip(shapes[:-2], launch.dtypes, strict=True)]


def _launch_batch(info: Any, in_dims: Any, text: str, inputs: list[torch.Tensor], sizes: list[Any]) -> Any:
    """The operator under ``torch.vmap``, where a program was compiled or exported that has it."""
    known = _functions.find_function(_parse(text).function)
    if known is None:
        raise TypeError(
            "[kiln] A launch of a stored program is batched (PyTorch, vmap), and the function that it was made by, with "
            "its rules, is not in this process: import the module that makes it."
        )
    before, _state.is_batching = _state.is_batching, True
    try:
        outputs, axes = _apply_batch(known, info.batch_size, inputs, in_dims[1])
    finally:
        _state.is_batching = before
    return list(outputs), list(axes)


def _apply_batch(function: Function, size: int, inputs: Any, axes: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    if not function._has("vmap"):
        raise function._missing("vmap", "PyTorch", "vmap")
    if not function._is_sequential():
        return function._apply_vmap(inputs, axes)
    launches = []
    for i in range(size):
        outputs = call(function, tuple([x if d is None else x.select(d, i) for x, d in zip(inputs, axes, strict=True)]))
        launches.append(outputs if isinstance(outputs, tuple) else (outputs,))
    if launches:
        return tuple([torch.stack(outputs) for outputs in zip(*launches, strict=True)]), (0,) * len(
            function.output_names
        )
    # As many launches as there are elements, none; the shapes are those of one.
    specs = []
    for i, (x, d) in enumerate(zip(inputs, axes, strict=True)):
        spec = _spec(function, i, x)
        specs.append(spec if d is None else ArraySpec(spec.shape[:d] + spec.shape[d + 1 :], spec.dtype))
    plan = function._plan(tuple(specs))
    empty = [
        inputs[0].new_empty([0, *shape], dtype=_DTYPES[_BY_NAME[dtype]])
        for shape, dtype in zip(plan.output_shapes, plan.output_dtypes, strict=True)
    ]
    return tuple(empty), (0,) * len(empty)


def _shorten_calls(operator: Any) -> None:
    """Where PyTorch lets a function stand between: launches of plain tensors pass its dispatcher by, and errors have the
    types that a kernel's have (python/src/torch_launch.h)."""
    dispatch = getattr(operator, "_op", None)
    if dispatch is not None:
        operator._op = _core.make_torch_call(dispatch)


_is_native = _core.implement_torch_operator()
if not _is_native:  # PyTorch 2.8 and 2.9
    _library.impl("launch", _launch, "CPU")
    _library.impl("launch", _launch, "CUDA")
else:
    _shorten_calls(torch.ops.kiln.launch.default)
torch.library.register_fake("kiln::launch", _launch_fake, lib=_library)
torch.library.register_vmap("kiln::launch", _launch_batch, lib=_library)


# ---- Its rules.


_is_dynamo_compiling = torch.compiler.is_dynamo_compiling


class _State(threading.local):
    is_batching = False


_state = _State()
# Arguments before the tensors.
_STATIC = 3


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(function: Any, text: Any, sizes: Any, *inputs: Any) -> Any:
        if not _are_plain(inputs):
            return tuple(torch.ops.kiln.launch(text, list(inputs), sizes))
        # The kernel itself, whose errors have types of their own.
        outputs = function._launch(inputs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function = inputs[0]
        ctx.count = len(inputs) - _STATIC
        ctx.save_for_backward(*inputs[_STATIC:], *output)
        ctx.save_for_forward(*inputs[_STATIC:])

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        if not ctx.function._has("vjp"):
            raise ctx.function._missing("vjp", "PyTorch", "autograd")
        saved = ctx.saved_tensors
        gradients = ctx.function._apply_vjp(saved[: ctx.count], cotangents, saved[ctx.count :])
        return (None,) * _STATIC + tuple(gradients)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        if not ctx.function._has("jvp"):
            raise ctx.function._missing("jvp", "PyTorch", "forward-mode differentiation")
        return tuple(ctx.function._apply_jvp(ctx.saved_tensors, tangents[_STATIC:]))

    @staticmethod
    def vmap(info: Any, in_dims: Any, function: Any, *arguments: Any) -> Any:
        return _apply_batch(function, info.batch_size, arguments[_STATIC - 1 :], in_dims[_STATIC:])


# ---- Calls.


def call(function: Function, inputs: tuple[Any, ...]) -> Any:
    """A function with at least one tensor among its inputs."""
    if _is_dynamo_compiling():  # which reads this, and imports as it reads
        from kiln._functions_dynamo import call_in_graph

        return call_in_graph(function._handle, *inputs)
    if not _state.is_batching and _are_plain(inputs):
        return function._launch(inputs)
    if _has_distributed(inputs):
        return _call_distributed(function, inputs)
    tensors = _tensors(function, inputs)
    arguments = _known_arguments(function, tensors)
    if _state.is_batching:
        return function._bare(torch.ops.kiln.launch(arguments[1], tensors, arguments[2]))
    _check_gradients(function, tensors)
    if not _check_tangents(function, tensors) and _has_no_functions() and not _wants_gradient(tensors):
        # Needs none where there are no gradients.
        return function._bare(torch.ops.kiln.launch(arguments[1], tensors, arguments[2]))
    return function._bare(_Call.apply(*arguments, *tensors))


# ---- Several devices.


def _has_distributed(inputs: tuple[Any, ...]) -> bool:
    # Without the module there are none.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and any(isinstance(x, module.DTensor) for x in inputs)


def _call_distributed(function: Function, inputs: tuple[Any, ...]) -> Any:
    """Of DTensors, as the function's sharding says: each device calls it with its parts."""
    from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
    from torch.distributed.tensor.experimental import local_map

    rule = function._sharding
    index, first = next((i, x) for i, x in enumerate(inputs) if isinstance(x, DTensor))
    if rule is None:
        raise function._error(
            f"Input `{function.input_names[index]}` of `{function.name}` is a DTensor (PyTorch), and the function has no "
            "sharding: say with `f.sharding(inputs, outputs)` how it is divided."
        )
    mesh = first.device_mesh
    # The dimensions of the mesh along which some input is cut as the rule has it; along the others all have all.
    cut = [
        any(
            isinstance(x, DTensor) and place is not None and x.placements[d] == Shard(place)
            for x, place in zip(inputs, rule.inputs, strict=True)
        )
        for d in range(mesh.ndim)
    ]

    def placements(place: int | str | None, gradient: bool = False) -> list[Placement]:
        def along(is_cut: bool) -> Placement:
            if is_cut and isinstance(place, int):
                return Shard(place)
            # What every device has whole has the sum of their gradients.
            return Partial() if is_cut and (place == "sum" or gradient) else Replicate()

        return [along(is_cut) for is_cut in cut]

    whole = [
        x if isinstance(x, DTensor) or not isinstance(x, torch.Tensor) else DTensor.from_local(x, mesh) for x in inputs
    ]
    call_parts = local_map(
        function,
        out_placements=tuple([placements(place) for place in rule.outputs])
        if len(rule.outputs) > 1
        else placements(rule.outputs[0]),
        in_placements=tuple(
            [placements(p) if isinstance(x, DTensor) else None for x, p in zip(whole, rule.inputs, strict=True)]
        ),
        in_grad_placements=tuple(
            [
                placements(p, gradient=True) if isinstance(x, DTensor) else None
                for x, p in zip(whole, rule.inputs, strict=True)
            ]
        ),
        device_mesh=mesh,
        redistribute_inputs=True,
    )
    return call_parts(*whole)


def _tensors(function: Function, inputs: tuple[Any, ...]) -> list[torch.Tensor]:
    function._check_count(inputs)
    device = None
    for value in inputs:
        if isinstance(value, torch.Tensor):
            device = value.device
            break
    return [
        value if isinstance(value, torch.Tensor) else _as_tensor(function, i, value, device)
        for i, value in enumerate(inputs)
    ]


def _known_arguments(function: Function, tensors: list[torch.Tensor]) -> tuple[Any, ...]:
    """The same, found for shapes and dtypes that were there before."""
    try:
        key = tuple([(x.shape, x.dtype) for x in tensors])
        known = function._compiled.setdefault("torch", {})
        arguments: tuple[Any, ...] | None = known.get(key)
    except TypeError:  # a symbolic size
        return _static_arguments(function, tensors)
    if arguments is None:
        arguments = _static_arguments(function, tensors)
        if len(known) >= 64:
            known.clear()
        if all(type(n) is int for shape in key for n in shape[0]):
            known[key] = arguments
    return arguments


def _static_arguments(function: Function, tensors: list[torch.Tensor]) -> tuple[Any, ...]:
    plan = function._plan(tuple([_spec(function, i, tensor) for i, tensor in enumerate(tensors)]))
    sizes: list[Any] = []
    for shape in plan.output_shapes:
        sizes.extend(shape)
    sizes.extend(plan.grid)
    sizes.extend(plan.threadgroup)
    text = _text(function, plan)
    _add_text(text)
    return function, text, sizes


def _text(function: Function, plan: Plan) -> str:
    """The launch's text with what else is not a size, as src/runtime/launch_text.cpp reads it. (JSON has no infinity, so
    the initial value is in quotation marks.)"""
    outputs = [f'["{name}",{len(shape)}]' for name, shape in zip(plan.output_dtypes, plan.output_shapes, strict=True)]
    value = plan.init_value
    if value is True or value is False:
        value = 1 if value else 0
    shown = "null" if value is None else f'"{value}"'
    return (
        f'{{"function":"{function._reference}","outputs":[{",".join(outputs)}],"init_value":{shown},'
        f"{function._text(plan)[1:]}"
    )


def _add_text(text: str) -> None:
    """Has the operator use the kernel that functions use."""
    if text not in _launches:
        kernel = _parse(text).kernel
        if _is_native:
            _core.add_torch_launch(text, kernel)


def _as_tensor(function: Function, index: int, value: Any, device: Any) -> torch.Tensor:
    if isinstance(value, torch.SymInt):  # of a part of a grid
        return torch.full((), value, dtype=torch.int32, device=device)
    if isinstance(value, (bool, int, float, complex)):
        dtype = _functions.spec_of_input(value).dtype
        # (Not torch.tensor, which makes a tensor of elements where PyTorch only traces.)
        return torch.full((), value, dtype=_DTYPES[_BY_NAME[dtype]], device=device)
    if _core.is_numpy_scalar(value):
        return torch.as_tensor(value, device=device)
    raise function._error(
        f"Expected `inputs` to be PyTorch tensors or numbers but got {_core.kind_of(value)} for "
        f"`{function.input_names[index]}`."
    )


def _spec(function: Function, index: int, tensor: torch.Tensor) -> ArraySpec:
    name = _NAMES.get(tensor.dtype)
    if name is None:
        raise function._wrong_dtype(index, tensor.dtype)
    return ArraySpec(tuple(tensor.shape), name)


def _wants_gradient(tensors: list[torch.Tensor]) -> bool:
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor.requires_grad:
                return True
    return False


def _check_gradients(function: Function, tensors: list[torch.Tensor]) -> None:
    """A gradient would end at a function that has no rule for it, and nothing would say so later."""
    if not function._has("vjp") and torch.is_grad_enabled():
        for i, tensor in enumerate(tensors):
            if tensor.requires_grad:
                raise function._missing("vjp", "PyTorch", "autograd", i)


def _check_tangents(function: Function, tensors: list[torch.Tensor]) -> bool:
    """Likewise. Whether there is a tangent."""
    if _forward_ad._current_level < 0:
        return False
    found = False
    for i, tensor in enumerate(tensors):
        if _has_tangent(tensor):
            found = True
            if not function._has("jvp"):
                raise function._missing("jvp", "PyTorch", "forward mode", i)
    return found


def _has_no_functions() -> bool:
    """Whether what traces or transforms here does not know an ``autograd.Function``: PyTorch's functionalize; and vmap
    within ``torch.export`` or ``make_fx(…, pre_dispatch=True)``."""
    top = _C._functorch.peek_interpreter_stack()
    if top is None:
        return False
    return top.key() == _C._functorch.TransformType.Functionalize or _is_traced_before_dispatch()


def _has_tangent(tensor: torch.Tensor) -> bool:
    try:
        return _forward_ad.unpack_dual(tensor).tangent is not None
    except RuntimeError:  # of a batch of them PyTorch does not say
        return True


_current_level = _C._functorch.maybe_current_level
_dispatch_modes = _C._len_torch_dispatch_stack
_tracing_state = _C._get_tracing_state
_is_grad_enabled = torch.is_grad_enabled
_PLAIN = (torch.Tensor, torch.nn.Parameter)
# make_fx(…, pre_dispatch=True) records by a mode that is in none of the stacks while an operator runs.
_includes_key = getattr(_C, "_dispatch_tls_is_dispatch_key_included", lambda key: False)
_PRE_DISPATCH = getattr(_C.DispatchKey, "PreDispatch", None)


def _is_traced_before_dispatch() -> bool:
    return _PRE_DISPATCH is not None and _includes_key(_PRE_DISPATCH)


def _are_plain(inputs: tuple[Any, ...]) -> bool:
    """Whether all are tensors that a kernel reads, and nothing records what is done with them."""
    if (
        _forward_ad._current_level >= 0
        or _dispatch_modes() > 0
        or _tracing_state() is not None
        or _current_level() is not None
        or _is_traced_before_dispatch()
    ):
        return False
    for value in inputs:
        if type(value) in _PLAIN:
            if (value.requires_grad and _is_grad_enabled()) or value.is_meta:
                return False
        elif isinstance(value, torch.Tensor):
            return False
    return True
