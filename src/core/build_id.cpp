#include "core/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace kiln {
namespace {

// Notes are one after the other: sizes of name and content and a type, then name and content, each padded.
std::string find_build_id(std::span<const std::byte> notes, uint64_t alignment) {
  const uint64_t unit = alignment == 8 ? 8 : 4;
  auto padded = [&](uint64_t size) { return (size + unit - 1) / unit * unit; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof header);
    notes = notes.subspan(sizeof header);
    uint64_t name = padded(header.n_namesz), content = padded(header.n_descsz);
    if (name > notes.size() || header.n_descsz > notes.size() - name) return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(notes.data(), "GNU", 4) == 0) {
      std::string digits;
      for (std::byte byte : notes.subspan(name, header.n_descsz)) {
        digits += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
        digits += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
      }
      return digits;
    }
    notes = notes.subspan(content > notes.size() - name ? notes.size() : name + content);
  }
  return {};
}

bool read_at(int file, uint64_t offset, void* data, size_t bytes) {
  return offset <= INT64_MAX && ::pread(file, data, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

std::string build_id_of_open_file(int file) {
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  std::vector<Elf64_Phdr> parts(header.e_phnum);
  if (!read_at(file, header.e_phoff, parts.data(), parts.size() * sizeof(Elf64_Phdr))) return {};
  for (const Elf64_Phdr& part : parts) {
    if (part.p_type != PT_NOTE || part.p_filesz > 1 << 16) continue;
    std::vector<std::byte> notes(part.p_filesz);
    if (!read_at(file, part.p_offset, notes.data(), notes.size())) continue;
    if (std::string id = find_build_id(notes, part.p_align); !id.empty()) return id;
  }
  return {};
}

}  // namespace

std::string build_id_of_file(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  std::string id = build_id_of_open_file(file);
  ::close(file);
  return id;
}

std::string build_id_of_loaded(const void* address) {
  struct Search {
    uint64_t address;
    std::string id;
  } search{reinterpret_cast<uint64_t>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        std::span<const Elf64_Phdr> parts(object->dlpi_phdr, object->dlpi_phnum);
        bool here = false;
        for (const Elf64_Phdr& part : parts) {
          uint64_t begin = object->dlpi_addr + part.p_vaddr;
          here = here || (part.p_type == PT_LOAD && wanted.address >= begin && wanted.address - begin < part.p_memsz);
        }
        if (!here) return 0;
        for (const Elf64_Phdr& part : parts) {
          if (part.p_type != PT_NOTE || !wanted.id.empty()) continue;
          const auto* notes = reinterpret_cast<const std::byte*>(object->dlpi_addr + part.p_vaddr);
          wanted.id = find_build_id({notes, part.p_memsz}, part.p_align);
        }
        return 1;
      },
      &search);
  return search.id;
}

}  // namespace kiln
