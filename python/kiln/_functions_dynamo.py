"""What ``torch.compile`` has of a function of arrays in its graph.

A module of its own, since ``allow_in_graph`` imports Dynamo: a second, which a program that compiles nothing would pay at
its first call. Dynamo imported after ``torch.distributed.init_process_group`` also keeps the process group alive to the
process's end, where Gloo's threads can abort it (PyTorch 2.15).
"""

from __future__ import annotations

from typing import Any

import torch

from kiln import _functions, _functions_torch


# Dynamo has a call of it in its graph and does not read further: what it reads it looks at again before each call of the
# compiled program, and there is much. PyTorch's other parts then trace the call as they trace PyTorch's own functions.
@torch.compiler.allow_in_graph
def call_in_graph(handle: str, *inputs: Any) -> Any:
    return _functions_torch.call(_functions.function_of(handle), inputs)
