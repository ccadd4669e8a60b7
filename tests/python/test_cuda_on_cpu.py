"""CUDA bodies on the CPU: on both engines, with every instruction set, the same bits and what the references say."""

import fractions
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cuda_launch
import kiln
import numpy as np
import pytest
from configurations import Result, available, call_on, different, has
from cuda_launch import CUDA_BODIES
from sampling import covering

TESTS = Path(__file__).parent.parent
REFUSED = {"cuda_inline_ptx": "source:5:5: error: 'asm': inline PTX is not supported on the CPU"}
LINE: dict[str, Any] = {"grid": (64, 1, 1), "threadgroup": (32, 1, 1)}


def result(name: str) -> Result:
    """What a body gives, and on which engine."""
    outputs = cuda_launch.launch(CUDA_BODIES[name])
    launch = cuda_launch.kernel_of(name).history[-1]
    return Result(outputs, launch.engine, launch.engine_reason)


# Threads of a warp part, and wait for one another.
SCALAR = {"cuda_calls_in_branches", "cuda_lock_of_all_threads"}


def runs() -> list[Any]:
    """Bodies and configurations. `make test` runs a sample of bodies on the last configuration, which is the processor's
    best, and on one of the others in turn."""
    *others, best = available()
    parameters = []
    names = covering({name: CUDA_BODIES[name] for name in CUDA_BODIES if name not in REFUSED})
    for n, (name,) in enumerate(parameter.values for parameter in names if not parameter.marks):
        some = [others[n % len(others)], best]
        parameters.append(pytest.param(name, some, id=name))
        rest = [configuration for configuration in others if configuration not in some]
        parameters.append(pytest.param(name, rest, id=f"{name}-others", marks=pytest.mark.long))
    for (name,) in (parameter.values for parameter in names if parameter.marks):
        parameters.append(pytest.param(name, available(), id=name, marks=pytest.mark.long))
    return parameters


@pytest.mark.parametrize(("name", "configurations"), runs())
def test_every_engine_gives_what_the_reference_says_and_the_same_bits(name, configurations):
    body = CUDA_BODIES[name]
    expected = body.expected()
    results = call_on(configurations, "test_cuda_on_cpu", "result", name)
    for configuration, found in results.items():
        problems = [body.mismatch(key, got, expected[key]) for key, got in zip(expected, found.outputs, strict=True)]
        assert not any(problems), f"{configuration}: {problems}"
        assert found.engine == ("scalar" if name in SCALAR else configuration[0]), found.reason
    assert different(results) == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_body_is_refused(name):
    with pytest.raises(kiln.UnsupportedError) as raised:
        cuda_launch.launch(CUDA_BODIES[name])
    assert str(raised.value).splitlines()[1] == REFUSED[name]


def run(source, inputs=None, output=((64,), "float32"), header="", shared_memory=0, template=None, **changes):
    """The output `y`."""
    inputs = inputs or {}
    kernel = kiln.cuda_kernel(
        name="k",
        input_names=list(inputs),
        output_names=["y"],
        source=source,
        header=header,
        shared_memory=shared_memory,
        compile_options=changes.pop("compile_options", {}),
    )
    (y,) = kernel(
        inputs=list(inputs.values()),
        output_shapes=[output[0]],
        output_dtypes=[np.dtype(output[1])],
        template=template,
        **(LINE | changes),
    )
    assert kernel.history[-1].engine == "simd" or not has("x86-64-v3")
    return y


HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


# ---- Functions that the bodies do not call


def values(low, high, dtype=np.float64):
    return np.random.default_rng(3).uniform(low, high, 64).astype(dtype)


OF_ONE: dict[str, tuple[Any, tuple[float, float]]] = {
    name: (getattr(math, name), ends)
    for names, ends in {
        "exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan erf erfc floor ceil trunc fabs cbrt": (-5, 5),
        "log log2 log10 log1p sqrt lgamma": (0.01, 50),
        "asin acos atanh": (-0.99, 0.99),
        "acosh": (1, 50),
        "tgamma": (0.1, 8),
    }.items()
    for name in names.split()
    if hasattr(math, name)
} | {
    "tgamma": (math.gamma, (0.1, 8)),
    "exp10": (lambda v: 10**v, (-5, 5)),
    "rsqrt": (lambda v: 1 / math.sqrt(v), (0.01, 50)),
    "rcbrt": (lambda v: 1 / math.cbrt(v), (0.01, 50)),
    "sinpi": (lambda v: math.sin(math.pi * math.remainder(v, 2)), (-5, 5)),
    "cospi": (lambda v: math.cos(math.pi * math.remainder(v, 2)), (-5, 5)),
    "normcdf": (lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), (-5, 5)),
    "rint": (round, (-9, 9)),
    "logb": (lambda v: math.frexp(v)[1] - 1, (0.01, 50)),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_a_function_of_one_number(name):
    function, ends = OF_ONE[name]
    x = values(*ends)
    expected = np.array([function(float(v)) for v in x])
    got = run(HEAD + f"y[i] = {name}(x[i]);", {"x": x}, ((64,), "float64"))
    np.testing.assert_allclose(got, expected, rtol=4e-15, atol=1e-15)
    x = x.astype(np.float32)
    expected = np.array([function(float(v)) for v in x])
    for call in (name, name + "f"):
        got = run(HEAD + f"y[i] = {call}(x[i]);", {"x": x})
        np.testing.assert_allclose(got, expected, rtol=6e-7, atol=2e-7)


@pytest.mark.parametrize(("name", "back"), [("erfinv", "erf"), ("erfcinv", "erfc"), ("normcdfinv", "normcdf")])
def test_an_inverse(name, back):
    x = values(0.001, 0.999)
    got = run(HEAD + f"y[i] = {back}({name}(x[i]));", {"x": x}, ((64,), "float64"))
    np.testing.assert_allclose(got, x, rtol=1e-14)


OF_TWO: dict[str, Any] = {
    "atan2": math.atan2,
    "fmod": math.fmod,
    "hypot": math.hypot,
    "pow": lambda a, b: abs(a) ** b,
    "remainder": math.remainder,
    "nextafter": math.nextafter,
    "copysign": math.copysign,
    "fdim": lambda a, b: max(a - b, 0.0),
    "fmin": min,
    "fmax": max,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("name", OF_TWO)
def test_a_function_of_two_numbers(name):
    a, b = values(-5, 5), values(-5, 5)[::-1].copy()
    first = "fabs(a[i])" if name == "pow" else "a[i]"
    expected = np.array([OF_TWO[name](float(v), float(w)) for v, w in zip(a, b, strict=True)])
    got = run(HEAD + f"y[i] = {name}({first}, b[i]);", {"a": a, "b": b}, ((64,), "float64"))
    np.testing.assert_allclose(got, expected, rtol=4e-15)
    if name == "nextafter":
        return  # the neighbour is another one among floats
    a, b = a.astype(np.float32), b.astype(np.float32)
    expected = np.array([OF_TWO[name](float(v), float(w)) for v, w in zip(a, b, strict=True)])
    got = run(HEAD + f"y[i] = {name}({first}, b[i]);", {"a": a, "b": b})
    np.testing.assert_allclose(got, expected, rtol=6e-7)


def rounded(exact, dtype, direction):
    """A fraction as a float of the dtype: the nearest, or the next in a direction."""
    near = dtype(float(exact)) if dtype is np.float64 else np.float32(float(exact))
    if direction == "n":
        return near
    toward_zero = "d" if exact > 0 else "u"
    way = toward_zero if direction == "z" else direction
    if way == "d" and fractions.Fraction(float(near)) > exact:
        return np.nextafter(near, dtype(-np.inf))
    if way == "u" and fractions.Fraction(float(near)) < exact:
        return np.nextafter(near, dtype(np.inf))
    return near


@pytest.mark.parametrize("direction", "zdu")
@pytest.mark.parametrize(("prefix", "dtype"), [("f", np.float32), ("d", np.float64)])
def test_arithmetic_rounds_in_a_direction(prefix, dtype, direction):
    a, b = values(-5, 5, dtype=dtype), values(0.1, 7, dtype=dtype)[::-1].copy()
    for word, apply in {
        "add": lambda v, w: v + w,
        "sub": lambda v, w: v - w,
        "mul": lambda v, w: v * w,
        "div": lambda v, w: v / w,
    }.items():
        exact = [apply(fractions.Fraction(float(v)), fractions.Fraction(float(w))) for v, w in zip(a, b, strict=True)]
        expected = np.array([rounded(e, dtype, direction) for e in exact])
        got = run(HEAD + f"y[i] = __{prefix}{word}_r{direction}(a[i], b[i]);", {"a": a, "b": b}, ((64,), dtype))
        np.testing.assert_array_equal(got, expected, word)


@pytest.mark.parametrize("direction", "nzdu")
def test_integers_become_floats_in_a_direction(direction):
    numbers = np.array([2**31 - 1, -(2**31), 2**24 + 1, 2**24 + 3, -(2**24) - 1, -(2**24) - 3, 5, 0] * 8, np.int32)
    wide = np.array([2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**24 + 1, 2**40 + 1, 5, 0] * 8, np.int64)
    for word, x in (("int", numbers), ("ll", wide)):
        expected = [rounded(fractions.Fraction(int(v)), np.float32, direction) for v in x]
        got = run(HEAD + f"y[i] = __{word}2float_r{direction}(x[i]);", {"x": x})
        np.testing.assert_array_equal(got, np.array(expected))
    expected = [rounded(fractions.Fraction(int(v)), np.float64, direction) for v in wide]
    got = run(HEAD + f"y[i] = __ll2double_r{direction}(x[i]);", {"x": wide}, ((64,), "float64"))
    np.testing.assert_array_equal(got, np.array(expected))


def test_halves_of_doubles_and_integers_are_rounded_once():
    # Between two halves, and a little beside: through float the little thing would be lost.
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 1 + 2**-11, 65519.999999, 2**-25 + 2**-60] * 10)
    got = run(HEAD + "if (i < 50) y[i] = __half(x[i]);", {"x": x}, ((50,), "float16"))
    np.testing.assert_array_equal(got, x.astype(np.float16))
    n = np.array([2049, 2051, 65519, 65521, -4097, 33554431, 7] * 9, np.int32)
    got = run(HEAD + "if (i < 63) y[i] = __int2half_rn(x[i]);", {"x": n}, ((63,), "float16"))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, n.astype(np.float64).astype(np.float16))


def test_integer_functions():
    x = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 64)
    z = np.random.default_rng(2).integers(-(2**63), 2**63 - 1, 64)
    got = run(HEAD + "y[i] = __mul64hi(x[i], z[i]);", {"x": x, "z": z}, ((64,), "int64"))
    assert got.tolist() == [int(a) * int(b) >> 64 for a, b in zip(x, z, strict=True)]
    a, b = x.astype(np.int32), z.astype(np.int32)
    got = run(HEAD + "y[i] = __dp4a(x[i], z[i], i);", {"x": a, "z": b}, ((64,), "int32"))
    bytes_a, bytes_b = (v.view(np.int8).reshape(64, 4).astype(np.int32) for v in (a, b))
    assert got.tolist() == ((bytes_a * bytes_b).sum(1) + np.arange(64)).tolist()
    got = run(HEAD + "y[i] = __byte_perm(x[i], z[i], 0x7a13);", {"x": a, "z": b}, ((64,), "uint32"))
    both = np.stack([a.view(np.uint8).reshape(64, 4), b.view(np.uint8).reshape(64, 4)], 1).reshape(64, 8)
    sign = np.where(both[:, 2] & 128, 255, 0)
    picked = [both[:, 3], both[:, 1], sign, both[:, 7]]
    assert got.tolist() == [sum(int(p[n]) << (8 * k) for k, p in enumerate(picked)) for n in range(64)]
    got = run(HEAD + "y[i] = __fns(x[i], 3, 2);", {"x": a}, ((64,), "uint32"))
    places = [[k for k in range(3, 32) if int(v) >> k & 1] for v in a]
    assert got.tolist() == [p[1] if len(p) > 1 else 2**32 - 1 for p in places]


# ---- Warps and masks

LANE = np.arange(64) % 32


def test_masks_where_threads_part():
    x = np.random.default_rng(5).integers(0, 100, 64).astype(np.int32)
    got = run(
        HEAD
        + """
        int lane = threadIdx.x;
        if (lane % 3 == 0) {
          unsigned group = __activemask();
          y[i] = __reduce_add_sync(group, x[i]) + 10000 * (group == 0x49249249u);
        } else if (lane < 16) {
          y[i] = __shfl_down_sync(__activemask(), x[i], 3);
        } else {
          y[i] = __ballot_sync(__activemask(), x[i] > 50) ^ __match_any_sync(__activemask(), x[i] & 3);
        }
        """,
        {"x": x},
        ((64,), "int32"),
    )
    expected = np.zeros(64, np.int64)
    for first in (0, 32):
        v = x[first : first + 32].astype(np.int64)
        lane = np.arange(32)
        thirds, low = lane % 3 == 0, (lane % 3 != 0) & (lane < 16)
        high = ~thirds & ~low
        voted = sum(1 << k for k in lane if high[k] and v[k] > 50)
        for k in lane:
            match = sum(1 << other for other in lane if high[other] and v[other] & 3 == v[k] & 3)
            source = k + 3
            shuffled = v[source] if source < 32 and low[source] else 0
            expected[first + k] = (
                v[thirds].sum() + 10000 if thirds[k] else shuffled if low[k] else np.int64(voted ^ match)
            )
    where = ~((LANE % 3 != 0) & (LANE < 16) & (LANE + 3 >= 16))  # their sources are elsewhere, which is undefined
    np.testing.assert_array_equal(got[where], expected.astype(np.uint32).view(np.int32)[where])


def test_each_lane_may_have_a_mask_of_its_own():
    x = np.random.default_rng(6).integers(0, 2**31, 64).astype(np.uint32)
    names: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum}
    names |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for name, apply in names.items():
        source = f"unsigned m = 0x01010101u << (threadIdx.x & 7); y[i] = __reduce_{name}_sync(m, x[i]);"
        got = run(HEAD + source, {"x": x}, ((64,), "uint32"))
        groups = apply.reduce(x.reshape(2, 4, 8), axis=1, dtype=np.uint32)
        np.testing.assert_array_equal(got, np.repeat(groups[:, None], 4, 1).reshape(-1))
    got = run(
        HEAD + "unsigned m = 0x55555555u << (threadIdx.x & 1);\n"
        "y[i] = __any_sync(m, x[i] < 100) + 2 * __all_sync(m, x[i] < 200) + 4 * (__ballot_sync(m, 1) == m);",
        {"x": x % 220},
        ((64,), "int32"),
    )
    pairs = (x % 220).reshape(2, 16, 2)
    expected = np.asarray((pairs < 100).any(1) + 2 * (pairs < 200).all(1) + 4)
    np.testing.assert_array_equal(got, np.repeat(expected[:, None], 16, 1).reshape(-1))


def test_match_all_says_whether_all_agree():
    got = run(
        HEAD
        + "int same; unsigned m = __match_all_sync(~0u, x[i], &same); y[i] = same + 2 * (m == ~0u) + 4 * (m == 0);",
        {"x": np.array([7] * 32 + [7] * 31 + [8], np.int32)},
        ((64,), "int32"),
    )
    np.testing.assert_array_equal(got, np.where(np.arange(64) < 32, 3, 4))


@pytest.mark.parametrize("width", [2, 8, 32])
def test_shuffles_within_a_width(width):
    x = np.arange(64, dtype=np.int32)
    first, place = LANE - LANE % width, LANE % width
    warp = np.arange(64) - LANE
    for call, source in {
        "__shfl_sync(~0u, x[i], 5, W)": first + 5 % width,
        "__shfl_up_sync(~0u, x[i], 3, W)": np.where(place >= 3, LANE - 3, LANE),
        "__shfl_down_sync(~0u, x[i], 3, W)": np.where(place + 3 < width, LANE + 3, LANE),
        "__shfl_xor_sync(~0u, x[i], 9, W)": np.where(first + width > (LANE ^ 9), LANE ^ 9, LANE),
    }.items():
        got = run(HEAD + f"constexpr int W = {width}; y[i] = {call};", {"x": x}, ((64,), "int32"))
        np.testing.assert_array_equal(got, warp + source, call)


def test_threads_that_returned_take_no_part():
    got = run(
        HEAD + "if (threadIdx.x >= 20) return; y[i] = __popc(__ballot_sync(0xfffff, 1)) + __syncthreads_count(1);",
        output=((64,), "int32"),
        init_value=0,
    )
    np.testing.assert_array_equal(got, np.where(LANE < 20, 40, 0))


def test_whole_blocks_run():
    got = run(
        "atomicAdd(&y[0], 1); if (threadIdx.x == 0 && blockIdx.x == 2) { y[1] = gridDim.x; y[2] = blockDim.x; }",
        output=((3,), "int32"),
        grid=(70, 1, 1),
        init_value=0,
    )
    assert got.tolist() == [96, 3, 32]


def test_groups_without_barriers_may_wait_for_one_another():
    # The last block to come finds what all have written.
    got = run(
        """
        __shared__ bool last;
        if (threadIdx.x == 0) { y[1 + blockIdx.x] = blockIdx.x; __threadfence(); last = atomicInc((unsigned*)y, 1000) == 63; }
        __syncthreads();
        if (last && threadIdx.x == 0) { int sum = 0; for (int b = 0; b < 64; ++b) sum += __ldcg(&y[1 + b]); y[0] = sum; }
        """,
        output=((65,), "int32"),
        grid=(64 * 32, 1, 1),
        init_value=0,
    )
    assert got[0] == 63 * 32


# ---- Memory


def test_accesses_outside_an_array_are_guarded():
    x = np.arange(1, 65, dtype=np.float32)
    got = run(HEAD + "y[i + 100000] = 1; y[i] = x[i - 50] + (i == 5 ? x[1 << 20] : 0.0f);", {"x": x})
    np.testing.assert_array_equal(got, np.where(np.arange(64) >= 50, np.arange(64) - 49, 0))
    got = run(HEAD + "y[i] = 1; atomicAdd(&y[i - 64], 5.0f); atomicCAS((int*)&y[i + 64], 0, 1);")
    np.testing.assert_array_equal(got, np.ones(64))


def test_all_dynamic_arrays_are_one():
    got = run(
        """
        extern __shared__ float floats[];
        fill(threadIdx.x);
        __syncthreads();
        y[blockIdx.x * 32 + threadIdx.x] = floats[31 - threadIdx.x];
        """,
        header="""
        extern __shared__ __align__(16) unsigned char bytes[];
        __device__ void fill(int i) { reinterpret_cast<float*>(bytes)[i] = i; }
        """,
        shared_memory=128,
    )
    np.testing.assert_array_equal(got, 31 - LANE)


def test_shared_memory_is_limited():
    with pytest.raises(kiln.UnsupportedError) as raised:
        run("extern __shared__ float s[]; s[0] = 1; __syncthreads(); y[0] = s[0];", shared_memory=2 << 20)
    assert str(raised.value) == (
        "[cuda_kernel] `k` needs 2097152 bytes of threadgroup memory, and the cpu target has 1048576."
    )


def test_small_floats_are_added_atomically():
    for dtype in ("float16", "bfloat16"):
        name = "__half2" if dtype == "float16" else "__nv_bfloat162"
        kernel = kiln.cuda_kernel(
            "k", [], ["y"], f"{name} v(1.0f, 2.0f); atomicAdd(reinterpret_cast<{name}*>(y), v);", shared_memory=0
        )
        (y,) = kernel(inputs=[], output_shapes=[(2,)], output_dtypes=[dtype], init_value=0, **LINE)
        assert y.astype(np.float32).tolist() == [64, 128]


# ---- What is printed, and assertions


def test_printf():
    program = """
        import kiln, numpy as np
        body = r'''
        if (threadIdx.x == 5) printf("%d|%5.2f|%s|%lld|%x|%-4u|%c|%%|%e|%d\\n", -3, 1.5f, "text", 1ll << 40, 255u, 7u, 'q', 0.5, 2.75);
        y[0] = 1;
        '''
        kernel = kiln.cuda_kernel("k", [], ["y"], body)
        kernel(inputs=[], output_shapes=[(1,)], output_dtypes=["int32"], grid=(32, 1, 1), threadgroup=(32, 1, 1))
        print(kernel.history[-1].engine)
    """
    for engine in ("scalar", "simd"):
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(line.strip() for line in program.splitlines())],
            env={**os.environ, "KILN_CPU_ENGINE": engine},
            capture_output=True,
            text=True,
            check=True,
        )
        ran_on = engine if has("x86-64-v3") else "scalar"
        assert done.stdout == f"-3| 1.50|text|1099511627776|ff|7   |q|%|5.000000e-01|2\n{ran_on}\n"


def test_printf_reads_what_the_kernel_may_read():
    """Text in an array ends with it, and what points anywhere has none."""
    program = """
        import kiln, numpy as np
        body = r'''
        printf("%s|", (const char*)x);
        printf((const char*)x);
        printf("|%s|%s|\\n", (const char*)0x10, (const char*)nullptr);
        y[0] = 1;
        '''
        kernel = kiln.cuda_kernel("k", ["x"], ["y"], body)
        x = np.full(64, ord("A"), np.uint8)
        kernel(inputs=[x], output_shapes=[(1,)], output_dtypes=["int32"], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    """
    for engine in ("scalar", "simd"):
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(line.strip() for line in program.splitlines())],
            env={**os.environ, "KILN_CPU_ENGINE": engine},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{64 * 'A'}|{64 * 'A'}||(no text)|\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("y[0] = 1;\nassert(threadIdx.x < 5);", "assertion `threadIdx.x < 5` failed in line 2 of the source"),
        ("if (threadIdx.x == 7)\n  __trap();", "__trap() was called in line 2 of the source"),
        ("check(threadIdx.x);", 'assertion `i != 3 && "three"` failed in line 1 of the header'),
        (
            "if (threadIdx.x < 3)\n  __syncthreads();\nelse { y[0] = 1; __syncthreads(); }",
            "only 3 of 32 threads reach the __syncthreads in line 2 of the source; the launch was ended",
        ),
        (
            "auto block = cg::this_thread_block();\nif (threadIdx.x < 3) block.sync(); else { y[0] = 1; block.sync(); }",
            "only 3 of 32 threads reach the __syncthreads in line 2 of the source; the launch was ended",
        ),
    ],
)
def test_a_launch_that_ends_with_an_error(source, message):
    with pytest.raises(kiln.DeviceError) as raised:
        run(source, header='__device__ void check(int i) { assert(i != 3 && "three"); }')
    assert str(raised.value) == f"kernel `k`: {message}"


# ---- What is refused, and messages


@pytest.mark.parametrize(
    ("source", "header", "message"),
    [
        ("y[0] = tex2D<float>(t, 0, 0);", "", "source:1:8: error: 'tex2D': textures and surfaces are not supported on the CPU"),
        ("cudaTextureObject_t t;", "", "source:1:1: error: 'cudaTextureObject_t': textures and surfaces are not supported on the CPU"),
        ("nvcuda::wmma::fragment<int> f;", "", "source:1:1: error: 'nvcuda': tensor cores are not supported on the CPU"),
        ("cuda::barrier<0> b;", "", "source:1:1: error: 'cuda': CUDA's C++ libraries are not supported on the CPU"),
        ("\n cub::Sum s;", "", "source:2:2: error: 'cub': CUDA's C++ libraries are not supported on the CPU"),
        ("y[0] = 1; f<<<1, 2>>>(y);", "", "source:1:12: error: '<<<': a kernel cannot launch kernels on the CPU"),
        ("int* p = new int;", "", "source:1:10: error: 'new': a kernel cannot allocate memory on the CPU"),
        ("void* p = malloc(4);", "", "source:1:11: error: 'malloc': a kernel cannot allocate memory on the CPU"),
        ("delete y;", "", "source:1:1: error: 'delete': a kernel cannot allocate memory on the CPU"),
        ("throw 1;", "", "source:1:1: error: 'throw': exceptions are not supported"),
        ("try { y[0] = 1; } catch (...) {}", "", "source:1:1: error: 'try': exceptions are not supported"),
        ("struct S { virtual void f(); };", "", "source:1:12: error: 'virtual': virtual functions are not supported on the CPU"),
        ("y[0] = typeid(y) == typeid(int);", "", "source:1:8: error: 'typeid': types are not known when a kernel runs"),
        ("static thread_local int n;", "", "source:1:8: error: 'thread_local': static variables of a thread are not supported"),
        ("auto c = cg::this_cluster();", "", "source:1:14: error: 'this_cluster': clusters of blocks are not supported on the CPU"),
        ("goto end; end: y[0] = 1;", "", "source:1:1: error: 'goto': jumps to labels are not supported on the CPU"),
        ("__pipeline_commit();", "", "source:1:1: error: '__pipeline_commit': asynchronous copies are not supported on the CPU"),
        ("__float128 v;", "", "source:1:1: error: '__float128': floats of 128 bits are not supported on the CPU"),
        ("__nv_fp8_e4m3 x;", "", "source:1:1: error: '__nv_fp8_e4m3': floats of 8 bits are not supported on the CPU"),
        ("cg::this_grid().sync();", "", "source:1:17: error: 'sync': barriers of a whole grid are not supported on the CPU"),
        ("auto t = cg::tiled_partition<64>(cg::this_thread_block());", "", "source:1:14: error: 'tiled_partition': tiles of more than a warp are not supported on the CPU"),
        ("__barrier_sync_count(1, 32);", "", "source:1:1: error: '__barrier_sync_count': barriers of a part of a block are not supported on the CPU"),
        ("longlong2 v{1, 2}; atomicCAS((longlong2*)y, v, v);", "", "source:1:20: error: 'atomicCAS': atomics of 128 bits are not supported on the CPU"),
        ("y[0] = __isShared(y);", "", "source:1:8: error: '__isShared': asking which memory an address is in is not supported on the CPU"),
        ("y[0] = f<int>(y);", "template <typename T> __device__ T f(float* p) { return T(__cvta_generic_to_shared(p)); }", "header:1:59: error: '__cvta_generic_to_shared': asking which memory an address is in is not supported on the CPU"),
        ("y[0] = 1;", "#include <mma.h>", "header:1:1: error: '#include <mma.h>': this header is not supported on the CPU"),
        ("y[0] = f(3);", "__device__ int f(int n) { return n ? f(n - 1) : 1; }", "header:1:16: error: 'f': recursion is not supported"),
        (
            "y[0] = ++n;",
            "__device__ int n;",
            "header:1:16: error: 'n': on the CPU a variable outside of functions must be `const`, `__constant__` or `__shared__`",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_by_name(source, header, message):
    with pytest.raises(kiln.UnsupportedError) as raised:
        run(source, header=header)
    assert str(raised.value).splitlines()[:2] == ["[cuda_kernel] `k` uses what is not supported.", message]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("y[0] = q;", "source:1:8: error: use of undeclared identifier 'q'"),
        ("x[0] = 1;", "source:1:6: error: read-only variable is not assignable; inputs and constants cannot be written"),
        ("y[0] = __shfl_sinc(~0u, 1, 2);", "source:1:8: error: use of undeclared identifier '__shfl_sinc'; did you mean '__shfl_sync'?"),
        ("y[0] = thread_position_in_grid.x;", "source:1:8: error: use of undeclared identifier 'thread_position_in_grid'; in CUDA it is 'blockIdx * blockDim + threadIdx'"),
        ("y[0] = __shfl_down(1, 2);", "source:1:8: error: use of undeclared identifier '__shfl_down'; use '__shfl_down_sync', which takes a mask"),
        ("uint i = 0; y[i] = 1;", "source:1:1: error: unknown type name 'uint'; in CUDA it is 'unsigned'"),
        ("threadgroup_barrier();", "source:1:1: error: use of undeclared identifier 'threadgroup_barrier'; in CUDA it is '__syncthreads()'"),
        ("metal::exp(1.0f);", "source:1:1: error: use of undeclared identifier 'metal'"),
        ("float t = threadIdx;", "source:1:7: error: no viable conversion from 'const uint3' to 'float'"),
        ("float t = blockIdx;", "source:1:7: error: no viable conversion from 'const uint3' to 'float'"),
        ("float t = blockDim;", "source:1:7: error: no viable conversion from 'const dim3' to 'float'"),
        ("float t = gridDim;", "source:1:7: error: no viable conversion from 'const dim3' to 'float'"),
        ("float4 a; a.q = 1;", "source:1:13: error: no member named 'q' in 'float4'"),
        ("__shared__ int a = 3;", "source:1:18: error: a __shared__ variable cannot have an initial value"),
        ("extern __shared__ float s[]; s[0] = 1;", "source:1:25: error: 's' has no memory: `shared_memory`, the bytes of `extern __shared__` arrays, is 0"),
        ("y[0] = int8_t(3) + half(1.0f);", "source:1:18: error: use of overloaded operator '+' is ambiguous (with operand types 'int8_t' (aka 'signed char') and 'half' (aka '__half'))"),
        ("{ y[0] = 1;", "source:1:1: error: nothing closes this '{'"),
    ],
)  # fmt: skip
def test_messages(source, message):
    with pytest.raises(kiln.CompileError) as raised:
        run(source, {"x": np.zeros(64, np.float32)})
    lines = str(raised.value).splitlines()
    assert lines[:2] == ["[cuda_kernel] `k` does not compile.", message]
    assert len(lines) == 4  # and the line with its caret


def test_names_of_metal_and_of_kiln_are_the_bodys():
    header = """
    typedef unsigned int uint;
    namespace metal { __device__ int exp(int x) { return x + 1; } }
    struct vec { float x; };
    __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
    __device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
    constexpr float M_PI_F = 3.0f;
    struct Shape { int n; };
    """
    got = run(HEAD + "uint n = metal::exp(i); vec v{lerp(0, 2, 0.5f)}; y[i] = n + v.x + (make_float2(1, 2) + make_float2(3, 4)).y;", header=header)  # fmt: skip
    np.testing.assert_array_equal(got, np.arange(64) + 1 + 1 + 6)


def test_known_headers_are_accepted():
    header = "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n#include <cstdint>\n#include <cuda_runtime.h>\n"
    np.testing.assert_array_equal(run(HEAD + "y[i] = uint8_t(i + 256);", header=header), np.arange(64))


# As <cuComplex.h> computes them, in the type's own arithmetic.
def quotient(a, b):
    p, q = a
    r, s = b
    scale = 1 / (abs(r) + abs(s))
    p, q, r, s = p * scale, q * scale, r * scale, s * scale
    inverse = 1 / (r * r + s * s)
    return (p * r + q * s) * inverse, (q * r - p * s) * inverse


def magnitude(z):
    a, b = abs(z[0]), abs(z[1])
    high, low = np.where(a > b, a, b), np.where(a > b, b, a)
    ratio = low / high
    regular = high * np.sqrt(1 + ratio * ratio)
    largest = np.finfo(high.dtype).max
    return np.where((high == 0) | (high > largest) | (low > largest), high + low, regular)


@pytest.mark.parametrize(("dtype", "suffix"), [("float32", "f"), ("float64", "")])
def test_complex_numbers_of_cuda_have_the_headers_bits(dtype, suffix):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 512)) * 10.0 ** rng.integers(-30, 30, (4, 512))
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e38, 1e-38]
    for row in range(4):
        x[row, : len(special)] = np.roll(special, 2 * row)
    x = x.astype(dtype)
    name = "cuFloatComplex" if suffix else "cuDoubleComplex"
    body = f"""
    {name} a = make_{name}(x[i], x[512 + i]), b = make_{name}(x[1024 + i], x[1536 + i]);
    {name} q = cuCdiv{suffix}(a, b), p = cuCmul{suffix}(a, b), m = cuCfma{suffix}(a, b, a);
    y[i] = q.x; y[512 + i] = q.y; y[1024 + i] = cuCabs{suffix}(a);
    y[1536 + i] = p.x; y[2048 + i] = p.y; y[2560 + i] = m.x; y[3072 + i] = m.y;
    """
    header = "#include <cuComplex.h>\n"
    line = {"grid": (512, 1, 1), "threadgroup": (64, 1, 1)}
    got = run(HEAD + body, {"x": x}, ((7, 512), dtype), header=header, **line)
    with np.errstate(all="ignore"):
        a, b = x[:2], x[2:]
        real, imag = a[0] * b[0], a[0] * b[1]
        expected = [*quotient(a, b), magnitude(a), real - a[1] * b[1], imag + a[1] * b[0]]
        expected += [real + a[0] - a[1] * b[1], a[1] * b[0] + (imag + a[1])]
    np.testing.assert_array_equal(got, np.stack(expected))


def test_a_body_that_does_not_include_cu_complex_has_its_own():
    header = """
    struct cuComplex {
      float r, i;
      __device__ cuComplex(float a, float b) : r(a), i(b) {}
      __device__ cuComplex operator*(const cuComplex& a) { return cuComplex(r * a.r - i * a.i, i * a.r + r * a.i); }
    };
    __device__ float cuCabsf(cuComplex z) { return z.r * z.r + z.i * z.i; }
    """
    got = run(
        HEAD + "cuComplex z(x[i], 2); y[i] = cuCabsf(z * z);", {"x": np.arange(64, dtype=np.float32)}, header=header
    )
    np.testing.assert_array_equal(got, (np.arange(64.0) ** 2 + 4) ** 2)


def test_macros_of_the_compiler():
    source = """
    #if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(__METAL__)
    y[i] = 1;
    #else
    y[i] = 2;
    #endif
    """
    np.testing.assert_array_equal(run(HEAD + source), np.ones(64))


def test_shapes_are_known_or_not():
    source = HEAD + "if (i < x_shape[0] * x_shape[1]) y[i] = x[i] + x_strides[0] + x_ndim;"
    for options in ({}, {"specialize": False}):
        for rows in (2, 4, 8):
            x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
            got = run(source, {"x": x}, ((rows * 8,), "float32"), compile_options=options)
            np.testing.assert_array_equal(got, np.arange(rows * 8) + 8 + 2)


def test_a_template_static_table_is_a_constant():
    header = "template <int N> struct Table { static constexpr float values[4] = {N, N + 1, N + 2, N + 3}; };"
    np.testing.assert_array_equal(run(HEAD + "y[i] = Table<3>::values[i % 4];", header=header), np.arange(64) % 4 + 3)


def test_a_long_body_with_a_loop_and_threads_that_are_out_of_bounds():
    """Whose checked version may be one thread's code, in which loops have no marks."""
    lines = "".join(f"s = s * a[{k % 8}] + a[{(3 * k + 1) % 8}] * {k}.25f;\n" for k in range(150))
    source = (
        "unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\nfloat a[8];\n"
        "for (int k = 0; k < 8; ++k) a[k] = x[i + k];\nfloat s = 1;\n"
        f"for (int round = 0; round < n[0]; ++round) {{\n{lines}}}\ny[i] = s;"
    )
    x = np.random.default_rng(1).random(300, np.float32)
    kernel = kiln.cuda_kernel("long_loop", ["x", "n"], ["y"], source)
    (y,) = kernel(
        inputs=[x, 2], output_shapes=[(300,)], output_dtypes=["float32"], grid=(300, 1, 1), threadgroup=(64, 1, 1)
    )
    padded = np.concatenate([x, np.zeros(8, np.float32)])
    a = [padded[k : k + 300] for k in range(8)]
    s = np.ones(300, np.float32)
    for _ in range(2):
        for k in range(150):
            s = s * a[k % 8] + a[(3 * k + 1) % 8] * np.float32(k + 0.25)
    np.testing.assert_array_equal(y, s)
