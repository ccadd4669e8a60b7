"""Scripts in processes of their own, which share a beginning."""

import os
import subprocess
import sys
import textwrap

PREAMBLE = """
import atexit, builtins, faulthandler, gc, itertools, os, signal, sys, threading, time, weakref
faulthandler.dump_traceback_later(270, exit=True)
import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np

X = np.arange(8, dtype=np.float32)
INDEX = "uint i = thread_position_in_grid.x; "
ADD = INDEX + "out[i] = x[i] + {};"
TURN = '''
    threadgroup float t[64];
    uint i = thread_position_in_grid.x, l = thread_position_in_threadgroup.x;
    t[l] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = t[threads_per_threadgroup.x - 1 - l];
'''
SLOW = INDEX + "float s = x[i]; for (int k = 0; k < 3000000; ++k) s = fma(s, 1.0f, 0.0f); out[i] = s;"

def make(body=ADD.format(1), module=kiln, name="k"):
    return module.metal_kernel(name, ["x"], ["out"], body)

def call(kernel, x=X, method="__call__", **changes):
    keywords = dict(inputs=[x], output_shapes=[x.shape], output_dtypes=["float32"], grid=(x.size, 1, 1),
                    threadgroup=(32, 1, 1))
    result = getattr(kernel, method)(**{**keywords, **changes})
    return result[0] if method == "__call__" else result

class Last:
    '''Does something when it goes.'''
    def __init__(self, function):
        self.function = function

    def __del__(self):
        self.function()
"""


def run(script, expected="", returncode=0, environment=()):
    """Runs a script, which must end as expected and say nothing of errors."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **dict(environment)},  # NumPy's threads take every signal
    )
    assert (done.returncode, done.stderr) == (returncode, "")
    assert done.stdout == expected
