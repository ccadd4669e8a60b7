// Changes of rows of floats that other threads may change, too (`CpuRowUpdate`, core/cpu_image.h).
//
// Floats have no atomic instructions. An operation that compares and exchanges until nobody came between takes as long
// for two floats as for one, where they lie in one word of 64 bits; elements may be exchanged in any company, as long
// as each one is at once. So a row that begins at such a word is exchanged in pairs, any other a lane at a time. Each
// is an instruction that locks its line and waits for all stores before it: sixteen of them took 110 to 130 ns on an
// Emerald Rapids, 40 to 60 ns on a Zen 4, wherever the row was.
//
// Where a launch's code changes an array in no other way than by these functions, and nobody but the launch uses it,
// one lock for a row is enough: that took 20 to 30 and 30 to 40 ns with two threads at rows by chance.
//
// Rejected: words of 128 bits, which took 0.8 times as long as pairs on the Emerald Rapids and 1.3 times as long on the
// Zen 4; asking for the locks' lines ahead, which halves the time at rows by chance, and where two threads follow one
// another takes twice as long as pairs; code for it in each kernel, which takes time to compile.
#pragma once

#include <string_view>

namespace kiln {

/// Null for other names than kAddToRow and kSubtractFromRow.
const void* find_row_update(std::string_view name);

}  // namespace kiln
