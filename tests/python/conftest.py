"""The tests' own settings: those of the caller's environment would change what kernels do, and what doctor shows.

The cache on disk is off: tests say what is compiled, whatever ran before them. Those of the cache turn it on, in folders
of their own; the user's is never touched, also where a test forgets that.
"""

import os
import tempfile

# Kiln reads them once, when a kernel is first made; processes that tests start inherit this environment.
for variable in [name for name in os.environ if name.startswith("KILN_")]:
    del os.environ[variable]
# A test's own, of a run of others (test_code_with_avx2.py).
if "TESTS_CPU_ISA" in os.environ:
    os.environ["KILN_CPU_ISA"] = os.environ.pop("TESTS_CPU_ISA")
_cache = tempfile.TemporaryDirectory(prefix="kiln-tests-")
os.environ["KILN_CACHE"] = "off"
os.environ["KILN_VERIFY_PASSES"] = "on"
os.environ["KILN_CACHE_DIR"] = _cache.name
