"""Bodies that multiply matrices of a simdgroup, and what they compute."""

import ml_dtypes
import numpy as np

DTYPES = {"half": np.dtype(np.float16), "bfloat": np.dtype(ml_dtypes.bfloat16), "float": np.dtype(np.float32)}

# One product; two of one right matrix, which are one instruction; three, one behind the other.
BODIES = {
    "one": ("simdgroup_multiply(d, a, b); simdgroup_store(d, out);", lambda a, b, c: [a @ b]),
    "sum": ("simdgroup_multiply_accumulate(d, a, b, c); simdgroup_store(d, out);", lambda a, b, c: [a @ b + c]),
    "two": (
        "simdgroup_multiply_accumulate(d, a, b, c); simdgroup_multiply_accumulate(e, b, b, c);"
        "simdgroup_store(d, out); simdgroup_store(e, out + 64);",
        lambda a, b, c: [a @ b + c, b @ b + c],
    ),
    "chain": (
        "simdgroup_multiply_accumulate(d, a, b, c); simdgroup_multiply_accumulate(d, b, a, d);"
        "simdgroup_multiply_accumulate(d, a, a, d); simdgroup_store(d, out);",
        lambda a, b, c: [a @ b + c + b @ a + a @ a],
    ),
}
# A body that looks at single elements has them where Apple's GPUs have them.
SEEN = "float2 seen = float2(a.thread_elements()); places[2 * lane] = seen.x; places[2 * lane + 1] = seen.y;"


def elements_of(matrices):
    """What each lane has of matrices of 8 by 8, by Apple's map: two elements, one lane's behind the other's."""
    lane = np.arange(32)
    row, column = (lane // 4 & 4) + lane // 2 % 4, (lane // 4 & 2) * 2 + lane % 2 * 2
    elements = np.stack([matrices[..., row, column], matrices[..., row, column + 1]], axis=-1)
    return elements.reshape(*matrices.shape[:-2], 64)
