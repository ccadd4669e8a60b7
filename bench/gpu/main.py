"""``make bench-gpu``: the benchmarks on an NVIDIA GPU, one after the other. Prints tables and writes all figures with
the machine's description to ``gpu.json`` in bench/results or the folder that is given."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from pathlib import Path

from bench import measure
from bench.gpu import bodies, compile_times, grid_sample, launches, matrix_product, measure_gpu, stored_code

SECTIONS = {
    "compile_times": compile_times,
    "stored_code": stored_code,
    "launches": launches,
    "grid_sample": grid_sample,
    "matrix_product": matrix_product,
    "bodies": bodies,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.main", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, action="append", help="one section; may be given more than once")
    parser.add_argument("--out", type=Path, default=measure.RESULTS, help="folder of the results")
    parser.add_argument("--kernels", type=Path, help="a file with more bodies for the section of that name")
    arguments = parser.parse_args()
    figures, failed = {}, False
    for name, section in SECTIONS.items():
        if arguments.only and name not in arguments.only:
            continue
        print(f"  {name} …", file=sys.stderr, flush=True)
        try:
            figures[name], printed = bodies.run(arguments.kernels) if section is bodies else section.run()
        except (Exception, SystemExit):
            # What the others found is not lost.
            traceback.print_exc()
            failed = True
            continue
        print("\n\n".join(printed), flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "gpu.json"
    content = {
        "machine": measure.machine() | measure_gpu.machine(),
        "date": time.strftime("%Y-%m-%d"),
        "figures": figures,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"written to {path}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
