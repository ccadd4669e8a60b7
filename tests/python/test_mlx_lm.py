"""The kernels of the package mlx-lm, unmodified, on the CPU: equal to the operations that it runs where there is no Metal.

`make test` installs the package (tests/mlx_lm.txt). Its modules make their kernels when they are imported, so they are
imported where Kiln is in MLX's place; the references are the package's own operations, or MLX's as its docstrings say.
"""

import json
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import kiln.mlx
import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed: pip install -r tests/mlx_lm.txt")


@pytest.fixture(scope="module", autouse=True)
def lm():
    with kiln.mlx.install(metal=True):
        from mlx_lm import kernels
        from mlx_lm.models import bitlinear_layers, deepseek_v41, gated_delta, kimi_k3, rwkv7, ssm
        from mlx_lm.tuner import losses

        yield SimpleNamespace(
            kernels=kernels,
            bitlinear=bitlinear_layers,
            deepseek=deepseek_v41,
            gated_delta=gated_delta,
            kimi=kimi_k3,
            rwkv7=rwkv7,
            ssm=ssm,
            losses=losses,
        )


@pytest.fixture(autouse=True)
def seed():
    mx.random.seed(0)


def normal(*shape, dtype=mx.float32):
    return mx.random.normal(shape).astype(dtype)


def uniform(*shape):
    return mx.random.uniform(shape=shape)


def assert_close(results, references, tolerance=1e-5):
    for result, reference in zip(results, references, strict=True):
        assert (result.shape, result.dtype) == (reference.shape, reference.dtype)
        a, b = (np.array(array.astype(mx.float32)) for array in (result, reference))
        assert np.abs(a - b).max() <= tolerance * np.abs(b).max()


def assert_ran(kernel, times=1):
    assert len(kernel.history) >= times
    assert {(launch.target, launch.engine) for launch in kernel.history} == {("cpu", "simd")}


# ---- Gated delta rule

TOLERANCES = {mx.float32: 1e-5, mx.float16: 2e-3, mx.bfloat16: 2e-2}


@pytest.mark.parametrize("gates", ["a head", "an element"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("keys", [64, 128])
def test_gated_delta(lm, keys, dtype, masked, gates):
    batch, steps, key_heads, heads, values = 2, 5, 2, 4, 64
    q, k = (normal(batch, steps, key_heads, keys) * keys**-0.5 for _ in range(2))
    v, beta = normal(batch, steps, heads, values, dtype=dtype), uniform(batch, steps, heads).astype(dtype)
    g = uniform(batch, steps, heads) if gates == "a head" else uniform(batch, steps, heads, keys)
    arguments = [q.astype(dtype), k.astype(dtype), v, g, beta, normal(batch, heads, values, keys)]
    mask = mx.array([[True] * 5, [True] * 3 + [False] * 2]) if masked else None
    y, state = lm.gated_delta.gated_delta_kernel(*arguments, mask)
    expected_y, expected_state = lm.gated_delta.gated_delta_ops(*arguments, mask)
    seen = mx.ones((batch, steps), mx.bool_) if mask is None else mask
    # What is masked gives a result of its own.
    y, expected_y = (mx.where(seen[..., None, None], array, 0) for array in (y, expected_y))
    assert_close([y, state], [expected_y, expected_state], TOLERANCES[dtype])
    # Without a mask it chooses by the sizes which kernel computes gates of a head.
    if masked or gates == "an element":
        suffix = ("_vec" if gates == "an element" else "") + ("_masked" if masked else "")
        assert_ran(getattr(lm.gated_delta, f"_gated_delta_kernel{suffix}"))


def test_gated_delta_packed_has_the_bits_of_its_tree(lm):
    q, k = (normal(1, 3, 2, 128) * 128**-0.5 for _ in range(2))
    arguments = [q, k, normal(1, 3, 4, 64), uniform(1, 3, 4), uniform(1, 3, 4), normal(1, 4, 64, 128)]
    tree = lm.gated_delta.gated_delta_kernel_xtree(*arguments)
    for a, b in zip(lm.gated_delta.gated_delta_kernel(*arguments), tree, strict=True):
        assert mx.array_equal(a, b)
    unpacked = lm.gated_delta.gated_delta_kernel_unpacked(*arguments)
    assert_close(unpacked, tree)
    for name in ("", "_packed", "_xtree"):
        assert_ran(getattr(lm.gated_delta, f"_gated_delta_kernel{name}"))


# ---- State space, recurrences


def test_ssm_update(lm):
    batch, heads, size, states, groups = 2, 4, 64, 128, 2
    arguments = [
        normal(batch, 1, heads, size),
        uniform(heads),
        normal(batch, 1, groups, states),
        normal(batch, 1, groups, states),
        normal(heads),
        normal(batch, 1, heads),
        normal(heads),
        normal(batch, heads, size, states),
        (0.001, 100.0),
    ]
    assert_close(lm.ssm.ssm_update_kernel(*arguments), lm.ssm.ssm_attn(*arguments))
    assert_ran(lm.ssm._ssm_kernel)


def test_wkv7(lm):
    batch, steps, heads, size = 2, 6, 3, 64
    r, k, v, a, b = (normal(batch, steps, heads, size) * 0.1 for _ in range(5))
    w, state = uniform(batch, steps, heads, size), normal(batch, heads, size, size)
    y, last = lm.rwkv7.wkv7_kernel(r, w, k, v, a, b, state)
    rows = []
    for t in range(steps):
        sa = (state * a[:, t, :, None, :]).sum(-1, keepdims=True)
        state = state * w[:, t, :, None, :] + v[:, t, :, :, None] * k[:, t, :, None, :] + sa * b[:, t, :, None, :]
        rows.append((state * r[:, t, :, None, :]).sum(-1))
    assert_close([y, last], [mx.stack(rows, axis=1), state])
    assert_ran(lm.rwkv7._wkv7_kernel)


# ---- Quantised and mixed layers


@pytest.mark.parametrize("invert", [False, True])
def test_bitlinear(lm, invert):
    digits = np.random.default_rng(0).integers(0, 3, (64, 256))
    packed = np.bitwise_or.reduce([digits[16 * i : 16 * i + 16] << 2 * i for i in range(4)]).astype(np.uint8)
    layer = lm.bitlinear.BitLinear(256, 64, bias=False, invert_weight_scales=invert)
    layer.weight, layer.weight_scale = mx.array(packed), mx.array([0.37])
    x = normal(3, 5, 256)
    scale = 1 / 0.37 if invert else 0.37
    assert_close([layer(x)], [x @ mx.array((digits - 1).astype(np.float32)).T * scale])
    assert_ran(lm.bitlinear._bitlinear_kernel)


def test_sinkhorn(lm, monkeypatch):
    comb, eps = uniform(7, 4, 4), mx.array([1e-6])
    kernel = lm.deepseek._sinkhorn_kernel
    result = lm.deepseek._sinkhorn(comb, iters=5, eps=eps)
    monkeypatch.setattr(lm.deepseek, "_sinkhorn_kernel", None)
    assert_close([result], [lm.deepseek._sinkhorn(comb, iters=5, eps=eps)])
    assert_ran(kernel)


def test_residuals_of_blocks(lm):
    raw = normal(4, 2, 3, 256)
    blocks = SimpleNamespace(raw=raw, inv_rms=mx.rsqrt((raw * raw).mean(-1)))
    partial, weights = normal(2, 3, 256), normal(256)
    arguments = [blocks, partial, weights, 1e-6]
    result = lm.kimi._attn_res_mix(*arguments)
    assert_close([result], [lm.kimi._attn_res_mix(*arguments, use_kernel=False)])
    assert_ran(lm.kimi._attn_res_kernel)


# ---- The folder kernels/


def rms(x, eps):
    return x * mx.rsqrt((x * x).mean(-1, keepdims=True) + eps)


def test_qk_norm(lm):
    heads, kv_heads, size, eps, scale = 4, 2, 64, 1e-5, 0.3
    qkvg = normal(2, 3, 2 * (heads + kv_heads) * size)
    options = {"n_heads": heads, "n_kv_heads": kv_heads, "head_dim": size, "eps": eps, "query_scale": scale}
    parts = rms(qkvg.reshape(2, 3, -1, size), eps)
    q, k = parts[:, :, :heads] * scale, parts[:, :, heads : heads + kv_heads]
    assert_close(lm.kernels.qk_norm(qkvg, **options), [q, k])

    def rotated(x):
        turned = mx.fast.rope(x.transpose(0, 2, 1, 3), size, traditional=True, base=1e4, scale=1.0, offset=7)
        return turned.transpose(0, 2, 1, 3)

    results = lm.kernels.qk_norm_rope(qkvg, **options, rope_base=1e4, offset=7)
    assert_close(results, [rotated(q), rotated(k)])
    module = sys.modules["mlx_lm.kernels.qk_norm"]
    assert_ran(module._qk_norm_kernel)
    assert_ran(sys.modules["mlx_lm.kernels.qk_norm_rope"]._qk_norm_rope_kernel)


def test_rms_norm_sigmoid_gate(lm):
    x, gate, eps = normal(2, 4, 3, 64), normal(2, 3, 4 * 64), 1e-5
    expected = rms(x, eps).transpose(0, 2, 1, 3).reshape(2, 3, -1) * mx.sigmoid(gate)
    assert_close([lm.kernels.rms_norm_sigmoid_gate(x, gate, eps=eps)], [expected])
    assert_ran(sys.modules["mlx_lm.kernels.rms_norm_sigmoid_gate"]._norm_gate_kernel)


@pytest.mark.parametrize("size", [64, 1000, 4096])
def test_norm_add_norm(lm, size):
    branch, stream = normal(2, 3, size), normal(2, 3, size)
    alpha, beta, weight = uniform(size), uniform(size), uniform(size)
    norm = nn.layers.normalization.RMSNorm(size, eps=1e-5)
    norm.weight = uniform(size)
    summed, normed = lm.kernels.norm_add_norm(
        branch, stream, alpha=alpha, beta=beta, post_weight=weight, post_eps=1e-6, next_norm=norm
    )
    expected = alpha * stream + beta * rms(weight * branch, 1e-6)
    assert_close([summed, normed], [expected, norm(expected)], 1e-4)
    assert_close([lm.kernels.pre_norm(expected, norm, dtype=mx.float32)], [norm(expected)], 1e-4)


def test_experts(lm):
    tokens, experts, chosen, size = 5, 64, 4, 256
    logits, bias = normal(tokens, experts), normal(experts)
    places, weights = lm.kernels.expert_routing(
        logits, bias, top_k=chosen, multiplier=1.5, score_eps=1e-6, route_scale=2.0
    )
    scores = mx.sigmoid(1.5 * logits)
    best = mx.argsort(-(scores + bias), axis=-1)[:, :chosen]
    assert mx.array_equal(places, best)
    taken = mx.take_along_axis(scores, best, axis=-1)
    assert_close([weights], [2 * taken / (taken.sum(-1, keepdims=True) + 1e-6)])
    assert_ran(sys.modules["mlx_lm.kernels.expert_routing"]._routing_kernel)
    outputs, norm_weight = normal(tokens, chosen, size), uniform(size)
    combined = lm.kernels.post_expert_norm_combine(outputs, weights, norm_weight=norm_weight, eps=1e-5)
    expected = (rms(norm_weight * outputs, 1e-5) * weights[..., None]).sum(-2)
    assert_close([combined], [expected], 1e-4)


# ---- Losses


def log_probabilities(logits):
    return logits - mx.logsumexp(logits, axis=-1, keepdims=True)


def divergence(q, p):
    return nn.losses.kl_div_loss(log_probabilities(q), log_probabilities(p), axis=-1, reduction="none")


def symmetric_divergence(q, p):
    q, p = log_probabilities(q), log_probabilities(p)
    m = p + mx.log(1 + mx.exp(q - p)) - np.log(2)
    return 0.5 * sum(nn.losses.kl_div_loss(m, of, axis=-1, reduction="none") for of in (p, q))


@pytest.mark.parametrize("size", [100, 4096, 9000])
@pytest.mark.parametrize(("loss", "reference"), [("kl", divergence), ("js", symmetric_divergence)])
def test_losses(lm, loss, reference, size):
    """Threadgroups of 1,024 threads, whose simdgroups write again what others have only just read."""
    q, p, cotangent = normal(3, size), normal(3, size), normal(3)
    function = getattr(lm.losses, f"{loss}_div_loss")
    assert_close([function(q, p)], [reference(q, p)], 1e-4)
    gradients = [mx.vjp(f, [q, p], [cotangent])[1][0] for f in (function, reference)]
    assert_close([gradients[0]], [gradients[1]], 1e-3)
    assert_ran(getattr(lm.losses, f"_{loss}_forward_kernel"))
    assert_ran(getattr(lm.losses, f"_{loss}_backward_kernel"))


# ---- A whole model

MODEL = """
    import json
    import sys

    if sys.argv[1] == "kiln":
        import kiln.mlx

        kiln.mlx.install(metal=True)
    import mlx.core as mx
    from mlx_lm.generate import generate_step
    from mlx_lm.models import gated_delta, qwen3_next

    mx.random.seed(1)
    model = qwen3_next.Model(qwen3_next.ModelArgs.from_dict(dict(
        model_type="qwen3_next", hidden_size=64, num_hidden_layers=4, intermediate_size=128, num_attention_heads=4,
        linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32,
        linear_conv_kernel_dim=4, num_experts=4, num_experts_per_tok=2, decoder_sparse_step=1,
        shared_expert_intermediate_size=64, mlp_only_layers=[], moe_intermediate_size=64, rms_norm_eps=1e-6,
        vocab_size=200, num_key_value_heads=2, rope_theta=1e4, partial_rotary_factor=0.5, max_position_embeddings=512,
        norm_topk_prob=True, tie_word_embeddings=False, attention_bias=False, head_dim=16, full_attention_interval=4,
    )))
    model.eval()
    mx.eval(model.parameters())
    prompt, best = mx.array([3, 1, 4, 1, 5, 9, 2, 6]), lambda logits: mx.argmax(logits, axis=-1)
    tokens = [int(token) for token, _ in generate_step(prompt, model, max_tokens=16, sampler=best)]
    kernel = gated_delta._gated_delta_kernel
    print(json.dumps([tokens, [launch.engine for launch in kernel.history] if kernel else None]))
"""


def test_a_model_generates_the_same_tokens(tmp_path):
    program = tmp_path / "model.py"
    program.write_text(textwrap.dedent(MODEL))

    def run(mode):
        done = subprocess.run([sys.executable, program, mode], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    (tokens, engines), (expected, nothing) = run("kiln"), run("plain")
    assert tokens == expected
    assert len(tokens) == 16
    assert nothing is None
    assert len(engines) >= 3 * 16
    assert set(engines) == {"simd"}
