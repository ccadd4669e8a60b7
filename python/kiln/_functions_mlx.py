"""Functions of arrays in MLX.

A launch is a node of MLX's graph already (``src/adapters/mlx_primitive.cpp``). Here it is given the function's rules,
which MLX asks for when it transforms the node; what is below are the rules in the forms of ``mlx::core::Primitive``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from kiln import _libraries
from kiln._functions import ArraySpec, Function, spec_of_input

_libraries.meet_by_name("mlx")
from kiln import _mlx  # noqa: E402


def call(function: Function, inputs: tuple[Any, ...]) -> Any:
    """A function with at least one array of MLX's among its inputs."""
    # What is exported must load on a Mac.
    module = sys.modules.get("kiln.mlx")
    if module is not None and module._exporting.get():
        return function._bare(module.exported(function._kernel, {"inputs": inputs, **function._call_of(inputs)}))
    outputs = function._launch(inputs)
    _mlx.attach_rules(outputs[0] if isinstance(outputs, tuple) else outputs, function)
    return outputs


def _specs(inputs: Sequence[Any]) -> tuple[ArraySpec, ...]:
    return tuple([spec_of_input(x) for x in inputs])


# ---- What _mlx asks.


def apply_vjp(function: Function, primals: Any, cotangents: Any, argnums: list[int], outputs: Any) -> list[mx.array]:
    """The gradients of the inputs with these numbers."""
    if not function._has("vjp"):
        raise function._missing("vjp", "MLX", "grad, vjp", argnums[0])
    gradients = function._apply_vjp(primals, cotangents, outputs)
    return [mx.zeros_like(primals[i]) if gradients[i] is None else gradients[i] for i in argnums]


def apply_jvp(function: Function, primals: Any, tangents: Any, argnums: list[int]) -> list[mx.array]:
    """The tangents of the outputs, for tangents of the inputs with these numbers."""
    if not function._has("jvp"):
        raise function._missing("jvp", "MLX", "jvp", argnums[0])
    given: list[Any] = [None] * len(primals)
    for i, tangent in zip(argnums, tangents, strict=True):
        given[i] = tangent
    results = function._apply_jvp(primals, tuple(given))
    plan = function._plan(_specs(primals))
    return [
        mx.zeros(shape, getattr(mx, "bool_" if dtype == "bool" else dtype)) if tangent is None else tangent
        for tangent, shape, dtype in zip(results, plan.output_shapes, plan.output_dtypes, strict=True)
    ]


def apply_vmap(function: Function, inputs: list[mx.array], axes: list[int]) -> tuple[list[mx.array], list[int]]:
    """The outputs of a batch and the batch's axis in each; -1 stands for none."""
    if not function._has("vmap"):
        raise function._missing("vmap", "MLX", "vmap")
    if not function._is_sequential():
        outputs, out_axes = function._apply_vmap(inputs, tuple([None if d < 0 else d for d in axes]))
        return list(outputs), [-1 if d is None else d for d in out_axes]
    size = next(x.shape[d] for x, d in zip(inputs, axes, strict=True) if d >= 0)
    launches = []
    for i in range(size):
        given = [x if d < 0 else mx.take(x, i, axis=d) for x, d in zip(inputs, axes, strict=True)]
        outputs = call(function, tuple(given))
        launches.append(outputs if isinstance(outputs, tuple) else (outputs,))
    if launches:
        return [mx.stack(list(outputs)) for outputs in zip(*launches, strict=True)], [0] * len(function.output_names)
    specs = [
        ArraySpec(tuple(n for k, n in enumerate(x.shape) if k != d), spec_of_input(x).dtype)
        for x, d in zip(inputs, axes, strict=True)
    ]
    plan = function._plan(tuple(specs))
    return [
        mx.zeros((0, *shape), getattr(mx, "bool_" if dtype == "bool" else dtype))
        for shape, dtype in zip(plan.output_shapes, plan.output_dtypes, strict=True)
    ], [0] * len(function.output_names)


def output_shapes(function: Function, inputs: list[mx.array]) -> list[list[int]]:
    """Those for inputs of these shapes."""
    return [list(shape) for shape in function._plan(_specs(inputs)).output_shapes]


def extents(function: Function, inputs: list[mx.array]) -> tuple[Any, Any, Any, Any]:
    """Grid, threadgroup and template arguments for inputs of these shapes, and the numbers that the last inputs are."""
    specs = _specs(inputs)
    plan = function._plan(specs)
    return plan.grid, plan.threadgroup, list(plan.template), list(function._numbers(specs))
