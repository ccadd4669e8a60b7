#!/usr/bin/env python3
"""Writes the device library, which is text, as a C++ file of string literals.

    embed_device_library.py [--digests] ROOT OUTPUT HEADER TYPE FUNCTION PART...

ROOT is the library's folder, the parts are paths in it; their order is kept. HEADER declares TYPE, which has a name, a
text and with --digests the text's SHA-256, and FUNCTION, which returns all of them.
"""

import hashlib
import sys
from pathlib import Path


def literal(text: str) -> str:
    """A C++ expression for the text. Compilers limit the length of one literal, so it may be several."""
    pieces = [text[i : i + 12000] for i in range(0, len(text), 12000)] or [""]
    return " ".join(f'R"__kiln__({piece})__kiln__"' for piece in pieces)


def main() -> None:
    arguments = sys.argv[1:]
    has_digests = arguments[0] == "--digests"
    root, output, header, type_name, function, *parts = arguments[has_digests:]

    def row(part: str) -> str:
        text = (Path(root) / part).read_text()
        digest = f', "{hashlib.sha256(text.encode()).hexdigest()}"' if has_digests else ""
        return f'    {{"{part}", {literal(text)}{digest}}}'

    rows = ",\n".join(row(part) for part in parts)
    Path(output).write_text(
        "// Made by tools/embed_device_library.py.\n"
        f'#include "{header}"\n\n'
        "namespace kiln {\n\n"
        f"static constexpr {type_name} kParts[] = {{\n{rows},\n}};\n\n"
        f"std::span<const {type_name}> {function}() {{ return kParts; }}\n\n"
        "}  // namespace kiln\n"
    )


if __name__ == "__main__":
    main()
