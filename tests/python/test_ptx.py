"""Metal bodies as PTX: `ptxas` takes them for every architecture, and they say what docs/design/nvptx.md says."""

import concurrent.futures
import functools
import re

import kiln
import numpy as np
import pytest
from gpu_code import PTXAS, assemble, ptx_of, ptx_of_body
from launch_bodies import BODIES, kernel_of
from sampling import sampled

ARCHITECTURES = ["sm_80", "sm_90", "sm_90a"]
TOGETHER = 24  # bodies in one file: most of what ptxas needs for one is its own start


# Every twelfth body is one part. All tests of a part run one after the other, and its text is written once.
PARTS = 12
by_part = pytest.mark.parametrize("part", sampled(range(PARTS), every=PARTS), scope="module")


@functools.cache
def all_ptx(architecture, part):
    """Of sm_90a, which LLVM tells from sm_90 by its name alone, some."""
    names = list(BODIES)[part::PARTS][:: 8 if architecture == "sm_90a" else 1]

    def make(name):
        return ptx_of_body(BODIES[name], kernel_of(name, kiln.metal_kernel), architecture)

    with concurrent.futures.ThreadPoolExecutor() as threads:
        return dict(zip(names, threads.map(make, names), strict=True))


def joined(texts):
    """Several modules as one. What each defines gets a name of its own; threadgroup memory is one anyway."""
    head = texts[0][: texts[0].index("\n", texts[0].index(".address_size"))]
    shared = ".extern .shared .align 16 .b8 kiln_threadgroup_memory[];"
    parts = [head, shared]
    for number, text in enumerate(texts):
        rest = text[text.index("\n", text.index(".address_size")) :].replace(shared, "")
        own = set(
            re.findall(
                r"^\.(?:global|const|visible \.entry)[^\n=]*?([\w$]+)(?:\[\d+\])*(?:;| =|\()", rest, re.MULTILINE
            )
        )
        for name in own:
            rest = re.sub(rf"(?<![\w$]){re.escape(name)}(?=_param_0|[^\w$])", f"{name}_{number}", rest)
        parts.append(rest.replace("__local_depot", f"__local_depot{number}_"))
    return "\n".join(parts)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@by_part
def test_ptxas_takes_every_body(architecture, part, tmp_path):
    assert PTXAS.exists(), "tests/requirements.txt names the wheel that has it"
    # What is written for sm_90 is what sm_80 and sm_90a get, but for the architecture's name.
    texts = dict(all_ptx(architecture, part))
    if architecture != "sm_90":
        same = {n: t.replace(f".target {architecture}\n", ".target sm_90\n") for n, t in texts.items()}
        texts = {n: t for n, t in texts.items() if same[n] != all_ptx("sm_90", part)[n]}
    names = list(texts)

    def complaint(first):
        folder = tmp_path / str(first)
        folder.mkdir()
        part = names[first : first + TOGETHER]
        return (part, text) if (text := assemble(joined([texts[n] for n in part]), architecture, folder)) else None

    with concurrent.futures.ThreadPoolExecutor() as threads:
        complaints = list(filter(None, threads.map(complaint, range(0, len(names), TOGETHER))))
    assert not complaints


# ---- What the code is made of


def instructions(ptx):
    """The opcodes, predicates taken away."""
    code = re.sub(r"//.*", "", ptx[ptx.index(".entry") :])
    return re.findall(r"(?<=[{;}\n:])\s*(?:@!?%p\d+\s+)?([a-z][\w.]*)[^;]*;", code)


@by_part
def test_safe_mode_rounds_every_operation(part):
    for name, ptx in all_ptx("sm_90", part).items():
        if BODIES[name].compile_options.get("math_mode", "safe") != "safe":
            continue
        for opcode in set(instructions(ptx)):
            if opcode == "rsqrt.approx.f32":  # an estimate, which is corrected: lowering/approximations.h
                continue
            assert ".ftz" not in opcode and ".approx" not in opcode, (name, opcode)
            if re.fullmatch(r"(add|sub|mul|fma|div|sqrt|rcp)\..*f(16|32|64)(x2)?", opcode):
                assert ".rn." in opcode, (name, opcode)


@by_part
def test_nothing_is_called_and_no_mask_is_asked_for(part):
    for name, ptx in all_ptx("sm_90", part).items():
        assert not re.search(r"\bcall\b|\.func\b|activemask", ptx), name


def code_of(source, inputs=(), dtype="float32", template=(), architecture="sm_90", **options):
    kernel = kiln.metal_kernel(
        name="k",
        input_names=[f"x{i}" for i in range(len(inputs))],
        output_names=["y"],
        source=source,
        **options,
    )
    return ptx_of(kernel, inputs, [(dtype, (4096,))], template, architecture)


X = np.zeros(4096, np.float32)
READ = "uint i = thread_position_in_grid.x; float v = x0[i];"


def test_a_body_without_exchanges_has_nothing_of_them():
    ptx = code_of(READ + "y[i] = v > 0 ? v : i;", [X])
    assert not re.search(r"vote|shfl|bar\.|barrier|membar", ptx)
    assert "st.local" not in ptx


def test_guards_are_predicates():
    ptx = code_of(READ + "y[i] = v;", [X])
    assert re.search(r"@%p\d+ ld\.global\.nc\.b32", ptx) and re.search(r"@%p\d+ st\.global\.b32", ptx)
    assert "selp" not in ptx
    off = code_of(READ + "y[i] = v;", [X], compile_options={"bounds": "off"})
    assert not re.search(r"@%p\d+ (ld|st)", off)
    assert "ld.global.nc" in off


def test_guards_of_elements_compare_with_the_argument_s_end():
    ptx = code_of(READ + "y[i] = v;", [X])
    assert not re.search(r"max\.u64|add\.s64 \s*%rd\d+, %rd\d+, -", ptx)
    # A float at any byte.
    odd = code_of(READ + "y[i] = *(device const float*)((device const char*)x0 + i);", [X])
    assert "max.u64" in odd


def test_a_load_that_is_masked_later_is_masked_at_once():
    body = READ + "float w = x0[i + 7]; uint j = i * 3 + 5; w = j < 1000 ? w : 0; y[i] = v + w;"
    ptx = code_of(body, [X])
    assert "selp" not in ptx
    # What is asked of the loaded value itself is asked later.
    late = code_of(READ + "float w = x0[i + 7]; w = w < 1000 ? w : 0; y[i] = v + w;", [X])
    assert "selp" in late


def test_short_branches_become_predicates():
    """The loads of both are on their way at once, and none waits for an atomic."""
    corner = (
        "if (i % {0} == 0) {{ atomic_fetch_add_explicit(&y[i], v * {0}, memory_order_relaxed); s += x0[i + {0}] * v; }}"
    )
    body = READ + "float s = 0;" + corner.format(3) + corner.format(5)
    body += "atomic_fetch_add_explicit(&y[i + 1], s, memory_order_relaxed);"
    ptx = code_of(body, [X], atomic_outputs=True)
    code = ptx[ptx.index("ld.global") :]
    assert not re.search(r"\bbra\b", code[: code.index("ret;")])
    assert len(re.findall(r"@%p\d+ red\.global\.add\.f32", code)) == 3
    # What takes long is not computed for nothing, and a loop is none.
    long = code_of(READ + "if (v > 0) { for (int k = 0; k < 9; ++k) v = sin(v) + x0[i + k]; } y[i] = v;", [X])
    long = long[long.index("ld.global") :]
    assert re.search(r"\bbra\b", long[: long.index("ret;")])


def test_accesses_are_as_wide_as_they_are_known_to_be_aligned():
    """`*(device float4*)` of an array of floats may begin at any of them."""
    i = "uint i = thread_position_in_grid.x;"
    four = code_of(i + "float4 v = *(device const float4*)(x0 + i); y[i] = v.x + v.y + v.z + v.w;", [X])
    assert instructions(four).count("ld.global.nc.b32") == 4
    halves = code_of(i + "half2 v = *(device const half2*)((device const half*)x0 + i); y[i] = v.x + v.y;", [X])
    assert not re.search(r"ld\.global\S*b32", halves)
    assert len(re.findall(r"ld\.global\.nc\.[bu]16", halves)) == 2
    walk = code_of(i + "device const float* p = x0 + i; float v = 0; while (*p > 0) v += *p++; y[i] = v;", [X])
    assert "ld.global.nc.b32" in walk and not re.search(r"ld\.global\S*[bu]8", walk)
    shared = code_of(
        i + "threadgroup float4 a[64]; a[i] = x0[i]; simdgroup_barrier(mem_flags::mem_threadgroup);"
        "float4 v = a[63 - i]; y[i] = v.x + v.w;",
        [X],
    )
    assert "st.shared.v4.b32" in instructions(shared)


def test_pairs_have_no_component_that_is_anything():
    """LLVM makes pairs of 16 bits; of three components the last is a number of its own."""
    x = np.zeros(4096, np.int16)
    source = "uint i = 3 * thread_position_in_grid.x; short3 v = short3(x0[i], x0[i + 1], x0[i + 2]) + short3(1);"
    ptx = code_of(source + "y[i] = v.x; y[i + 1] = v.y; y[i + 2] = v.z;", [x], "int16")
    assert instructions(ptx).count("add.s16x2") == instructions(ptx).count("add.s16") == 1


def test_tables_of_vectors_of_three_have_their_padding():
    header = "struct Light { float3 colour; float size; };\nconstant Light lights[] = {{float3(1, 2, 3), 4}, {float3(5), 6}};"
    source = "uint i = thread_position_in_grid.x; y[i] = lights[i % 2].colour.y + lights[i % 2].size;"
    kernel = kiln.metal_kernel("k", ["x0"], ["y"], source, header)
    ptx = ptx_of(kernel, [X], [("float32", X.shape)])
    table = re.search(r"lights\[(\d+)\] = \{([^}]*)\}", ptx)
    assert table
    content = bytes(int(byte) for byte in table[2].split(",")).ljust(int(table[1]), b"\0")
    assert np.frombuffer(content, np.float32).tolist() == [1, 2, 3, 0, 4, 0, 0, 0, 5, 5, 5, 0, 6, 0, 0, 0]


def test_outputs_that_are_read_are_not_cached_as_inputs():
    ptx = code_of("uint i = thread_position_in_grid.x; y[i] = y[i] + 1;")
    assert "ld.global.b32" in ptx and ".nc" not in ptx


def test_exchanges_to_which_threads_come_together_name_all_32():
    ptx = code_of(READ + "y[i] = simd_shuffle_xor(v, 1);", [X])
    (mask,) = re.findall(r"shfl\.sync\.\w+\.b32\s+[^;]*, (\S+);", ptx)
    assert mask == "-1"
    assert "vote" not in ptx


def test_a_condition_between_exchanges_costs_nothing():
    ptx = code_of(READ + "v = simd_sum(v); if (v * i > 3) v = sin(v); y[i] = simd_max(v);", [X])
    assert "vote" not in ptx


def test_integers_are_reduced_at_once():
    ptx = code_of(READ + "y[i] = simd_sum(int(v)) + simd_max(uint(v)) + simd_or(int(v)) + simd_sum(short(v));", [X])
    assert instructions(ptx).count("redux.sync.add.s32") == 2
    assert {"redux.sync.max.u32", "redux.sync.or.b32"} <= set(instructions(ptx))
    assert "shfl" not in ptx


def test_threads_that_return_are_voted_out():
    ptx = code_of(READ + "if (v < 0) return; y[i] = simd_sum(v);", [X])
    assert instructions(ptx).count("vote.sync.ballot.b32") == 1


def test_exchanges_in_divergent_code_vote_at_each_branch():
    ptx = code_of(
        READ + "if (v > 0) { v = simd_sum(v); } else { if (v < -9) v = simd_prefix_inclusive_sum(v); } y[i] = v;", [X]
    )
    assert instructions(ptx).count("vote.sync.ballot.b32") >= 3


def test_a_condition_of_the_simdgroup_does_not_vote():
    ptx = code_of(READ + "if (simdgroup_index_in_threadgroup == 0) v = simd_sum(v); y[i] = v;", [X])
    assert "vote" not in ptx


def test_a_loop_that_threads_leave_in_different_turns_is_seen_behind_long_ways():
    def way(other, operator):
        return f"for (int k = 0; k < n; ++k) {{ if (x0[k] > {other}) y[k + 99] = a; a {operator}= x0[k + 3]; }}"

    ptx = code_of(
        READ + "int n = x0[7], turn = 0; float a = v; while (turn < n) {"
        f"if (i & 1) {{ {way(0.5, '+')} if (x0[turn] > 3) break; a += 1; }} else {{ {way(0.2, '-')} a += 2; }} ++turn; }}"
        "y[i + 512] = a; if (turn == 1) a += simd_sum(v); y[i] = a;",
        [X],
    )
    assert instructions(ptx).count("vote.sync.ballot.b32") == 1


def test_a_loop_that_threads_leave_in_different_turns_is_seen_where_some_go_on_with_it():
    ptx = code_of(
        READ + "int n = x0[7], turn = 0; float a = v; while (true) { ++turn; y[i + 99 * turn] = a;"
        "if ((i + turn) & 1) { a *= 3; continue; } y[i + turn] = a; if (turn > n) break; a += x0[turn]; }"
        "y[i + 512] = a; if (turn == 9) a += simd_sum(v); y[i] = a;",
        [X],
    )
    assert instructions(ptx).count("vote.sync.ballot.b32") == 1


def test_threads_exit_before_barriers_that_others_wait_at():
    ptx = code_of(
        "threadgroup float part[1024];"
        + READ
        + "part[i % 1024] = v; if (v < 0) { y[i] = 1; return; } threadgroup_barrier(mem_flags::mem_threadgroup);"
        "y[i] = part[1023 - i % 1024];",
        [X],
    )
    opcodes = instructions(ptx)
    assert opcodes.count("exit") == 2  # and the surplus threads
    assert "st.shared.f32" in opcodes or "st.shared.b32" in opcodes or "st.shared.u32" in opcodes


@pytest.mark.parametrize(
    ("before_exit", "barrier"),
    [
        ("", "bar.sync"),
        ("v = sin(v);", "bar.sync"),
        # Others see after the barrier what is written before the exit. (ptxas may predicate both paths, the barrier first.)
        ("y[i] = 1;", "barrier.sync"),
        ("part[7] = v;", "barrier.sync"),
        ("atomic_fetch_add_explicit((device atomic_int*)y, 1, memory_order_relaxed);", "barrier.sync"),
    ],
)
def test_barriers_wait_for_what_is_written_before_an_exit(before_exit, barrier):
    ptx = code_of(
        "threadgroup float part[1024];"
        + READ
        + f"part[i % 1024] = v; if (v < 0) {{ {before_exit} return; }} threadgroup_barrier(mem_flags::mem_threadgroup);"
        "y[i] = part[1023 - i % 1024];",
        [X],
    )
    assert [name for name in instructions(ptx) if name.startswith("bar")] == [barrier]


def test_barriers_at_which_a_simdgroup_comes_apart_are_for_single_threads():
    wait = "threadgroup_barrier(mem_flags::mem_none);"
    ptx = code_of(READ + f"if (v > 0) {{ {wait} y[i] = 1; }} else {{ v = sin(v); {wait} y[i] = v; }}", [X])
    assert "barrier.sync" in ptx


def test_atomics_and_their_orders():
    source = READ + "atomic_fetch_add_explicit(&y[0], v, memory_order_relaxed);"
    ptx = code_of(source, [X], atomic_outputs=True)
    assert "atom.global.add.f32" in ptx or "red.global.add.f32" in ptx
    assert "membar" not in ptx
    fence = code_of(
        source + "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);", [X], atomic_outputs=True
    )
    assert instructions(fence).count("membar.gl") == 1


def test_shapes_are_constants_or_parameters():
    x = np.zeros((4, 8, 128), np.float32)
    source = "uint i = thread_position_in_grid.x; y[i] = x0[i % x0_shape[1] * x0_strides[0]];"
    assert "ld.param.b64" not in code_of(source, [x])
    kernel = kiln.metal_kernel(name="k", input_names=["x0"], output_names=["y"], source=source)
    general = ptx_of(kernel, [x], [("float32", (4096,))], specialized=False)
    assert "cvta.param" not in general  # a constant place in the block
    walk = (
        "uint i = thread_position_in_grid.x; int n = 0; for (int d = 0; d < x0_ndim; ++d) n += x0_shape[d]; y[i] = n;"
    )
    kernel = kiln.metal_kernel(name="k", input_names=["x0"], output_names=["y"], source=walk)
    general = ptx_of(kernel, [x], [("float32", (4096,))], specialized=False)
    assert "cvta.param" in general and ".local" not in general


@pytest.mark.parametrize(
    ("index", "is_inside"),
    [
        ("clamp(int(i) - 1, 0, n - 1)", True),
        ("min(i, uint(n - 1))", True),
        ("i % uint(n)", True),
        ("i < uint(n) ? i : 0", True),
        ("99", True),
        ("100", False),
        ("clamp(int(i) - 1, 0, n)", False),
        ("clamp(int(i) - 1, -1, n - 1)", False),
        ("i", False),
    ],
)
def test_known_shapes_prove_that_accesses_are_inside(index, is_inside):
    source = f"uint i = thread_position_in_grid.x; int n = x_shape[0]; y[i] = x[{index}];"
    kernel = kiln.metal_kernel(name="k", input_names=["x"], output_names=["y"], source=source)

    def load(specialized):
        ptx = ptx_of(kernel, [np.zeros(100, np.float32)], [("float32", (100,))], specialized=specialized)
        return next((line for line in ptx.splitlines() if "ld.global" in line), None)

    assert "@%p" in load(specialized=False)
    known = load(specialized=True)
    # Outside of the array for each thread, the load is gone.
    assert known is None if index == "100" else ("@%p" not in known) == is_inside


def test_approximations_outside_of_safe_mode():
    def division(mode):
        return code_of(READ + "y[i] = v / (v + 2);", [X], compile_options={"math_mode": mode})

    assert "div.rn.f32" in division("safe")
    # Metal's other modes may flush subnormal numbers.
    assert "div.full.ftz.f32" in division("relaxed")
    assert "div.approx.ftz.f32" in division("fast")

    def root(name, mode):
        return code_of(READ + f"y[i] = {name}(v + 2);", [X], compile_options={"math_mode": mode})

    # A correctly rounded one: an estimate, a Newton step and two terms of the series, nine multiply-adds and products.
    for code in (root("rsqrt", "safe"), root("precise::rsqrt", "fast")):
        assert code.count("rsqrt.approx.f32") == 1 and "sqrt.rn" not in code and code.count("fma.rn.f32") == 7
    for mode in ("relaxed", "fast"):
        code = root("rsqrt", mode)
        assert "rsqrt.approx.ftz.f32" in code and "sqrt.rn" not in code

    for name, instruction in {"exp2": "ex2", "log2": "lg2", "sin": "sin", "cos": "cos", "sqrt": "sqrt"}.items():
        assert f"{instruction}.approx.ftz.f32" in root(name, "fast")
        assert f"{instruction}.approx" not in root(name, "safe")


@pytest.mark.parametrize(
    ("architecture", "limit"), [("sm_80", 166912), ("sm_86", 101376), ("sm_90", 232448), ("sm_90a", 232448)]
)
def test_too_much_threadgroup_memory(architecture, limit):
    def source(count):
        return (
            f"threadgroup int all[{count}]; uint i = thread_position_in_grid.x; all[i] = i;"
            "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = all[i ^ 1];"
        )

    code_of(source(limit // 4), architecture=architecture)
    with pytest.raises(kiln.UnsupportedError) as caught:
        code_of(source(limit // 4 + 1), architecture=architecture)
    assert str(caught.value).endswith(
        f"the kernel needs {limit + 4} bytes of threadgroup memory, and a GPU of {architecture} has {limit}"
    )


def test_exchanges_before_other_barriers():
    """Who leaves the loop would wait at its end for those that wait in it for all others."""
    source = """
        uint i = thread_position_in_grid.x;
        for (int turn = 0; turn < 2; ++turn) {
          int k = 0;
          for (; k < 3; ++k) {
            if (x0[i] == k || x0[i] == 4 + turn) {
              y[i] += simd_sum(x0[i]);
              break;
            }
            threadgroup_barrier(mem_flags::mem_none);
          }
          if (k < 3) return;
        }"""
    with pytest.raises(kiln.UnsupportedError) as caught:
        code_of(source, [X])
    assert str(caught.value).endswith(
        "error: the kernel's threads exchange values where Kiln cannot tell which of them are there: they may leave a loop"
        " with a threadgroup_barrier and come to one again"
    )


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ('y[i] = x0[i];\nif (x0[i] > 3) os_log_default.log("%f", x0[i]);', "source:2:35"),
        ('y[i] = x0[i];\n\nos_log_default.log_error("%d", int(i));', "source:3:26"),
        ("check(x0[i]); y[i] = x0[i];", "header:1:53"),
    ],
)
def test_log_that_a_thread_may_come_to(source, where):
    header = 'void check(float v) { if (v > 5) os_log_default.log("%f", v); }'
    with pytest.raises(kiln.UnsupportedError) as caught:
        code_of("uint i = thread_position_in_grid.x; " + source, [X], header=header)
    assert str(caught.value).splitlines()[1] == f"{where}: error: 'os_log': printing is not supported"


def test_too_many_arguments():
    names = [f"a{i}" for i in range(180)]
    kernel = kiln.metal_kernel(name="k", input_names=names, output_names=["y"], source="y[0] = a0[0];")
    with pytest.raises(
        kiln.UnsupportedError, match=r"arguments, with shapes and strides, take 4\d\d\d bytes; an NVIDIA GPU takes 4096"
    ):
        ptx_of(kernel, [X] * 180, [("float32", (1,))])


def test_addresses_in_tables_with_vectors_of_three():
    header = """
constant float numbers[4] = {1, 2, 3, 4};
struct Row { float3 at; ulong address; };
constant Row rows[2] = {{float3(1, 2, 3), (ulong)(&numbers[0])}, {float3(4, 5, 6), (ulong)(&numbers[2])}};
"""
    source = "uint i = thread_position_in_grid.x; y[i] = rows[i % 2].at.y + (rows[i % 2].address != 0);"
    kernel = kiln.metal_kernel("k", ["x"], ["y"], source, header=header)
    ptx = ptx_of(kernel, [np.zeros(8, np.float32)], [("float32", (8,))])
    assert "generic(_ZL7numbers)" in ptx
