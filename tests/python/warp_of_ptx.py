"""One simdgroup's PTX in NumPy: as much of the language as what Kiln writes for a few matrices without guards.

Instructions that exchange elements follow the tables of NVIDIA's "Parallel Thread Execution ISA", version 8.0, sections
9.7.8.6 (`shfl.sync`), 9.7.13.4.13 (`mma.m16n8k8`) and 9.7.13.5.17 (`movmatrix`). Registers are 32 lanes of bits.
"""

import re
import struct

import ml_dtypes
import numpy as np

LANE = np.arange(32)
MASK = {16: 0xFFFF, 32: 0xFFFFFFFF, 64: 0xFFFFFFFFFFFFFFFF}


def _words(values, dtype, bits):
    return np.ascontiguousarray(values.astype(bits)).view(dtype)


def _pairs(register, dtype):
    """The two elements of each lane's word: shape (32, 2)."""
    halves = np.stack([register & 0xFFFF, register >> 16 & 0xFFFF], axis=1)
    return _words(halves, dtype, np.uint16)


def movmatrix(register):
    """`.m8n8.trans.b16`: lane l holds row l / 4, columns 2 (l % 4) and one more, of what is read and of what results."""
    row, column = (LANE // 4)[:, None], (2 * (LANE % 4))[:, None] + [0, 1]
    matrix = np.zeros((8, 8), np.uint64)
    matrix[row, column] = np.stack([register & 0xFFFF, register >> 16 & 0xFFFF], axis=1)
    taken = matrix.T[row, column]
    return taken[:, 0] | taken[:, 1] << 16


def mma(a, b, c, dtype):
    """`.m16n8k8.row.col`, sums in float. The sum is exact here, and rounded once."""
    group, place = LANE // 4, LANE % 4
    left, right, sums = np.zeros((16, 8)), np.zeros((8, 8)), np.zeros((16, 8))
    for i in range(4):  # a0 to a3: rows 8 below from a2 on
        left[group + 8 * (i // 2), 2 * place + i % 2] = _pairs(a[i // 2], dtype)[:, i % 2]
    for i in range(2):
        right[2 * place + i, group] = _pairs(b[0], dtype)[:, i]
    for i in range(4):
        sums[group + 8 * (i // 2), 2 * place + i % 2] = _words(c[i], np.float32, np.uint32)
    result = (left @ right + sums).astype(np.float32)
    return [result[group + 8 * (i // 2), 2 * place + i % 2].copy().view(np.uint32).astype(np.uint64) for i in range(4)]


class Warp:
    """Runs `ptx` in one threadgroup of 32 threads; `arrays` are its arguments, of which it writes some."""

    def __init__(self, ptx, arrays):
        self.arrays = [array.reshape(-1).view(np.uint8) for array in arrays]
        # An argument's address is its number and 32 bits; the geometry comes first (core/gpu_image.h).
        self.block = struct.pack("<10I", 32, 1, 1, 32, 1, 1, 1, 1, 1, 0)
        for number, array in enumerate(self.arrays):
            self.block += struct.pack("<3q", number + 1 << 32, 0, array.size)
        self.registers = {"%tid.x": LANE.astype(np.uint64), "%ctaid.x": np.zeros(32, np.uint64)}
        body = re.sub(r"//.*", "", ptx[ptx.index("{") + 1 : ptx.rindex("}")])
        body = re.sub(r"\{\s*\.reg \.b16 tmp;\s*(mov\.b32[^;]*;)\s*\}", r"\1", body)  # half of a word
        lines = [line.strip().rstrip(";") for line in body.replace(":", ":\n").split("\n")]
        self.lines = [line for line in lines if line and not line.startswith(".reg")]
        self.run()

    def value(self, operand):
        if operand in self.registers:
            return self.registers[operand]
        if operand.startswith("0f"):
            return np.full(32, int(operand[2:], 16), np.uint64)
        if "param" in operand:
            return np.zeros(32, np.uint64)  # the block's own address
        return np.full(32, int(operand) & MASK[64], np.uint64)

    def run(self):
        place = 0
        while True:
            line = self.lines[place]
            place += 1
            guard = re.match(r"@(!?)(%p\d+)\s+(.*)", line)
            if guard:
                (taken,) = set((self.registers[guard[2]] != 0).tolist())  # nobody goes another way
                if taken == (guard[1] == "!"):
                    continue
                line = guard[3]
            opcode, _, rest = line.partition(" ")
            opcode, rest = (opcode + " " + rest).replace("\t", " ").split(" ", 1) if rest else (line, "")
            if line.endswith(":"):
                continue
            if opcode == "ret":
                return
            if opcode.startswith("bra"):
                place = self.lines.index(rest.strip() + ":")
                continue
            self.execute(
                opcode.split("."), [part.strip() for part in re.findall(r"\s*(\{[^}]*\}|\[[^\]]*\]|[^,]+)", rest)]
            )

    def memory(self, operand):
        base, _, offset = operand.strip("[]").partition("+")
        base = base.strip()
        if base.endswith("_param_0"):
            return None, int(offset or 0)
        return self.value(base), int(offset or 0)

    def execute(self, opcode, operands):
        # What a conversion results in is said before what it takes; words are moved whose elements have 16 bits.
        name, kind = opcode[0], "b32" if opcode[0] == "movmatrix" else opcode[-2 if opcode[0] == "cvt" else -1]
        size = int(re.sub(r"\D", "", kind) or 32) if kind[-1].isdigit() else 32
        many = [[part.strip() for part in operand.strip("{}").split(",")] for operand in operands]
        if name in ("ld", "st"):
            return self.access(opcode, operands, size // 8)
        if name == "mma":
            dtype = np.float16 if opcode[7] == "f16" else ml_dtypes.bfloat16
            left, right, sums = ([self.value(part) for part in parts] for parts in many[1:])
            for register, result in zip(many[0], mma(left, right, sums, dtype), strict=True):
                self.registers[register] = result
            return None
        if name == "mov" and len(many[1]) == 2:
            low, high = map(self.value, many[1])
            result = low | high << np.uint64(16)
        elif name == "mov" and len(many[0]) == 2:
            value = self.value(operands[1])
            self.registers[many[0][0]], self.registers[many[0][1]] = value & 0xFFFF, value >> 16 & 0xFFFF
            return None
        else:
            result = self.compute(opcode, [self.value(operand) for operand in operands[1:]])
        if name != "setp":
            result = np.asarray(result, np.uint64) & np.uint64(MASK[64 if name == "mul" and "wide" in opcode else size])
        self.registers[operands[0]] = np.asarray(result, np.uint64)
        return None

    def access(self, opcode, operands, size):
        target, place = (operands[0], operands[1]) if opcode[0] == "ld" else (operands[1], operands[0])
        base, offset = self.memory(place)
        if "param" in opcode:
            offset += 0 if base is None else int(base[0])
            for register in target.strip("{}").split(","):
                number = int.from_bytes(self.block[offset : offset + size], "little")
                self.registers[register.strip()] = np.full(32, number, np.uint64)
                offset += size
            return
        result = np.zeros(32, np.uint64)
        for lane, address in enumerate((base + np.uint64(offset)).tolist()):
            array, first = self.arrays[(address >> 32) - 1], address & 0xFFFFFFFF
            assert first % size == 0 and first + size <= array.size
            if opcode[0] == "ld":
                result[lane] = int.from_bytes(array[first : first + size].tobytes(), "little")
            else:
                bits = int(self.registers[target][lane]) & MASK[8 * size]
                array[first : first + size] = np.frombuffer(bits.to_bytes(size, "little"), np.uint8)
        if opcode[0] == "ld":
            self.registers[target] = result

    def compute(self, opcode, values):
        a, b = [*values, None, None][:2]
        match opcode:
            case ["mov", *_] | ["cvt", "u32" | "u64", *_]:
                return a
            case ["cvt", "rn", "f16", "f32"]:
                return _words(a, np.float32, np.uint32).astype(np.float16).view(np.uint16)
            case ["cvt", "f32", "f16"]:
                return _words(a, np.float16, np.uint16).astype(np.float32).view(np.uint32)
            case ["add", "rn", "f32"]:
                return (_words(a, np.float32, np.uint32) + _words(b, np.float32, np.uint32)).view(np.uint32)
            case ["add", *_]:
                return a + b
            case ["sub", *_]:
                return a - b
            case ["mul", "wide" | "lo", *_]:
                return a * b
            case ["or", *_]:
                return a | b
            case ["and", *_]:
                return a & b
            case ["shl", *_]:
                return a << b
            case ["shr", *_]:
                return a >> b
            case ["bfe", *_]:
                return a >> b & ((1 << values[2]) - 1)
            case ["min", "u32"]:
                return np.minimum(a, b)
            case ["setp", "ne", *_]:
                return a != b
            case ["setp", "eq", *_]:
                return a == b
            case ["setp", "ge", "u32"]:
                return a >= b
            case ["shfl", "sync", "idx", "b32"]:
                assert values[2][0] == 31 and values[3][0] & MASK[32] == MASK[32]
                return a[b]
            case ["movmatrix", *_]:
                return movmatrix(a)
        raise NotImplementedError(".".join(opcode))
