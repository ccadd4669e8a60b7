"""Whether PyTorch itself runs what AOTInductor has stored for a device: found by a program without Kiln, in a process of
its own, since one that cannot load it ends by a signal.

    python -m bench.stored_programs cuda
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def fault_of_packages(device: str) -> str | None:
    """Why no package can be used, or None."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.stored_programs", device],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=dict(os.environ),
        timeout=600,
        check=False,
    )
    if done.returncode == 0:
        return None
    import torch

    stage = done.stdout.rpartition("begin ")[2].strip() or "import torch"
    if done.returncode < 0:
        how = f"ends the process with {signal.Signals(-done.returncode).name}"
    else:
        lines = done.stderr.strip().splitlines()
        how = f"fails: {lines[-1] if lines else f'exit status {done.returncode}'}"
    return (
        f"the library itself cannot: in PyTorch {torch.__version__}, `{stage}` of a program of PyTorch's operations for "
        f"{device} {how}"
    )


def main() -> None:
    import tempfile

    import torch

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x) * 2

    print("begin torch.ones", flush=True)
    x = torch.ones(8, 5, device=sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        print("begin torch.export.export", flush=True)
        program = torch.export.export(Model(), (x,))
        print("begin torch._inductor.aoti_compile_and_package", flush=True)
        path = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/model.pt2")
        print("begin torch._inductor.aoti_load_package", flush=True)
        model = torch._inductor.aoti_load_package(path)
        print("begin a call of the package", flush=True)
        assert torch.allclose(model(x), torch.sin(x) * 2)


if __name__ == "__main__":
    main()
