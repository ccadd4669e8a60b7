"""The tests' own settings: those of the caller's environment would change what kernels do, and what doctor shows."""

import os

# Kiln reads them once, when a kernel is first made; processes that tests start inherit this environment.
for variable in [name for name in os.environ if name.startswith("KILN_")]:
    del os.environ[variable]
