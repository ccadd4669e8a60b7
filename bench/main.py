"""``make bench``: every benchmark, one after the other. Prints tables and writes them to docs/measured.md, with all
figures in bench/results/cpu.json."""

from __future__ import annotations

import sys

from bench import compile_times, grid_sample, launches, measure, stored_code


def main() -> None:
    def progress(what: str) -> None:
        print(f"  {what} …", file=sys.stderr, flush=True)

    figures, tables = {}, []
    modules = {
        "compile_times": compile_times,
        "stored_code": stored_code,
        "launches": launches,
        "grid_sample": grid_sample,
    }
    for name, module in modules.items():
        figures[name], printed = module.run(progress)
        tables += printed
    printed = "\n\n".join(tables)
    paths = measure.write("cpu", figures), measure.write_page(printed)
    print(printed)
    print(f"\nwritten to {paths[0]} and {paths[1]}; README.md quotes some of them")


if __name__ == "__main__":
    main()
