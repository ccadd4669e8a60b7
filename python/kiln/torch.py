"""Kiln for programs that PyTorch has stored.

A program that ``torch.export.save`` or AOTInductor has stored has its kernels' texts. Importing this module gives PyTorch
the operator that launches them::

    import kiln.torch
    model = torch._inductor.aoti_load_package("model.pt2")

Programs that make functions (``kiln.Kernel.function``) need not import it.
"""

from kiln import _functions_torch as _functions_torch
