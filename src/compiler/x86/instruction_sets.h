// What x86-64's vector instruction sets can do, in the terms of passes (ir/vector_isa.h).
//
//   level       registers   used by the SIMD engine
//   x86-64-v4   32 of 64 B  AVX-512 (F, BW, CD, DQ, VL): mask registers, gathers and scatters, masked accesses of every
//                           size, permutations of two registers, vscalefps, vrsqrt14ps
//   x86-64-v3   16 of 32 B  AVX2 and FMA: masks are vectors, vmaskmov for elements of 4 and 8 bytes, vrsqrtps of 11.5
//                           bits; gathers of 4 and 8 bytes (x86/gather_instructions.h). A loop over lanes is shorter
//                           for narrow elements, for private arrays and for few lanes.
//   below       16 of 16 B  the scalar engine alone
#pragma once

#include <string_view>

#include "compiler/ir/vector_isa.h"

namespace kiln {

/// The lowest level that the SIMD engine takes.
inline constexpr const char* kLowestSimdCpu = "x86-64-v3";

/// `cpu`: a level of x86-64, as LLVM names it.
VectorIsa vector_isa_of(std::string_view cpu);

}  // namespace kiln
