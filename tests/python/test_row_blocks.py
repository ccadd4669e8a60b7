"""Loops that write rows, which the SIMD engine runs in blocks of 16 iterations: kinds that random bodies have found."""

import kiln
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.int32])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_channels_of_pixels(dtype, channels):
    """Parts of rows are equal, whatever an iteration has of them."""
    rows, columns = 40, 37
    stores = "".join(f"out[at + {c}] = x[at + {c}] + {c + 1};" for c in range(channels))
    kernel = kiln.metal_kernel(
        name="pixels",
        input_names=["x"],
        output_names=["out"],
        source=f"""
        ulong row = thread_position_in_grid.x;
        if (row >= ulong(x_shape[0])) return;
        int columns = x_shape[1] / {channels};
        for (int i = 0; i < columns; i++) {{
            ulong at = row * x_shape[1] + i * {channels};
            {stores}
        }}
        """,
    )
    x = np.random.default_rng(1).integers(0, 100, (rows, columns * channels)).astype(dtype)
    (out,) = kernel(inputs=[x], output_shapes=[x.shape], output_dtypes=[dtype], grid=(64, 1, 1), threadgroup=(64, 1, 1))
    np.testing.assert_array_equal(out, x + np.tile(np.arange(1, channels + 1), columns).astype(dtype))


def test_two_narrow_indices_that_wrap_at_different_places():
    """Each is in steps within a block, but the one is not the other plus 16."""
    rows = 33
    kernel = kiln.metal_kernel(
        name="wraps",
        input_names=["x", "n"],
        output_names=["out"],
        source="""
        uint row = thread_position_in_grid.x;
        const device uchar* p = x + row * 256;
        device uchar* q = out + row * 256;
        uchar i = 208;
        for (int j = 0; j < n[0]; j++) {
            q[j] = p[i] + 3 * p[uchar(i + 16)];
            i++;
        }
        """,
    )
    x = np.random.default_rng(2).integers(0, 256, (rows, 256)).astype(np.uint8)
    n = np.array([64], np.int32)
    (out,) = kernel(
        inputs=[x, n],
        output_shapes=[x.shape],
        output_dtypes=[np.uint8],
        grid=(rows, 1, 1),
        threadgroup=(64, 1, 1),
        init_value=9,
    )
    at = (208 + np.arange(64)) % 256
    expected = np.full_like(x, 9)
    expected[:, :64] = x[:, at] + np.uint8(3) * x[:, (at + 16) % 256]
    np.testing.assert_array_equal(out, expected)
