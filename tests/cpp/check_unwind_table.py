"""Whether exceptions pass each of Kiln's functions in a library: ``check_unwind_table.py NM LIBRARY``.

The unwinder finds a function by a sorted index, in which each address stands once. Where an empty part of another
function lies at the address, the linker may keep that one's entry, and an exception that passes ends the process.
"""

import struct
import subprocess
import sys
from pathlib import Path

PT_LOAD, PT_GNU_EH_FRAME = 1, 0x6474E550
# The index's encodings: addresses in 32 bits, of the entries relative to the index.
ENCODINGS = bytes((1, 0x1B, 0x03, 0x3B))


def empty_entries(library: bytes) -> list[int]:
    """The addresses whose entry is of no bytes."""
    headers, count = struct.unpack_from("<Q", library, 32)[0], struct.unpack_from("<H", library, 56)[0]
    loaded, index = [], 0
    for i in range(count):
        kind, _, offset, address, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", library, headers + 56 * i)
        if kind == PT_LOAD:
            loaded.append((address, offset, size))
        if kind == PT_GNU_EH_FRAME:
            index = address

    def place(address: int) -> int:
        return next(offset + address - first for first, offset, size in loaded if first <= address < first + size)

    assert index, "the library has no index for the unwinder"
    at = place(index)
    assert library[at : at + 4] == ENCODINGS, library[at : at + 4]
    entries = struct.iter_unpack("<ii", library[at + 12 : at + 12 + 8 * struct.unpack_from("<I", library, at + 8)[0]])
    # Behind an entry's own length, its family's and its function's address stands the function's length.
    return [index + pc for pc, entry in entries if struct.unpack_from("<I", library, place(index + entry) + 12)[0] == 0]


def main() -> None:
    nm, path = sys.argv[1], Path(sys.argv[2])
    empty = set(empty_entries(path.read_bytes()))
    listed = subprocess.run([nm, "--defined-only", path], check=True, capture_output=True, text=True).stdout
    symbols = [line.split() for line in listed.splitlines()]
    assert any("4kiln" in symbol[2] for symbol in symbols), "the library has no symbols of Kiln's"
    lost = [symbol[2] for symbol in symbols if "4kiln" in symbol[2] and int(symbol[0], 16) in empty]
    assert not lost, f"no exception passes: {', '.join(lost)}"


if __name__ == "__main__":
    main()
