"""Every body of `tests/bodies`, with the arrays of each library and on each engine, against its reference.

The tests of a body run one after the other: a process compiles it once for all of them.
"""

import functools

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from configurations import CONFIGURATIONS, Result, available, call_on, different, own
from guarded_pages import GuardedPages
from launch_bodies import BODIES, launch, launch_numpy, result
from mlx_kernels import to_mlx, to_numpy
from sampling import covering, sampled

SAMPLE = covering(BODIES)
IN_SAMPLE = {parameter.values[0] for parameter in SAMPLE if not parameter.marks}
# Bodies in the manner of real ones are long to compile, four times as long as others: every third, and the sample.
CHOSEN = IN_SAMPLE | {
    parameter.values[0]
    for parameter in sampled(BODIES, every=3, group=lambda name: BODIES[name].subject)
    if not parameter.marks or not BODIES[parameter.values[0]].subject.startswith("corpus_")
}
# A scope beyond a function's, and the same list: then pytest puts what has the same parameter together.
by_name = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in CHOSEN else [pytest.mark.long]) for name in BODIES],
    scope="module",
)
by_name_sampled = pytest.mark.parametrize("name", SAMPLE, scope="module")


@functools.cache
def expected_of(name):
    return BODIES[name].expected()


def check(body, outputs):
    expected = expected_of(body.name)
    problems = [body.mismatch(name, got, expected[name]) for name, got in zip(expected, outputs, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))


@by_name
def test_numpy(name):
    body = BODIES[name]
    inputs = body.inputs()
    check(body, launch_numpy(body, list(inputs.values())))
    for key, before in body.inputs().items():
        if isinstance(before, np.ndarray):
            assert inputs[key].tobytes() == before.tobytes(), f"{key} was written"


# ---- MLX


def mlx_dtype(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


@by_name
def test_mlx(name):
    body = BODIES[name]
    inputs = [to_mlx(value) for value in body.inputs().values()]
    outputs = launch(body, kiln.mlx.metal_kernel, inputs, mlx_dtype)
    mx.eval(outputs)
    check(body, [to_numpy(output) for output in outputs])


# ---- Memory safety (docs/language.md 5.1): what lies around an input must not be touched


@by_name
def test_between_guard_pages(name):
    """Each input begins where a page does, and then ends where one does."""
    body = BODIES[name]
    for at_end in (False, True):
        inputs = [
            GuardedPages(value.nbytes).copy(value, at_end)
            if isinstance(value, np.ndarray) and value.flags.c_contiguous and value.size
            else value
            for value in body.inputs().values()
        ]
        check(body, launch_numpy(body, inputs))


# ---- One meaning (docs/language.md 4.2): the same bits on every engine with every instruction set


def always(configuration):
    """The SIMD engine also for long bodies, which it would leave to the other."""
    engine, isa = configuration
    return ("simd-always" if engine == "simd" else engine, isa)


def check_bits(name, configurations):
    """On these, and on this process's own."""
    ours = Result(*result(name))
    others = [
        always(configuration) for configuration in configurations if configuration != own() or ours.engine != own()[0]
    ]
    results = {other: Result(*found) for other, found in call_on(others, "launch_bodies", "result", name).items()}
    for (engine, _), found in results.items():
        assert found.engine == engine.removesuffix("-always"), found.reason
        check(BODIES[name], found.outputs)
    if BODIES[name].compile_options.get("math_mode", "safe") == "safe":  # other modes promise less
        assert different({own(): ours, **results}) == []


@by_name_sampled
def test_every_engine_gives_the_same_bits(name):
    """The sample on the scalar engine with one instruction set, whose others the SIMD engine has."""
    if name in IN_SAMPLE:
        check_bits(name, available()[1:])
    else:
        # The long bodies that were not chosen on the first configuration alone.
        check_bits(name, available() if name in CHOSEN else CONFIGURATIONS[:1])


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(IN_SAMPLE))
def test_the_scalar_engine_gives_the_same_bits_with_the_best_instruction_set(name):
    check_bits(name, CONFIGURATIONS[:1])
