// Machine code as it is kept in a file: with what it was made of and for, and a checksum over all of it.
//
//   "KILNCODE" | checksum | version | size of the whole | id | compiler | target kind | architecture | engine asked for
//   | kernel's name | generated text | engine | its reason | count of written inputs | their numbers | milliseconds of
//   compiling | machine code | warnings
//
// Numbers are 8 bytes, texts have their size before them, the checksum is 64 hexadecimal digits. It stands where a
// later version will have it too, so that a file of a later version can be told from a damaged one.
//
// The checksum is SHA-256, which core has for identifiers already. It is slower than checksums that are made for this
// (a typical entry of 10 kB takes 40 µs), but it needs no dependency, and no two contents share it. It guards against
// what disks and programs do by mistake; against who may write in the cache, only the folder's rights do
// (`cache/safe_files.h`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/compiler.h"

namespace kiln {

struct CodeEntry {
  std::string compiler;  // what identified the compiler that made it
  TargetSpec target;
  std::string kernel;                    // its name
  std::string source;                    // the generated text
  std::string engine;                    // as in CompileResult
  std::string engine_reason;             // as in CompileResult
  std::vector<uint32_t> written_inputs;  // as in CompileResult
  double compile_ms = 0;
  std::vector<std::byte> binary;        // as in CompileResult: what the target loads
  std::vector<Diagnostic> diagnostics;  // as in CompileReport: warnings, and their notes
};

enum class EntryState : uint8_t {
  kValid,
  kDamaged,       // what stands there is not what was written
  kOtherVersion,  // undamaged, but of a version of the format that this Kiln does not know
};

/// Larger files are no entries.
inline constexpr uint64_t kMostEntryBytes = uint64_t{256} << 20;

/// The file's content. `id` is binary_id().
std::vector<std::byte> encode_entry(std::string_view id, const CodeEntry& entry);

/// Reads a file's content into `entry`, whose content is unspecified unless it is valid. An entry of another id is
/// damaged.
EntryState decode_entry(std::span<const std::byte> bytes, std::string_view id, CodeEntry& entry);

/// Whether this is an id: 64 hexadecimal digits in small letters.
bool is_entry_id(std::string_view name);

}  // namespace kiln
