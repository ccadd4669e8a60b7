"""Functions whose grid is a part of the launch's, or whose launch is a part of the grid.

``Batched`` is a whole batch of a function in one launch: the grids of its elements lie one after the other along z.
``Slice`` is one of n slices of a function's grid along an axis, for n devices. The body of either is the function's own;
what it sees of the grid is computed from numbers that are further inputs of the kernel (``src/frontend/grid_part.h``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kiln import _core, _functions
from kiln._core import Kernel
from kiln._functions import ArraySpec, Function


def _spec(function: Function, index: int, value: Any) -> ArraySpec:
    """Of an input of any library, with elements or without."""
    library = _functions._library_of(type(value))
    if library in _functions._spec_of:
        return _functions._spec_of[library](function, index, value)
    return _functions.spec_of_input(value)


class _Part(Function):
    """A function of the same inputs, whose kernel has the numbers of the part after them."""

    def __init__(self, whole: Function, batched_inputs: Sequence[bool], sliced_axis: int) -> None:
        self._whole = whole
        self._count = len(whole.input_names)
        # Of the whole function, by the shapes and dtypes of its inputs: each of the callables below needs one.
        self._plans: dict[Any, _functions.Plan] = {}
        spec = _functions._spec_of_kernel(whole._made_of)
        numbers = _core.part_inputs(list(batched_inputs), sliced_axis, whole.output_names)
        spec["input_names"] = [*whole.input_names, *numbers]
        if batched_inputs:
            spec["batched_inputs"] = [*batched_inputs, *[False] * len(numbers)]
        else:
            spec["sliced_axis"] = sliced_axis
        super().__init__(
            Kernel(**spec),
            output_shapes=self._output_shapes,
            output_dtypes=self._output_dtypes,
            grid=self._grid,
            threadgroup=self._threadgroup,
            template=self._template_of,
            init_value=self._init_value,
        )

    def __call__(self, /, *inputs: Any) -> Any:
        self._whole._check_count(inputs)
        specs = tuple([_spec(self._whole, i, value) for i, value in enumerate(inputs)])
        return Function.__call__(self, *inputs, *self._numbers(specs))

    def _numbers(self, specs: tuple[ArraySpec, ...]) -> tuple[Any, ...]:
        raise NotImplementedError

    def _specs_of_whole(self, specs: tuple[ArraySpec, ...]) -> tuple[ArraySpec, ...]:
        return specs[: self._count]

    def _plan_of_whole(self, specs: tuple[ArraySpec, ...]) -> _functions.Plan:
        own = self._specs_of_whole(specs)
        if not all([type(size) is int for spec in own for size in spec.shape]):
            return self._whole._plan(own)  # symbolic sizes belong to one trace
        key = tuple([(tuple(spec.shape), spec.dtype) for spec in own])
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= 64:
                self._plans.clear()
            plan = self._plans[key] = self._whole._plan(own)
        return plan

    def _output_shapes(self, *specs: ArraySpec) -> Any:
        return list(self._plan_of_whole(specs).output_shapes)

    def _output_dtypes(self, *specs: ArraySpec) -> Any:
        return list(self._plan_of_whole(specs).output_dtypes)

    def _grid(self, *specs: ArraySpec) -> Any:
        raise NotImplementedError

    def _threadgroup(self, *specs: ArraySpec) -> Any:
        return self._plan_of_whole(specs).threadgroup

    def _template_of(self, *specs: ArraySpec) -> Any:
        return list(self._plan_of_whole(specs).template)

    def _init_value(self, *specs: ArraySpec) -> Any:
        return self._plan_of_whole(specs).init_value


# ---- Batches.

# CUDA's blocks along z: what NVIDIA's hardware takes. (Grids of Metal bodies that are larger are folded.)
_MOST_BLOCKS_IN_Z = 65535


class Batched(_Part):
    """A function for a batch, which is the first axis of all outputs and of the inputs that ``batched`` says."""

    def __init__(self, whole: Function, batched: tuple[bool, ...]) -> None:
        self._batched = batched
        super().__init__(whole, batched, -1)
        rules: dict[str, Any] = dict.fromkeys(_functions._RULES)
        if whole._has("vjp"):
            rules["vjp"] = self._batched_vjp
        if whole._has("jvp"):
            rules["jvp"] = self._batched_jvp
        rules["vmap"] = self._batched_vmap
        self._set_rules(rules)

    def __reduce__(self) -> Any:
        return Batched, (self._whole, self._batched)

    def __call__(self, /, *inputs: Any) -> Any:
        self._whole._check_count(inputs)
        specs = tuple([_spec(self._whole, i, value) for i, value in enumerate(inputs)])
        numbers = self._numbers(specs)
        size, groups = self._batch_size(specs), numbers[1]
        if self._interface == "cuda_kernel" and type(size) is int and type(groups) is int:
            most = max(1, _MOST_BLOCKS_IN_Z // max(1, groups))
            if size > most:
                return self._in_several_launches(inputs, size, most)
        return Function.__call__(self, *inputs, *numbers)

    def _in_several_launches(self, inputs: Sequence[Any], size: int, most: int) -> Any:
        xp = _functions.array_namespace(*inputs)
        parts = [
            _as_tuple(
                self(*[x[i : i + most] if batched else x for x, batched in zip(inputs, self._batched, strict=True)]),
                len(self.output_names),
            )
            for i in range(0, size, most)
        ]
        return self._bare([xp.concatenate(list(outputs)) for outputs in zip(*parts, strict=True)])

    def _specs_of_whole(self, specs: tuple[ArraySpec, ...]) -> tuple[ArraySpec, ...]:
        return tuple(
            [
                ArraySpec(spec.shape[1:], spec.dtype) if batched else spec
                for spec, batched in zip(specs, self._batched, strict=False)
            ]
        )

    def _batch_size(self, specs: Sequence[ArraySpec]) -> Any:
        return specs[self._batched.index(True)].shape[0]

    def _output_shapes(self, *specs: ArraySpec) -> Any:
        size = self._batch_size(specs)
        return [(size, *shape) for shape in self._plan_of_whole(specs).output_shapes]

    def _grid(self, *specs: ArraySpec) -> Any:
        plan = self._plan_of_whole(specs)
        x, y, depth = plan.grid
        threads = plan.threadgroup[2]
        if not (type(threads) is int and threads == 1) and not (type(depth) is int and depth % threads == 0):
            raise ValueError(
                f"{self._prefix}A batch of `{self._whole.name}` as an axis of the grid needs whole threadgroups along z, and "
                f"the grid has {depth} threads there in threadgroups of {threads}."
            )
        return x, y, depth * self._batch_size(specs)

    def _numbers(self, specs: tuple[ArraySpec, ...]) -> tuple[Any, ...]:
        plan = self._plan_of_whole(specs)
        sizes = []
        for shape in plan.output_shapes:
            size: Any = 1
            for n in shape:
                size = size * n
            sizes.append(size)
        return plan.grid[2], plan.grid[2] // plan.threadgroup[2], *sizes

    # ---- Its rules: those of an element under the library's own vmap.

    def _vmapped(self, apply: Callable[..., tuple[Any, ...]], arrays: list[Any], axes: list[int | None]) -> list[Any]:
        """What `apply` gives for each element; None stays None."""
        given: list[bool] = []

        def one(*values: Any) -> Any:
            results = apply(*values)
            given[:] = [result is not None for result in results]
            return tuple([result for result in results if result is not None])

        results = iter(_vmap_of(arrays)(one, tuple(axes))(*arrays))
        return [next(results) if has else None for has in given]

    def _axes(self) -> list[int | None]:
        return [0 if batched else None for batched in self._batched]

    def _batched_vjp(self, primals: Any, cotangents: Any, outputs: Any) -> Any:
        count, results = self._count, len(self.output_names)
        cotangents, outputs = (_as_tuple(value, results) for value in (cotangents, outputs))

        def one(*values: Any) -> Any:
            return self._whole._apply_vjp(values[:count], values[count : count + results], values[count + results :])

        gradients = self._vmapped(one, [*primals[:count], *cotangents, *outputs], [*self._axes(), *[0] * (2 * results)])
        # An input that all have in common has the gradients of all.
        summed = [
            gradient if gradient is None or batched else gradient.sum(0)
            for gradient, batched in zip(gradients, self._batched, strict=True)
        ]
        return tuple(summed) + (None,) * (len(self.input_names) - count)

    def _batched_jvp(self, primals: Any, tangents: Any) -> Any:
        count = self._count
        given = [i for i in range(count) if tangents[i] is not None]

        def one(*values: Any) -> Any:
            all_tangents: list[Any] = [None] * count
            for i, tangent in zip(given, values[count:], strict=True):
                all_tangents[i] = tangent
            return self._whole._apply_jvp(values[:count], tuple(all_tangents))

        axes = self._axes()
        return tuple(
            self._vmapped(one, [*primals[:count], *[tangents[i] for i in given]], [*axes, *[axes[i] for i in given]])
        )

    def _batched_vmap(self, inputs: Any, axes: Any) -> Any:
        """A batch of batches is one."""
        own = inputs[: self._count]
        xp = _functions.array_namespace(*own)
        outer = next(x.shape[axis] for x, axis in zip(inputs, axes, strict=True) if axis is not None)
        inner = None
        for x, axis, batched in zip(own, axes, self._batched, strict=False):
            if batched:
                shape = [n for d, n in enumerate(x.shape) if d != axis]
                inner = shape[0]
        arrays = []
        flags = []
        for x, axis, batched in zip(own, axes, self._batched, strict=False):
            flags.append(batched or axis is not None)
            if flags[-1]:
                x = x[None] if axis is None else _in_front(xp, x, axis)
                if not batched:
                    x = x[:, None]
                rest = tuple(x.shape[2:])
                x = xp.reshape(xp.broadcast_to(x, (outer, inner, *rest)), (outer * inner, *rest))
            arrays.append(x)
        outputs = _as_tuple(batched_function(self._whole, tuple(flags))(*arrays), len(self.output_names))
        shaped = [xp.reshape(y, (outer, inner, *y.shape[1:])) for y in outputs]
        return tuple(shaped), (0,) * len(shaped)


def _in_front(xp: Any, array: Any, axis: int) -> Any:
    # Of PyTorch's two names for it vmap knows one.
    return (xp.movedim if xp.__name__ == "torch" else xp.moveaxis)(array, axis, 0)


def _as_tuple(value: Any, count: int) -> tuple[Any, ...]:
    return (value,) if count == 1 and not isinstance(value, (list, tuple)) else tuple(value)


def _vmap_of(arrays: Sequence[Any]) -> Callable[..., Any]:
    """The vmap of the arrays' library: of a function and the axes of its inputs."""
    namespace = _functions.array_namespace(*arrays)
    if namespace.__name__ == "torch":
        return lambda function, axes: namespace.vmap(function, in_dims=axes)
    if namespace.__name__ == "jax.numpy":
        import jax

        return lambda function, axes: jax.vmap(function, in_axes=axes)
    return lambda function, axes: namespace.vmap(function, in_axes=axes)


def batched_function(whole: Function, batched: tuple[bool, ...]) -> Batched:
    """The same for the same inputs."""
    known: Batched | None = whole._parts.get(batched)
    if known is None:
        known = whole._parts[batched] = Batched(whole, batched)
    return known


def apply_vmap(whole: Function, inputs: Sequence[Any], axes: Sequence[int | None]) -> Any:
    """``vmap="grid"``."""
    xp = _functions.array_namespace(*inputs)
    arrays = [x if axis is None else _in_front(xp, x, axis) for x, axis in zip(inputs, axes, strict=True)]
    outputs = batched_function(whole, tuple([axis is not None for axis in axes]))(*arrays)
    return outputs, (0,) * len(whole.output_names) if len(whole.output_names) > 1 else 0


# ---- Slices.

_AXES = "xyz"


class Slice(_Part):
    """One of ``count`` slices of a function's grid along ``axis``, in whole threadgroups."""

    def __init__(self, whole: Function, index: Any, count: int, axis: int) -> None:
        self._index = index
        self._slices = count
        self._axis = axis
        super().__init__(whole, [], axis)

    def __reduce__(self) -> Any:
        return _restore_slice, (self._whole, self._index, self._slices, self._axis, self._rules)

    def _cut(self, plan: _functions.Plan) -> tuple[Any, ...]:
        """Where the slice begins, in threadgroups; its threads; the grid's threads and threadgroups; those of one."""
        total, threads = plan.grid[self._axis], plan.threadgroup[self._axis]
        # As a launch has it: a threadgroup is no larger than the grid.
        threads = max(1, min(total, threads))
        groups = (total + threads - 1) // threads
        is_metal = self._interface == "metal_kernel"
        if type(self._index) is not int:
            # All devices have one program, which knows no sizes that differ between them.
            if groups % self._slices or (is_metal and total % threads):
                raise ValueError(
                    f"{self._prefix}`{self._whole.name}` has {total} threads along {_AXES[self._axis]} in threadgroups of "
                    f"{threads}, which {self._slices} devices of one program cannot share evenly."
                )
            each = groups // self._slices
            return self._index * each, each * threads, total, groups, threads
        begin = self._index * groups // self._slices
        end = (self._index + 1) * groups // self._slices
        # CUDA's blocks are whole, the last too.
        last = total if is_metal else groups * threads
        return begin, min(end * threads, last) - begin * threads, total, groups, threads

    def _grid(self, *specs: ArraySpec) -> Any:
        plan = self._plan_of_whole(specs)
        sizes = list(plan.grid)
        sizes[self._axis] = self._cut(plan)[1]
        return tuple(sizes)

    def _numbers(self, specs: tuple[ArraySpec, ...]) -> tuple[Any, ...]:
        begin, _, total, groups, threads = self._cut(self._plan_of_whole(specs))
        return begin * threads, begin, total, groups, threads


def _restore_slice(whole: Function, index: Any, count: int, axis: int, rules: dict[str, Any]) -> Slice:
    function = Slice(whole, index, count, axis)
    function._set_rules(rules)
    return function
