"""The tests' own settings: those of the caller's environment would change what kernels do, and what doctor shows.

The cache on disk is off: tests say what is compiled, whatever ran before them. Those of the cache turn it on, in folders
of their own; the user's is never touched, also where a test forgets that.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

# Kiln reads them once, when a kernel is first made; processes that tests start inherit this environment.
for variable in [name for name in os.environ if name.startswith("KILN_")]:
    del os.environ[variable]
# One engine or instruction set for the tests' own process: a developer's, and those of test_code_with_avx2.py. The
# variables stay, for the processes of pytest-xdist.
for variable in ("CPU_ENGINE", "CPU_ISA"):
    if f"TESTS_{variable}" in os.environ:
        os.environ[f"KILN_{variable}"] = os.environ[f"TESTS_{variable}"]
_cache = tempfile.TemporaryDirectory(prefix="kiln-tests-")
os.environ["KILN_CACHE"] = "off"
os.environ["KILN_VERIFY_PASSES"] = "on"
os.environ["KILN_CACHE_DIR"] = _cache.name


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The documentation as a site, built once for all of pytest's processes. Warnings fail: a link that leads nowhere, a
    docstring that is no reStructuredText."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, log = base / "site", base / "site.log"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    with open(base / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            docs = Path(__file__).resolve().parent.parent.parent / "docs"
            done = subprocess.run([*command, docs, folder], capture_output=True, text=True, check=False)
            log.write_text(done.stdout + done.stderr + ("" if done.returncode == 0 else "sphinx failed\n"))
    assert log.read_text() == ""
    return folder
