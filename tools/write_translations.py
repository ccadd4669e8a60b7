#!/usr/bin/env python3
"""Writes docs/translations.md: each construct, how it is translated for each target, and the bodies that prove it.

Rows are those of tests/constructs.toml, texts those of docs/translations.toml, proofs those of tests/bodies. With
``--check`` nothing is written; the exit status says whether the page is what would be written.
"""

import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import bodies  # noqa: E402
import check_constructs  # noqa: E402

PAGE = ROOT / "docs" / "translations.md"

HEAD = """\
# Constructs and proofs

What becomes of each construct of a body, and which test proves that it works? Above each table stands the translation
that holds for all of its rows, unless a row has its own. `python -m kiln show` prints what becomes of a body of yours.

Each row names a test body in `tests/bodies`, whose results the tests compare with a reference that was computed without
Kiln: on the CPU with both engines and several instruction sets, on a GPU by `make test-gpu`. CUDA bodies give the same
bits with both engines, and the tests compile them with NVRTC for sm_80 and sm_90.

{constructs} constructs of Metal, {bodies} bodies; {cuda_constructs} constructs of CUDA, {cuda_bodies} bodies.

:::{{filter}}
:::
"""


def translations_of(constructs: dict[str, Any], texts: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str]]:
    """CPU's and NVIDIA's text by section and row. Raises where a section has none, or one is for no row."""
    result = {}
    if constructs.keys() != texts.keys():
        raise SystemExit(f"only one of the two tables has sections {sorted(constructs.keys() ^ texts.keys())}")
    for section, rows in constructs.items():
        default = {target: texts[section][target] for target in ("cpu", "nvidia")}
        own = {name: text for name, text in texts[section].items() if name not in default}
        if unknown := own.keys() - rows.keys():
            raise SystemExit(f"docs/translations.toml: {section} has no {sorted(unknown)}")
        for name in rows:
            text = default | own.get(name, {})
            result[section, name] = text["cpu"], text["nvidia"]
    return result


def title(section: str) -> str:
    if section == "mlx":
        return "MLX"
    if not section.startswith(check_constructs.CUDA):
        return section.replace("_", " ").capitalize()
    return f"CUDA: {section.removeprefix(check_constructs.CUDA).replace('_', ' ')}"


def page() -> str:
    constructs = tomllib.loads((ROOT / "tests/constructs.toml").read_text())
    texts = tomllib.loads((ROOT / "docs/translations.toml").read_text())
    translations = translations_of(constructs, texts)
    table = check_constructs.read_table(ROOT / "tests/constructs.toml")
    proofs = defaultdict(list)
    for body in [*bodies.all_bodies(), *bodies.all_cuda_bodies()]:
        for construct in body.constructs:
            proofs[construct].append(body.name)
    lines = []
    for section, rows in constructs.items():
        defaults = texts[section]["cpu"], texts[section]["nvidia"]
        lines += [f"\n## {title(section)}\n", f"* CPU: {defaults[0]}", f"* NVIDIA: {defaults[1]}", ""]
        has_own = any(texts_of_row != defaults for (of, _), texts_of_row in translations.items() if of == section)
        own = ["CPU", "NVIDIA"] if has_own else []
        lines += ["| " + " | ".join(["construct", "meaning", *own, "proved by"]) + " |", "|---" * (3 + len(own)) + "|"]
        for name, row in rows.items():
            sentence = row if isinstance(row, str) else row["is"]
            tokens = table[f"{section}.{name}"].tokens
            label = ", ".join(f"`{token}`" for token in sorted(tokens)) or name.replace("_", " ")
            pairs = zip(translations[section, name], defaults, strict=True)
            differing = ["" if text == default else text for text, default in pairs] if has_own else []
            shown = f"`{proofs[f'{section}.{name}'][0]}`"
            # A bar would end the cell.
            cells = [label, sentence, *differing, shown]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    cuda = sum(len(rows) for section, rows in constructs.items() if section.startswith(check_constructs.CUDA))
    head = HEAD.format(
        constructs=sum(len(rows) for rows in constructs.values()) - cuda,
        bodies=len(bodies.all_bodies()),
        cuda_constructs=cuda,
        cuda_bodies=len(bodies.all_cuda_bodies()),
    )
    return head + "\n".join(lines) + "\n"


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        print("docs/translations.md is not what tools/write_translations.py writes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
