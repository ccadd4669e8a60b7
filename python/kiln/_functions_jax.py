"""Functions of arrays in JAX.

Two primitives. ``kiln_launch`` is a launch: it becomes a call of one handler of XLA's foreign function interface
(``python/src/xla_launch.cpp``), for every kernel, on the CPU and on GPUs. ``kiln_tangent`` is its derivative, a linear
function of the tangents: evaluated, it is the function's jvp rule; transposed, as reverse mode does, its vjp rule. So
forward and reverse mode, and each of the other, come from the two rules.

Rejected: ``jax.custom_vjp`` and ``jax.custom_jvp``, of which a function can have one and not the other; HiJAX's
primitives, which come with JAX 0.10.1 and change from version to version; ``pure_callback``, which takes the interpreter's
lock for each call and is not exported.

XLA does not know how to divide a launch: outside of ``jax.shard_map`` it would gather the inputs on every device. That
is an error here.
"""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from kiln import _core, _functions
from kiln._functions import ArraySpec, Function, Size

TARGET = "kiln_launch"

jax.ffi.register_ffi_target(TARGET, _core.xla_handler(False), platform="cpu")
jax.ffi.register_ffi_target(TARGET, _core.xla_handler(True), platform="CUDA")

# ---- What the handler knows.

_registered: set[str] = set()


def register(key: str, launch: str) -> None:
    """Makes a launch known to the handler."""
    if key in _registered:
        return
    kernel, template = _functions.parse_launch(launch)
    init_value = json.loads(launch).get("init_value")
    _core.register_xla_launch(key, kernel, template, init_value)
    _registered.add(key)


# ---- Avals.


def _varying(aval: Any) -> frozenset[Any]:
    """The axes of ``jax.shard_map``'s mesh along which a value differs from device to device."""
    kind = getattr(aval, "mat", None)
    axes: frozenset[Any] = getattr(kind, "varying", None) or getattr(aval, "vma", None) or frozenset()
    return axes


def _result_avals(avals: Any, shapes: Any, dtypes: Any) -> list[Any]:
    """Those of results, which vary as the inputs do."""
    model = next((aval for aval in avals if _varying(aval)), None)
    if model is None:
        return [jax.core.ShapedArray(shape, np.dtype(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    return [
        model.update(
            shape=shape,
            dtype=np.dtype(dtype),
            weak_type=False,
            sharding=NamedSharding(model.sharding.mesh, PartitionSpec(*[None] * len(shape))),
        )
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]


def _vary_alike(arrays: list[Any]) -> list[Any]:
    """Arrays of which each varies along all axes along which one does."""
    axes: frozenset[Any] = frozenset().union(*[_varying(jax.typeof(x)) for x in arrays]) if _HAS_TYPEOF else frozenset()
    if not axes:
        return arrays
    result = []
    for x in arrays:
        missing = tuple(axes - _varying(jax.typeof(x)))
        if missing:
            x = jax.lax.pcast(x, missing, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(x, missing)
        result.append(x)
    return result


_HAS_TYPEOF = hasattr(jax, "typeof")


def _at_once(primitive: Any) -> Any:
    """How a primitive runs outside of what is traced: compiled once for its parameters."""

    @functools.lru_cache(maxsize=1024)
    def compiled(parameters: Any) -> Any:
        return jax.jit(functools.partial(primitive.bind, **dict(parameters)))

    return lambda *arrays, **parameters: compiled(tuple(sorted(parameters.items())))(*arrays)


# ---- The launch.

_launch_p = Primitive("kiln_launch")
_launch_p.multiple_results = True
_launch_p.def_impl(_at_once(_launch_p))


def _launch_avals(*avals: Any, shapes: Any, dtypes: Any, **_: Any) -> list[Any]:
    return _result_avals(avals, shapes, dtypes)


_launch_p.def_abstract_eval(_launch_avals)


def _launch_lowered(
    context: Any, *operands: Any, function: Function, key: str, launch: str, extents: Any, **_: Any
) -> Any:
    axes = context.module_context.axis_context
    manual: Any = getattr(axes, "manual_axes", frozenset())
    count = getattr(axes, "num_devices", None)
    if count is None and hasattr(axes, "mesh"):
        # Within shard_map each device has arrays of its own, along all axes that have several devices.
        count = 1
        for name, size in axes.mesh.shape.items():
            count *= 1 if name in manual else size
    if count is not None and count > 1:
        raise function._error(
            f"`{function.name}` is called in a program for {count} devices (JAX), which would gather its inputs on each of "
            "them: call it within `jax.shard_map`, or `kiln.jax.on_mesh(f, mesh, axis)` in its place after `f.sharding(…)`."
        )
    register(key, launch)
    lowering = jax.ffi.ffi_lowering(TARGET)
    return lowering(context, *operands, key=key, launch=launch, extents=np.array(extents, np.int64))


mlir.register_lowering(_launch_p, _launch_lowered)


def _bind(function: Function, arrays: list[Any]) -> list[Any]:
    """Launches the function on arrays of JAX's, traced or not."""
    arrays = _vary_alike(arrays)
    specs = tuple([_spec(function, i, x) for i, x in enumerate(arrays)])
    plan = function._plan(specs)
    for dtype in plan.output_dtypes:
        if dtype.endswith("64") and dtype != "complex64" and not jax.config.jax_enable_x64:
            raise ValueError(f'JAX has arrays of {dtype} only after jax.config.update("jax_enable_x64", True)')
    extents = (*plan.grid, *plan.threadgroup)
    if not all(type(size) is int for size in extents):
        # JAX's symbols are gone when the launch comes. The same is computed with what is kept.
        known = tuple(
            [
                ArraySpec(
                    tuple([n if type(n) is int else Size((Size.DIMENSION, i, d)) for d, n in enumerate(spec.shape)]),
                    spec.dtype,
                )
                for i, spec in enumerate(specs)
            ]
        )
        extents = function._extents_of(known)
    steps: list[int] = []
    for size in extents:
        program = Size.steps_of(size)
        steps += [len(program), *program]
    text = function._text(plan)
    init_value = "null" if plan.init_value is None else json.dumps(plan.init_value)
    launch = f'{text[:-1]},"init_value":{init_value}}}'
    result: list[Any] = _launch_p.bind(
        *arrays,
        function=function,
        key=hashlib.sha256(launch.encode()).hexdigest(),
        launch=launch,
        shapes=plan.output_shapes,
        dtypes=plan.output_dtypes,
        extents=tuple(steps),
    )
    return result


def _compiled(function: Function) -> Any:
    """The program of a call outside of what is traced. It has no rules."""
    compiled = function._compiled.get("jax")
    if compiled is None:
        compiled = function._compiled["jax"] = jax.jit(lambda *arrays: _bind(function, list(arrays)))
    return compiled


def _spec(function: Function, index: int, array: Any) -> ArraySpec:
    name = str(array.dtype)
    if name not in _core.DTYPES:
        raise function._wrong_dtype(index, name)
    return ArraySpec(tuple(array.shape), name)


def _launch_batched(arrays: Any, axes: Any, *, function: Function, **parameters: Any) -> Any:
    if not function._has("vmap"):
        raise function._missing("vmap", "JAX", "vmap")
    if not function._is_sequential():
        outputs, out_axes = function._apply_vmap(arrays, axes)
        return list(outputs), [batching.not_mapped if axis is None else axis for axis in out_axes]
    batch = [jnp.moveaxis(x, axis, 0) for x, axis in zip(arrays, axes, strict=True) if axis is not None]

    def one(batched: Any) -> Any:
        batched = iter(batched)
        return _launch_p.bind(
            *[x if axis is None else next(batched) for x, axis in zip(arrays, axes, strict=True)],
            function=function,
            **parameters,
        )

    return jax.lax.map(one, batch), [0] * len(parameters["shapes"])


batching.primitive_batchers[_launch_p] = _launch_batched


# ---- Its derivative.


def _is_differentiable(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.inexact))


class _Rules:
    """The derivative of a launch, as `kiln_tangent` has it: arrays are the inputs, the outputs, and the tangents of those
    inputs that have one."""

    def __init__(self, function: Function, has_tangent: tuple[bool, ...]) -> None:
        self.function = function
        self.has_tangent = has_tangent
        self._key = (function, has_tangent)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Rules and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def fixed(self) -> int:
        """How many arrays come before the tangents."""
        return len(self.function.input_names) + len(self.function.output_names)

    def forward(self, *arrays: Any) -> list[Any]:
        """The tangents of the outputs that have one."""
        count = len(self.has_tangent)
        if not self.function._has("jvp"):
            raise self.function._missing("jvp", "JAX", "jvp")
        tangents = iter(arrays[self.fixed :])
        all_tangents = tuple([next(tangents) if has else None for has in self.has_tangent])
        results = self.function._apply_jvp(arrays[:count], all_tangents)
        outputs = arrays[count : self.fixed]
        return [
            jnp.zeros(y.shape, y.dtype) if t is None else jnp.asarray(t, y.dtype)
            for y, t in zip(outputs, results, strict=True)
            if _is_differentiable(y.dtype)
        ]

    def backward(self, fixed: Any, cotangents: Any) -> list[Any]:
        """The gradients of the inputs that have a tangent."""
        count = len(self.has_tangent)
        primals, outputs = fixed[:count], fixed[count:]
        given = iter(cotangents)
        all_cotangents = tuple(
            [next(given) if _is_differentiable(y.dtype) else jnp.zeros(y.shape, y.dtype) for y in outputs]
        )
        gradients = self.function._apply_vjp(primals, all_cotangents, outputs)
        return [
            jnp.zeros(x.shape, x.dtype) if gradient is None else jnp.asarray(gradient, x.dtype)
            for x, gradient, has in zip(primals, gradients, self.has_tangent, strict=True)
            if has
        ]


class _BatchedRules:
    """The same for a batch, whose axis is the first of all tangents."""

    def __init__(self, rules: Any, axes: tuple[int | None, ...]) -> None:
        self.rules = rules
        self.axes = axes

    def __eq__(self, other: object) -> bool:
        return type(other) is _BatchedRules and (self.rules, self.axes) == (other.rules, other.axes)

    def __hash__(self) -> int:
        return hash((self.rules, self.axes))

    @property
    def fixed(self) -> int:
        fixed: int = self.rules.fixed
        return fixed

    def forward(self, *arrays: Any) -> list[Any]:
        results: list[Any] = jax.vmap(self.rules.forward, in_axes=self.axes)(*arrays)
        return results

    def backward(self, fixed: Any, cotangents: Any) -> list[Any]:
        results: list[Any] = jax.vmap(self.rules.backward, in_axes=(list(self.axes[: self.fixed]), 0))(
            list(fixed), list(cotangents)
        )
        return results


_tangent_p = Primitive("kiln_tangent")
_tangent_p.multiple_results = True


def _tangents(*arrays: Any, rules: Any, **_: Any) -> list[Any]:
    results: list[Any] = rules.forward(*arrays)
    return results


_tangent_p.def_impl(_tangents)
mlir.register_lowering(_tangent_p, mlir.lower_fun(_tangents, multiple_results=True))


def _tangent_avals(*avals: Any, shapes: Any, dtypes: Any, **_: Any) -> list[Any]:
    return _result_avals(avals, shapes, dtypes)


_tangent_p.def_abstract_eval(_tangent_avals)


def _launch_differentiated(primals: Any, tangents: Any, *, function: Function, **parameters: Any) -> Any:
    outputs = _launch_p.bind(*primals, function=function, **parameters)
    has_tangent = tuple([type(tangent) is not ad.Zero for tangent in tangents])
    kept = [y for y in outputs if _is_differentiable(y.dtype)]
    if not any(has_tangent) or not kept:
        return outputs, [_zero_of(y) for y in outputs]
    if not function._has("vjp") and not function._has("jvp"):
        # Both modes begin here.
        raise function._error(
            f"Input `{function.input_names[has_tangent.index(True)]}` of `{function.name}` is differentiated (JAX, grad or "
            "jvp), and the function has neither a vjp rule nor a jvp rule: attach one with `f.vjp(rule)` or "
            "`f.jvp(rule)`."
        )
    rules = _Rules(function, has_tangent)
    given = [tangent for tangent in tangents if type(tangent) is not ad.Zero]
    if function._has("vjp"):
        arrays = _vary_alike([*primals, *outputs, *given])
        results = iter(
            _tangent_p.bind(
                *arrays,
                rules=rules,
                shapes=tuple([tuple(y.shape) for y in kept]),
                dtypes=tuple([str(y.dtype) for y in kept]),
            )
        )
    else:
        # Reverse mode transposes the rule's own operations.
        results = iter(rules.forward(*primals, *outputs, *given))
    return outputs, [next(results) if _is_differentiable(y.dtype) else _zero_of(y) for y in outputs]


def _zero_of(value: Any) -> Any:
    aval = jax.typeof(value) if _HAS_TYPEOF else jax.core.get_aval(value)
    return ad.Zero(aval.to_tangent_aval() if hasattr(aval, "to_tangent_aval") else aval.at_least_vspace())


def _launch_transposed(cotangents: Any, *arrays: Any, function: Function, **_: Any) -> Any:
    index = next(i for i, x in enumerate(arrays) if ad.is_undefined_primal(x))
    raise function._missing("vjp", "JAX", "reverse mode of a jvp rule", index)


def _tangent_transposed(cotangents: Any, *arrays: Any, rules: Any, **_: Any) -> Any:
    fixed, tangents = arrays[: rules.fixed], arrays[rules.fixed :]
    if any(ad.is_undefined_primal(x) for x in fixed) or not all(ad.is_undefined_primal(x) for x in tangents):
        raise NotImplementedError("[kiln] JAX transposes a derivative by what it is not linear in.")
    gradients = rules.backward(fixed, [ad.instantiate_zeros(cotangent) for cotangent in cotangents])
    return [None] * rules.fixed + list(gradients)


def _tangent_differentiated(primals: Any, tangents: Any, *, rules: Any, **_: Any) -> Any:
    """The derivative of the jvp rule itself."""
    chosen = [i for i, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]

    def of_chosen(*values: Any) -> Any:
        arrays = list(primals)
        for i, value in zip(chosen, values, strict=True):
            arrays[i] = value
        return rules.forward(*arrays)

    return jax.jvp(of_chosen, [primals[i] for i in chosen], [tangents[i] for i in chosen])


def _tangent_batched(arrays: Any, axes: Any, *, rules: Any, shapes: Any, dtypes: Any) -> Any:
    size = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
    moved, new_axes = [], []
    for i, (x, axis) in enumerate(zip(arrays, axes, strict=True)):
        if i >= rules.fixed:
            x = jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
            axis = 0
        moved.append(x)
        new_axes.append(axis)
    results = _tangent_p.bind(
        *moved,
        rules=_BatchedRules(rules, tuple(new_axes)),
        shapes=tuple([(size, *shape) for shape in shapes]),
        dtypes=dtypes,
    )
    return results, [0] * len(results)


ad.primitive_jvps[_launch_p] = _launch_differentiated
ad.primitive_transposes[_launch_p] = _launch_transposed
ad.primitive_jvps[_tangent_p] = _tangent_differentiated
ad.primitive_transposes[_tangent_p] = _tangent_transposed
batching.primitive_batchers[_tangent_p] = _tangent_batched


# ---- Calls.


# The class of arrays that have elements, from the first of them: JAX begins to use devices where one is made.
_array: Any = None


def call(function: Function, inputs: tuple[Any, ...]) -> Any:
    """A function with at least one array of JAX's among its inputs."""
    global _array
    function._check_count(inputs)
    for value in inputs:
        if type(value) is not _array or type(value.sharding) is not SingleDeviceSharding:
            break
    else:
        return function._bare(_compiled(function)(*inputs))
    arrays = []
    for value in inputs:
        if isinstance(value, bool | int | float | complex):
            value = jnp.asarray(value, _functions.spec_of_input(value).dtype)
        arrays.append(value if isinstance(value, jax.Array) else jnp.asarray(value))
    if any(isinstance(x, jax.core.Tracer) for x in arrays):
        return function._bare(_bind(function, arrays))
    if any(type(x.sharding) is not SingleDeviceSharding and len(x.sharding.device_set) > 1 for x in arrays):
        return _call_on_several(function, arrays)
    _array = type(arrays[0])
    return function._bare(_compiled(function)(*arrays))


# ---- Several devices.


def on_mesh(function: Function, mesh: Any, axis: str) -> Any:
    """What ``kiln.jax.on_mesh`` returns."""
    rule = function._sharding
    if rule is None:
        raise function._error(
            f"`{function.name}` has no sharding: say with `f.sharding(inputs, outputs)` how it is divided."
        )

    def along(place: int | str | None) -> Any:
        return PartitionSpec(*[None] * place, axis) if isinstance(place, int) else PartitionSpec()

    def on_each(*parts: Any) -> Any:
        outputs = function(*parts)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        summed = [
            jax.lax.psum(y, axis) if place == "sum" else y for y, place in zip(outputs, rule.outputs, strict=True)
        ]
        return function._bare(summed)

    return _shard_map(
        on_each,
        mesh=mesh,
        in_specs=tuple([along(place) for place in rule.inputs]),
        out_specs=function._bare([along(place) for place in rule.outputs]),
    )


def _shard_map(*arguments: Any, **keywords: Any) -> Any:
    if hasattr(jax, "shard_map"):
        return jax.shard_map(*arguments, **keywords)
    from jax.experimental.shard_map import shard_map  # JAX 0.6

    return shard_map(*arguments, check_rep=False, **keywords)


def _call_on_several(function: Function, arrays: list[Any]) -> Any:
    """Of arrays that lie on several devices, as the function's sharding says."""
    rule = function._sharding
    if rule is None:
        cut = [name for name, x in zip(function.input_names, arrays, strict=True) if len(x.sharding.device_set) > 1]
        raise function._error(
            f"Input `{cut[0]}` of `{function.name}` lies on several devices (JAX), and the function has no sharding: say with "
            "`f.sharding(inputs, outputs)` how it is divided, or call it within `jax.shard_map`."
        )
    # All cut inputs along one axis of one mesh; the others have it whole.
    found = None
    for x, place in zip(arrays, rule.inputs, strict=True):
        sharding = x.sharding
        if not isinstance(sharding, NamedSharding) or sharding.is_fully_replicated:
            continue
        for dimension, names in enumerate(sharding.spec):
            axes = names if isinstance(names, tuple) else () if names is None else (names,)
            for name in axes:
                if sharding.mesh.shape[name] == 1:
                    continue
                if dimension != place or len(axes) > 1 or (found and found != (sharding.mesh, name)):
                    raise function._error(
                        f"The inputs of `{function.name}` are cut as {[str(a.sharding) for a in arrays]} (JAX), and its "
                        f"sharding cuts them along the axes {list(rule.inputs)}."
                    )
                found = sharding.mesh, name
    if found is None:
        # All devices have all of them.
        mesh = next(x.sharding.mesh for x in arrays if isinstance(x.sharding, NamedSharding))
        found = mesh, mesh.axis_names[0]
    compiled = function._compiled.setdefault("jax on meshes", {})
    key = (*found, rule)
    if key not in compiled:
        compiled[key] = jax.jit(on_mesh(function, *found))
    return compiled[key](*arrays)
