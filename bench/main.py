"""``make bench``: every benchmark, one after the other. Prints tables and writes bench/results/cpu.json."""

from __future__ import annotations

import sys

from bench import compile_times, grid_sample, launches, measure


def main() -> None:
    def progress(what: str) -> None:
        print(f"  {what} …", file=sys.stderr, flush=True)

    figures, tables = {}, []
    for name, module in (("compile_times", compile_times), ("launches", launches), ("grid_sample", grid_sample)):
        figures[name], printed = module.run(progress)
        tables += printed
    path = measure.write("cpu", figures)
    print("\n\n".join(tables))
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
