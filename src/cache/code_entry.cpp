#include "cache/code_entry.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cache/byte_stream.h"
#include "core/sha256.h"

namespace kiln {
namespace {

constexpr std::string_view kEntryMagic = "KILNCODE";
constexpr uint64_t kEntryVersion = 3;
constexpr size_t kEntryChecksumBytes = 64;
constexpr size_t kPrefixBytes = 8 + kEntryChecksumBytes;

std::string checksum(std::span<const std::byte> behind_prefix) {
  Sha256 hash;
  hash.add_bytes(behind_prefix.data(), behind_prefix.size());
  return hash.hex();
}

bool equal(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() == text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

void add_diagnostic(ByteWriter& out, const Diagnostic& diagnostic) {
  out.add_u64(static_cast<uint64_t>(diagnostic.severity));
  out.add_sized(diagnostic.message);
  out.add_u64(static_cast<uint64_t>(diagnostic.text));
  out.add_u64(static_cast<uint64_t>(diagnostic.line));
  out.add_u64(static_cast<uint64_t>(diagnostic.column));
  out.add_sized(diagnostic.source_line);
  out.add_sized(diagnostic.file);
}

// The checksum holds for what it reads.
Diagnostic read_diagnostic(ByteReader& in) {
  Diagnostic diagnostic;
  diagnostic.severity = static_cast<Severity>(in.u64());
  diagnostic.message = in.sized_text();
  diagnostic.text = static_cast<SourceText>(in.u64());
  diagnostic.line = static_cast<int>(in.u64());
  diagnostic.column = static_cast<int>(in.u64());
  diagnostic.source_line = in.sized_text();
  diagnostic.file = in.sized_text();
  return diagnostic;
}

}  // namespace

std::vector<std::byte> encode_entry(std::string_view id, const CodeEntry& entry) {
  ByteWriter out;
  out.add_raw(kEntryMagic);
  out.add_raw(std::string(kEntryChecksumBytes, ' '));
  out.add_u64(kEntryVersion);
  size_t size_at = out.size();
  out.add_u64(0);
  out.add_sized(id);
  out.add_sized(entry.compiler);
  out.add_u64(static_cast<uint64_t>(entry.target.kind));
  out.add_sized(entry.target.cpu);
  out.add_sized(entry.target.engine);
  out.add_sized(entry.target.passes);
  out.add_u64(entry.target.pass_limit ? *entry.target.pass_limit + 1 : 0);
  out.add_sized(entry.kernel);
  out.add_sized(entry.source);
  out.add_sized(entry.engine);
  out.add_sized(entry.engine_reason);
  out.add_u64(entry.written_inputs.size());
  for (uint32_t input : entry.written_inputs) out.add_u64(input);
  out.add_u64(std::bit_cast<uint64_t>(entry.compile_ms));
  out.add_sized(entry.binary);
  out.add_u64(entry.diagnostics.size());
  for (const Diagnostic& diagnostic : entry.diagnostics) add_diagnostic(out, diagnostic);
  std::vector<std::byte>& bytes = out.bytes();
  ByteWriter size;
  size.add_u64(bytes.size());
  std::copy(size.bytes().begin(), size.bytes().end(), bytes.begin() + static_cast<std::ptrdiff_t>(size_at));
  std::string sum = checksum(std::span(bytes).subspan(kPrefixBytes));
  std::memcpy(bytes.data() + kEntryMagic.size(), sum.data(), kEntryChecksumBytes);
  return std::move(bytes);
}

EntryState decode_entry(std::span<const std::byte> bytes, std::string_view id, CodeEntry& entry) {
  ByteReader in(bytes);
  std::span<const std::byte> magic = in.raw(kEntryMagic.size()), sum = in.raw(kEntryChecksumBytes);
  if (!in.ok() || !equal(magic, kEntryMagic) || !equal(sum, checksum(bytes.subspan(kPrefixBytes))))
    return EntryState::kDamaged;
  if (in.u64() != kEntryVersion) return in.ok() ? EntryState::kOtherVersion : EntryState::kDamaged;
  if (in.u64() != bytes.size() || in.sized_text() != id) return EntryState::kDamaged;
  entry.compiler = in.sized_text();
  entry.target.kind = static_cast<DeviceKind>(in.u64());
  entry.target.cpu = in.sized_text();
  entry.target.engine = in.sized_text();
  entry.target.passes = in.sized_text();
  const uint64_t pass_limit = in.u64();
  entry.target.pass_limit = pass_limit > 0 ? std::optional(pass_limit - 1) : std::nullopt;
  entry.kernel = in.sized_text();
  entry.source = in.sized_text();
  entry.engine = in.sized_text();
  entry.engine_reason = in.sized_text();
  entry.written_inputs.clear();
  for (uint64_t count = in.u64(); count > 0 && in.ok(); --count)
    entry.written_inputs.push_back(static_cast<uint32_t>(in.u64()));
  entry.compile_ms = std::bit_cast<double>(in.u64());
  std::span<const std::byte> binary = in.sized();
  entry.binary.assign(binary.begin(), binary.end());
  entry.diagnostics.clear();
  for (uint64_t count = in.u64(); count > 0 && in.ok(); --count) entry.diagnostics.push_back(read_diagnostic(in));
  return in.at_end() ? EntryState::kValid : EntryState::kDamaged;
}

bool is_entry_id(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace kiln
