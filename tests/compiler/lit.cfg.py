"""lit's settings for the tests of passes: each `.ll` file says in its RUN lines what runs, and FileCheck reads the rest.

The folders are the compiler's rooms, and in each a folder for a pass: a file in which it fires, one in which it must not,
and borders between the two.
"""

import os
import shutil

import lit.formats

config.name = "passes"  # noqa: F821 (lit gives it)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".ll"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.test_exec_root = os.environ.get("KILN_PASS_TESTS_OUT", config.test_source_root)  # noqa: F821
for name, program in {
    "kiln-opt": os.environ.get("KILN_OPT") or "kiln-opt",
    "FileCheck": shutil.which("FileCheck-19") or "FileCheck",
}.items():
    config.substitutions.append((rf"(?<![\w/-]){name}(?![\w.-])", program))  # noqa: F821
