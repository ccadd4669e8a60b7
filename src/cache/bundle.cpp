#include "cache/bundle.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "cache/byte_stream.h"
#include "cache/safe_files.h"
#include "core/sha256.h"
#include "core/text.h"

namespace kiln {
namespace {

constexpr std::string_view kBundleMagic = "KILNBNDL";
constexpr uint64_t kBundleVersion = 1;
constexpr size_t kBundleChecksumBytes = 64;
constexpr size_t kIdBytes = 64;
constexpr size_t kBeforeHead = 8 + kBundleChecksumBytes;
constexpr size_t kFixedBytes = kBeforeHead + 8 + 8;  // up to the size of the head
constexpr uint64_t kMostHeadBytes = uint64_t{64} << 20;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FileDescriptor open_trusted(FileSystem& files, const std::string& path, struct stat& status) {
  // Named by the user: a link to the bundle that is in use is theirs to set.
  FileDescriptor file(files, files.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK, 0));
  if (!file) throw std::runtime_error(describe_failure("open", path));
  if (std::string reason = why_not_trusted(files, file.get(), path, status); !reason.empty())
    throw std::runtime_error(reason);
  if (!S_ISREG(status.st_mode)) throw std::runtime_error(concat(printable(path), " is not a file"));
  return file;
}

std::string absolute(std::string path) {
  if (path.starts_with('/')) return path;
  std::unique_ptr<char, decltype(&std::free)> current(getcwd(nullptr, 0), &std::free);
  return current ? concat(current.get(), "/", path) : path;
}

}  // namespace

Bundle::Bundle(std::string path, FileSystem& files) : path_(absolute(std::move(path))), files_(files) {
  auto damaged = [&]() -> std::runtime_error { return std::runtime_error(concat(printable(path_), " is damaged")); };
  struct stat status;
  FileDescriptor file = open_trusted(files_, path_, status);
  auto total = static_cast<uint64_t>(status.st_size);
  std::vector<std::byte> head;
  if (total < kFixedBytes || !read_all(files_, file.get(), 0, kFixedBytes, head))
    throw std::runtime_error(concat(printable(path_), " is no bundle of Kiln's"));
  ByteReader fixed(head);
  if (text_of(fixed.raw(kBundleMagic.size())) != kBundleMagic)
    throw std::runtime_error(concat(printable(path_), " is no bundle of Kiln's"));
  std::string sum(text_of(fixed.raw(kBundleChecksumBytes)));
  uint64_t version = fixed.u64(), head_bytes = fixed.u64();
  if (head_bytes < kFixedBytes || head_bytes > total || head_bytes > kMostHeadBytes) throw damaged();
  if (!read_all(files_, file.get(), 0, head_bytes, head)) throw std::runtime_error(describe_failure("read", path_));
  Sha256 hash;
  hash.add_bytes(head.data() + kBeforeHead, head.size() - kBeforeHead);
  if (hash.hex() != sum) throw damaged();
  if (version != kBundleVersion)
    throw std::runtime_error(concat(printable(path_), " was made by a later version of Kiln"));
  ByteReader in(std::span<const std::byte>(head).subspan(kFixedBytes));
  std::string compilers(in.sized_text());
  for (std::string_view compiler : split_lines(compilers)) compilers_.emplace_back(compiler);
  uint64_t count = in.u64();
  if (count > in.left() / (kIdBytes + 16)) throw damaged();
  for (uint64_t i = 0; i < count; ++i) {
    std::string id(text_of(in.raw(kIdBytes)));
    Place place{in.u64(), in.u64()};
    if (!is_entry_id(id) || place.bytes > kMostEntryBytes || place.offset > total || place.bytes > total - place.offset)
      throw damaged();
    places_.emplace(std::move(id), place);
  }
  if (!in.at_end()) throw damaged();
}

std::optional<CodeEntry> Bundle::load(const std::string& id) const {
  auto place = places_.find(id);
  if (place == places_.end()) return std::nullopt;
  std::vector<std::byte> content;
  try {
    // It may be another file by now, so its owner and its size count anew.
    struct stat status;
    FileDescriptor file = open_trusted(files_, path_, status);
    if (!read_all(files_, file.get(), place->second.offset, place->second.bytes, content)) return std::nullopt;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  CodeEntry entry;
  if (decode_entry(content, id, entry) != EntryState::kValid) return std::nullopt;
  return entry;
}

void write_bundle(const std::string& path, const std::vector<std::string>& compilers,
                  const std::map<std::string, std::vector<std::byte>>& entries, FileSystem& files) {
  std::string lines = join(compilers, "\n");
  uint64_t head_bytes = kFixedBytes + 8 + lines.size() + 8 + entries.size() * (kIdBytes + 16);
  if (head_bytes > kMostHeadBytes) throw std::runtime_error("there are too many kernels for one bundle");
  ByteWriter behind;  // of the head, behind the checksum
  behind.add_u64(kBundleVersion);
  behind.add_u64(head_bytes);
  behind.add_sized(lines);
  behind.add_u64(entries.size());
  uint64_t offset = head_bytes;
  for (const auto& [id, content] : entries) {
    behind.add_raw(id);
    behind.add_u64(offset);
    behind.add_u64(content.size());
    offset += content.size();
  }
  Sha256 hash;
  hash.add_bytes(behind.bytes().data(), behind.size());
  ByteWriter out;
  out.add_raw(kBundleMagic);
  out.add_raw(hash.hex());
  out.add_raw(behind.bytes());
  for (const auto& [id, content] : entries) out.add_raw(content);

  std::string temporary = concat(path, ".", getpid(), ".tmp");
  FileDescriptor file(files, files.openat(AT_FDCWD, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  if (!file) throw std::runtime_error(describe_failure("write", temporary));
  // Whatever the process's mask: others may read it, and must not be able to write it.
  if (files.fchmod(file.get(), 0644) != 0 || !write_all(files, file.get(), out.bytes().data(), out.size()) ||
      files.renameat(AT_FDCWD, temporary.c_str(), path.c_str()) != 0) {
    std::string reason = describe_failure("write", path);
    files.unlinkat(AT_FDCWD, temporary.c_str());
    throw std::runtime_error(reason);
  }
}

}  // namespace kiln
