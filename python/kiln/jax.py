"""Kiln for programs that JAX has stored.

A program that ``jax.export`` has serialized has its kernels' texts. Importing this module registers the handler with XLA
that launches them::

    import kiln.jax
    program = jax.export.deserialize(content)

Programs that make functions (``kiln.Kernel.function``) need not import it.
"""

from kiln import _functions_jax as _functions_jax
