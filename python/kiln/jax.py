"""Kiln for programs of JAX's that are stored, or run on several devices.

A program that ``jax.export`` has serialized has its kernels' texts. Importing this module registers the handler with XLA
that launches them::

    import kiln.jax
    program = jax.export.deserialize(content)

Programs that make functions (``kiln.Kernel.function``) need not import it.
"""

from typing import Any

from kiln import _functions_jax as _functions_jax
from kiln._functions import Function


def on_mesh(function: Function, mesh: Any, axis: str) -> Any:
    """The function on the devices of a mesh's axis, divided as ``Function.sharding`` says.

    It is ``jax.shard_map`` of the function, with the sum over the devices where an output is one. It takes whole arrays
    or arrays that are cut accordingly, within ``jax.jit`` too.

    Raises ``TypeError`` where the function has no sharding.
    """
    return _functions_jax.on_mesh(function, mesh, axis)
