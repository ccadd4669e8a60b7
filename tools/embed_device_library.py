#!/usr/bin/env python3
"""Writes the device library, which is text, as a C++ file of string literals.

    embed_device_library.py ROOT OUTPUT HEADER TYPE FUNCTION PART...

ROOT is the library's folder, the parts are paths in it; their order is kept. HEADER declares TYPE, which has a name and
a text, and FUNCTION, which returns all of them.
"""

import sys
from pathlib import Path


def literal(text: str) -> str:
    """A C++ expression for the text. Compilers limit the length of one literal, so it may be several."""
    pieces = [text[i : i + 12000] for i in range(0, len(text), 12000)] or [""]
    return " ".join(f'R"__kiln__({piece})__kiln__"' for piece in pieces)


def main() -> None:
    root, output, header, type_name, function, *parts = sys.argv[1:]
    rows = ",\n".join(f'    {{"{part}", {literal((Path(root) / part).read_text())}}}' for part in parts)
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
