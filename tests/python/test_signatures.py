"""docs/language.md 1.1 and 1.2: the generated Metal text is MLX's own, but for MLX's defects."""

from __future__ import annotations

import collections
import random
from typing import Any

import kiln.mlx
import mlx.core as mx
import mlx_text
import pytest
from bodies.attributes import NAMES as ATTRIBUTE_NAMES

DTYPES = [
    *(mx.bool_, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.int8, mx.int16, mx.int32, mx.int64),
    *(mx.float16, mx.bfloat16, mx.float32, mx.complex64),
]
ATOMIC_DTYPES = [mx.bool_, mx.int32, mx.uint32, mx.uint64, mx.float32]
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "0-dimensional": [()],
    "empty": [(0,), (3, 0), (0, 100)],
    "small": [(1,), (7,), (2, 3), (1, 1, 1), (7, 1)],
    "large": [(8,), (2, 4), (3, 5, 7), (100,), (1, 2, 2, 2)],
}
HEADERS = ["", "float twice(float x) { return x * 2; }\n", "#define N 3\n\nconstant float table[2] = {1, 2};\n"]
# No name is part of another or of an attribute, so that MLX's search finds what is meant.
NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta1", "theta", "iota"]


def random_call(rng: random.Random, occurred: collections.Counter[str]) -> dict:
    """Keywords of a kernel and of a call; counts what occurs in them."""
    names = rng.sample(NAMES, len(NAMES))
    inputs, used = [], []
    input_names = names[: rng.randint(0, 6)]
    output_names = names[6 : 6 + rng.randint(1, 3)]
    occurred[f"{len(input_names)} inputs"] += 1
    occurred[f"{len(output_names)} outputs"] += 1
    any_shape = False
    for name in input_names:
        kind = rng.choice(list(SHAPES))
        dtype = rng.choice(DTYPES)
        inputs.append(mx.zeros(rng.choice(SHAPES[kind]), dtype))
        uses = tuple(suffix for suffix in ("_shape", "_strides", "_ndim") if rng.random() < 0.4)
        used += [name + suffix for suffix in uses]
        any_shape = any_shape or bool(uses)
        occurred[kind] += 1
        occurred[f"input of {dtype}"] += 1
        occurred[f"uses {uses}, {'0-dimensional' if kind == '0-dimensional' else 'with dimensions'}"] += 1

    sampled = rng.sample(ATTRIBUTE_NAMES, rng.choice([0, 0, 1, 2, 5, 20]))
    # MLX finds a name within a longer one.
    attributes = {a for a in ATTRIBUTE_NAMES if any(a in longer for longer in sampled)}
    if len(output_names) > 1 and any_shape and not attributes:
        attributes = {"thread_position_in_grid"}  # without any, MLX closes the list of parameters twice
    for attribute in attributes:
        occurred[attribute] += 1
    occurred["some attribute" if attributes else "no attribute"] += 1

    values = {"dtype": lambda: rng.choice(DTYPES), "int": lambda: rng.randint(-(2**31), 2**31 - 1)}
    values["bool"] = lambda: rng.random() < 0.5
    template = []
    for i in range(rng.choice([0, 0, 1, 2, 4])):
        kind = rng.choice(list(values))
        template.append((f"P{i}", values[kind]()))
        occurred[f"template argument of {kind}"] += 1
    occurred["template" if template else "no template"] += 1

    atomic = rng.random() < 0.3
    occurred[f"atomic_outputs={atomic}"] += 1
    output_dtypes = [rng.choice(ATOMIC_DTYPES if atomic else DTYPES) for _ in output_names]
    for dtype in output_dtypes:
        occurred[f"output of {dtype}"] += 1
    header = rng.choice(HEADERS)
    occurred["header" if header else "no header"] += 1

    words = [*input_names, *output_names, *used, *attributes]
    rng.shuffle(words)
    source = "\n".join(f"  auto v{i} = {word};" for i, word in enumerate(words))
    return {
        "kernel": {
            "input_names": input_names,
            "output_names": output_names,
            "source": source,
            "header": header,
            "atomic_outputs": atomic,
        },
        "inputs": inputs,
        "template": template or None,
        "grid": (1, 1, 1),
        "threadgroup": (1, 1, 1),
        "output_shapes": [rng.choice([(), (4,), (0,), (2, 3)]) for _ in output_names],
        "output_dtypes": output_dtypes,
    }


def kiln_text(*, kernel, **call) -> str:
    return kiln.mlx.metal_kernel(name="k", **kernel).source_for(**call)


def test_the_text_equals_mlxs_own(tmp_path, capfd):
    rng = random.Random(20)
    occurred: collections.Counter[str] = collections.Counter()
    for _ in range(400):
        call = random_call(rng, occurred)
        assert mlx_text.normalized(kiln_text(**call)) == mlx_text.normalized(mlx_text.generate(tmp_path, capfd, **call))

    expected = [
        *(f"{n} inputs" for n in range(7)),
        *(f"{n} outputs" for n in range(1, 4)),
        *SHAPES,
        *(f"input of {dtype}" for dtype in DTYPES),
        *(f"output of {dtype}" for dtype in DTYPES),
        *ATTRIBUTE_NAMES,
        *("some attribute", "no attribute", "template", "no template", "header", "no header"),
        *(f"template argument of {kind}" for kind in ("dtype", "int", "bool")),
        *("atomic_outputs=True", "atomic_outputs=False"),
    ]
    for what in ("0-dimensional", "with dimensions"):
        for subset in range(8):
            uses = tuple(s for i, s in enumerate(("_shape", "_strides", "_ndim")) if subset >> i & 1)
            expected.append(f"uses {uses}, {what}")
    assert [what for what in expected if occurred[what] < 3] == []


# Where the texts differ: what MLX's generator gets wrong.


@pytest.fixture
def both(tmp_path, capfd):
    """A function of a body that gives MLX's text and Kiln's for it."""

    def texts(source, *, input_names=("x",), inputs=None, output_names=("out",), header="", template=None):
        call = {
            "kernel": {
                "input_names": list(input_names),
                "output_names": list(output_names),
                "source": source,
                "header": header,
            },
            "inputs": inputs or [mx.zeros((10,)) for _ in input_names],
            "template": template,
            "grid": (1, 1, 1),
            "threadgroup": (1, 1, 1),
            "output_shapes": [(1,)] * len(output_names),
            "output_dtypes": [mx.float32] * len(output_names),
        }
        return mlx_text.generate(tmp_path, capfd, **call), kiln_text(**call)

    return texts


SHAPE = "const constant int* x_shape [[buffer(1)]]"
GRID_SIZE = "uint3 grid_size [[grid_size]]"


def test_a_longer_name_is_no_use_of_a_shape(both):
    mlx, ours = both("int max_shape = 1; out[0] = max_shape;")
    assert SHAPE in mlx
    assert SHAPE not in ours


def test_a_longer_name_is_no_use_of_an_attribute(both):
    mlx, ours = both("out[0] = dispatch_threads_per_threadgroup.x;")
    assert "uint3 threads_per_threadgroup [[threads_per_threadgroup]]" in mlx
    assert "uint3 threads_per_threadgroup [[threads_per_threadgroup]]" not in ours
    assert "uint3 dispatch_threads_per_threadgroup [[dispatch_threads_per_threadgroup]]" in ours


def test_small_and_large_arrays_have_texts_of_their_own():
    kernel = kiln.metal_kernel("sizes", ["x"], ["out"], "out[0] = x[0];")

    def parameter(size):
        compiled = kernel.compile(
            inputs=[mx.zeros((size,))],
            grid=(1, 1, 1),
            threadgroup=(1, 1, 1),
            output_shapes=[(1,)],
            output_dtypes=[mx.float32],
        )
        return next(line.strip() for line in compiled.source.splitlines() if "float* x " in line)

    small, large = "const constant float* x [[buffer(0)]],", "const device float* x [[buffer(0)]],"
    assert [parameter(size) for size in (7, 8, 7)] == [small, large, small]


def test_a_comment_is_no_use(both):
    mlx, ours = both("out[0] = x[0];  // not grid_size, and not x_shape\n/* x_strides */")
    assert GRID_SIZE in mlx and SHAPE in mlx and "x_strides [[" in mlx
    assert GRID_SIZE not in ours and SHAPE not in ours and "x_strides [[" not in ours


def test_a_string_is_no_use(both):
    mlx, ours = both('auto text = "grid_size"; auto raw = R"(x_shape)";')
    assert GRID_SIZE in mlx and SHAPE in mlx
    assert GRID_SIZE not in ours and SHAPE not in ours


def test_a_name_that_a_splice_cuts_is_a_use(both):
    mlx, ours = both("out[0] = x_sh\\\nape[0];")
    assert SHAPE not in mlx
    assert SHAPE in ours


def test_a_name_that_the_body_declares_is_the_bodys(both):
    mlx, ours = both("uint grid_size = 3; int x_shape = 4; out[0] = grid_size + x_shape;")
    assert GRID_SIZE in mlx and SHAPE in mlx  # a redefinition
    assert GRID_SIZE not in ours and SHAPE not in ours


def test_a_declaration_in_an_inner_block_changes_nothing(both):
    mlx, ours = both("{ uint grid_size = 3; out[0] = grid_size; }")
    assert GRID_SIZE in mlx
    assert GRID_SIZE in ours


def test_an_inputs_name_wins_over_an_attribute(both):
    mlx, ours = both("out[0] = grid_size[0];", input_names=["grid_size"])
    assert "const device float* grid_size [[buffer(0)]]" in mlx
    assert GRID_SIZE in mlx  # a second parameter of that name
    assert "const device float* grid_size [[buffer(0)]]" in ours
    assert GRID_SIZE not in ours


def test_an_inputs_name_wins_over_a_shape(both):
    mlx, ours = both("out[0] = x_shape[0];", input_names=["x", "x_shape"])
    assert SHAPE in mlx and "const device float* x_shape [[buffer(2)]]" in mlx
    assert SHAPE not in ours and "const device float* x_shape [[buffer(1)]]" in ours


def test_a_template_arguments_name_wins_over_an_attribute(both):
    mlx, ours = both("out[0] = grid_size;", template=[("grid_size", 3)])
    assert GRID_SIZE in mlx
    assert GRID_SIZE not in ours


def test_two_outputs_close_the_parameters_once(both):
    mlx, ours = both("first[0] = x_shape[0]; second[0] = 1;", output_names=["first", "second"])
    # The brace that closes the list, as often as it comes.
    assert mlx.count("]]) {") == 2
    assert ours.count("]]) {") == 1
    assert "device float* first [[buffer(2)]],\n  device float* second [[buffer(3)]]) {" in ours


def test_a_header_without_a_line_end_is_not_glued_to_the_function(both):
    mlx, ours = both("out[0] = N;", header="#define N 3")
    assert mlx.startswith("#define N 3[[kernel]]")
    assert ours.startswith("#define N 3\n[[kernel]]")


def test_an_outputs_name_wins_over_an_attribute_and_a_shape(both):
    for name, parameter in [("grid_size", GRID_SIZE), ("x_shape", SHAPE)]:
        mlx, ours = both(f"{name}[0] = x[0];", output_names=[name])
        assert parameter in mlx
        assert parameter not in ours


def test_a_template_arguments_name_wins_over_a_shape(both):
    mlx, ours = both("out[0] = x_shape;", template=[("x_shape", 3)])
    assert SHAPE in mlx
    assert SHAPE not in ours


# What MLX's text would make a redefinition is compiled and runs.
@pytest.mark.parametrize(
    ("source", "keywords", "expected"),
    [
        ("uint grid_size = 3; int x_shape = 4; out[0] = grid_size + x_shape;", {}, 7),
        ("struct grid_size { float v; }; grid_size s = {5}; out[0] = s.v;", {}, 5),
        ("uint n = 0; { uint grid_size = 3; n += grid_size; } out[0] = n + grid_size.x;", {}, 4),
        ("for (int grid_size = 0; grid_size < 3; ++grid_size) out[0] = grid_size + 1;", {}, 3),
        ("out[0] = x[2] + x_shape[0];", {"input_names": ["x", "x_shape"]}, 3),
        ("out[0] = grid_size;", {"template": [("grid_size", 3)]}, 3),
        ("out[0] = max_shape;", {"header": "constant int max_shape = 6;"}, 6),
        ("out[0] = N;", {"header": "#define N 3"}, 3),
        ("out[0] = SIZE;", {"header": "#define SIZE 8 // without a line end"}, 8),
        ("out[0] = 9; // without a line end", {}, 9),
        ("out[0] = 1; out[0] += x_shape[0]; unused[0] = 1;", {"output_names": ["out", "unused"]}, 11),
        ("#define S x_shape\nout[0] = S[0];", {}, 10),
    ],
)
def test_texts_that_mlx_gets_wrong_run(source, keywords, expected):
    kernel = {"input_names": ["x"], "output_names": ["out"], "source": source, **keywords}
    template = kernel.pop("template", None)
    results = kiln.mlx.metal_kernel(name="k", **kernel)(
        inputs=[mx.arange(10).astype(mx.float32) + i for i, _ in enumerate(kernel["input_names"])],
        template=template,
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        output_shapes=[(1,)] * len(kernel["output_names"]),
        output_dtypes=[mx.float32] * len(kernel["output_names"]),
    )
    assert results[0].item() == expected


# Rules of 2.2 in which the two agree.


def test_members_and_preprocessor_lines_are_uses(both):
    for source in ("out[0] = p.x_shape;", "#define S x_shape\nout[0] = S[0];"):
        mlx, ours = both(source)
        assert SHAPE in mlx
        assert SHAPE in ours


def test_the_header_is_not_searched(both):
    mlx, ours = both("out[0] = M;", header="#define M grid_size.x + x_shape[0]\n")
    assert GRID_SIZE not in mlx and SHAPE not in mlx
    assert GRID_SIZE not in ours and SHAPE not in ours


def test_what_is_printed_is_what_is_compiled(capsys):
    kernel = kiln.mlx.metal_kernel(
        name="k",
        input_names=["x"],
        output_names=["out"],
        source="uint i = thread_position_in_grid.x;\nout[i] = x[i] + N;",
        header="#define ONE 1\n",
    )
    call: dict[str, Any] = {
        "inputs": [mx.zeros((10,))],
        "template": [("N", 3)],
        "grid": (10, 1, 1),
        "threadgroup": (10, 1, 1),
        "output_shapes": [(10,)],
        "output_dtypes": [mx.float32],
    }
    text = kernel.source_for(**call)
    kernel(verbose=True, **call)
    assert capsys.readouterr().out == f"Generated source code for `k`:\n```\n{text}\n```\n"
    assert kernel.compile(**call).source == text
