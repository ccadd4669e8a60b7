#include "compiler/x86/image_writer.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/DataExtractor.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Support/MemoryBufferRef.h>

#include <cstring>
#include <map>

#include "compiler/ir/convergence_point.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;
using Object = object::ELF64LEObjectFile;

template <typename T>
T check(Expected<T> value) {
  if (!value) throw InternalError("a kernel's object: " + toString(value.takeError()));
  return std::move(*value);
}

class ImageWriter {
 public:
  ImageWriter(const Object& object, const EngineOutput& engine) : object_(object), engine_(engine) {}

  std::vector<std::byte> write() {
    CpuImageHeader header{};
    header.magic = kCpuImageMagic;
    header.version = kCpuImageVersion;
    header.kind = engine_.kind;
    header.site_count = static_cast<uint32_t>(engine_.sites.size());
    header.threadgroup_memory_bytes = engine_.threadgroup_memory_bytes;
    header.frame_bytes = engine_.frame_bytes;
    header.threadgroup_simdgroups = engine_.threadgroup_simdgroups;
    header.threadgroup_width = engine_.threadgroup_width;
    header.may_spin = engine_.may_spin;
    header.uses_striped_locks = engine_.uses_striped_locks;
    header.joins_rows = engine_.joins_rows;
    header.takes_rows = engine_.takes_rows;
    header.polls = engine_.polls;
    header.stack_bytes = stack_bytes();
    image_.resize(sizeof header);

    std::vector<CpuSite> sites;
    std::vector<uint32_t> paths;
    for (const ConvergencePoint& point : engine_.sites) {
      auto depth = static_cast<uint32_t>(point.places.size() - 1);
      header.max_loop_depth = std::max(header.max_loop_depth, depth);
      sites.push_back({.is_barrier = point.is_barrier,
                       .exchange = point.exchange,
                       .width = point.width,
                       .line = point.line,
                       .loop_depth = depth,
                       .path_offset = static_cast<uint32_t>(paths.size()),
                       .function = point.function,
                       .unused = 0,
                       .identity = point.identity,
                       .combine_offset = 0});
      paths.insert(paths.end(), point.places.begin(), point.places.end());
    }
    header.sites_offset = append(sites.data(), sites.size() * sizeof(CpuSite), 8);
    header.paths_offset = append(paths.data(), paths.size() * sizeof(uint32_t), 4);

    find_imports();
    header.import_count = static_cast<uint32_t>(imports_.size());
    header.import_names_offset = image_.size();
    for (const auto& [name, stub] : imports_) append(name.c_str(), name.size() + 1, 1);

    header.code_offset = alignTo(image_.size(), 64);
    image_.resize(header.code_offset);
    place_sections();
    place_stubs();
    header.code_bytes = image_.size() - header.code_offset;
    relocate();
    fill_stubs(header);
    header.address_count = static_cast<uint32_t>(addresses_.size());
    header.addresses_offset = append(addresses_.data(), addresses_.size() * sizeof(uint64_t), 8);

    header.run_offset = address_of(engine_.run_function);
    if (!engine_.threadgroup_function.empty()) header.threadgroup_offset = address_of(engine_.threadgroup_function);
    for (size_t i = 0; i < sites.size(); ++i)
      if (!engine_.combine_functions[i].empty()) sites[i].combine_offset = address_of(engine_.combine_functions[i]);
    header.total_bytes = image_.size();
    std::memcpy(image_.data(), &header, sizeof header);
    if (!sites.empty()) std::memcpy(image_.data() + header.sites_offset, sites.data(), sites.size() * sizeof(CpuSite));
    return std::move(image_);
  }

 private:
  uint64_t append(const void* bytes, size_t count, size_t alignment) {
    image_.resize(alignTo(image_.size(), alignment));
    uint64_t offset = image_.size();
    image_.resize(offset + count);
    if (count) std::memcpy(image_.data() + offset, bytes, count);
    return offset;
  }

  // The stack of all the object's functions together, since none is recursive. The section has an address and a size
  // for each (LLVM's TargetOptions::EmitStackSizeSection).
  uint64_t stack_bytes() {
    uint64_t all = 0;
    for (object::ELFSectionRef section : object_.sections()) {
      if (check(section.getName()) != ".stack_sizes") continue;
      StringRef contents = check(section.getContents());
      DataExtractor data(contents, /*IsLittleEndian=*/true, /*AddressSize=*/8);
      DataExtractor::Cursor cursor(0);
      while (cursor && cursor.tell() < contents.size()) {
        static_cast<void>(data.getU64(cursor));
        all += data.getULEB128(cursor) + kBytesOfCall;
      }
      if (!cursor) throw InternalError("a kernel's stack sizes: " + toString(cursor.takeError()));
    }
    return all;
  }
  // The return address and the alignment of a frame.
  static constexpr uint64_t kBytesOfCall = 128;

  // Every symbol that the object uses and does not define.
  void find_imports() {
    for (object::ELFSymbolRef symbol : object_.symbols()) {
      bool undefined = check(symbol.getFlags()) & object::SymbolRef::SF_Undefined;
      std::string name = check(symbol.getName()).str();
      if (undefined && !name.empty() && name != "_GLOBAL_OFFSET_TABLE_") imports_[name] = 0;
    }
  }

  void place_sections() {
    for (object::ELFSectionRef section : object_.sections()) {
      if (!(section.getFlags() & ELF::SHF_ALLOC) || section.getType() == ELF::SHT_X86_64_UNWIND ||
          check(section.getName()) == ".eh_frame")
        continue;
      if (section.getSize() == 0) continue;
      if (section.getFlags() & ELF::SHF_WRITE && check(section.getName()) != ".data.rel.ro")
        throw InternalError(concat("a kernel has writable data in ", check(section.getName()).str()));
      size_t alignment = std::max<uint64_t>(1, section.getAlignment().value());
      image_.resize(alignTo(image_.size(), alignment));
      sections_[section.getIndex()] = image_.size();
      if (section.isBSS()) {
        image_.resize(image_.size() + section.getSize());
      } else {
        StringRef contents = check(section.getContents());
        append(contents.data(), contents.size(), 1);
      }
    }
  }

  // jmp *slot(%rip), filled in once the offsets of the slots are known.
  static constexpr size_t kStubBytes = 16;

  void place_stubs() {
    image_.resize(alignTo(image_.size(), kStubBytes));
    for (auto& [name, stub] : imports_) {
      stub = image_.size();
      image_.resize(image_.size() + kStubBytes, std::byte{0xcc});
    }
  }

  void fill_stubs(CpuImageHeader& header) {
    image_.resize(alignTo(image_.size(), 8));
    header.import_slots_offset = image_.size();
    image_.resize(image_.size() + 8 * imports_.size());
    uint64_t slot = header.import_slots_offset;
    for (const auto& [name, stub] : imports_) {
      image_[stub] = std::byte{0xff};
      image_[stub + 1] = std::byte{0x25};
      write32(stub + 2, static_cast<int64_t>(slot) - static_cast<int64_t>(stub + 6));
      slot += 8;
    }
  }

  uint64_t address_of(const object::ELFSymbolRef& symbol) {
    if (check(symbol.getFlags()) & object::SymbolRef::SF_Undefined) return imports_.at(check(symbol.getName()).str());
    object::section_iterator section = check(symbol.getSection());
    if (section == object_.section_end()) throw InternalError("a kernel's object has an absolute symbol");
    auto placed = sections_.find(section->getIndex());
    if (placed == sections_.end()) throw InternalError("a kernel's object refers to a section that is not loaded");
    return placed->second + check(symbol.getValue());
  }

  uint64_t address_of(const std::string& name) {
    for (object::ELFSymbolRef symbol : object_.symbols())
      if (check(symbol.getName()) == name) return address_of(symbol);
    throw InternalError(concat("a kernel's object does not define ", name));
  }

  void relocate() {
    for (object::ELFSectionRef section : object_.sections()) {
      auto relocated = check(section.getRelocatedSection());
      if (relocated == object_.section_end()) continue;
      auto placed = sections_.find(relocated->getIndex());
      if (placed == sections_.end()) continue;
      for (object::ELFRelocationRef relocation : section.relocations()) {
        uint64_t offset = placed->second + relocation.getOffset();
        int64_t addend = check(relocation.getAddend());
        auto target = static_cast<int64_t>(address_of(*relocation.getSymbol()));
        switch (relocation.getType()) {
          case ELF::R_X86_64_PC32:
          case ELF::R_X86_64_PLT32: write32(offset, target + addend - static_cast<int64_t>(offset)); break;
          case ELF::R_X86_64_PC64: write64(offset, target + addend - static_cast<int64_t>(offset)); break;
          case ELF::R_X86_64_64:
            write64(offset, target + addend);
            addresses_.push_back(offset);
            break;
          default: {
            SmallString<32> type;
            relocation.getTypeName(type);
            throw InternalError(concat("a kernel's object has a relocation ", type.str().str()));
          }
        }
      }
    }
  }

  void write32(uint64_t offset, int64_t value) {
    if (!isInt<32>(value)) throw InternalError("a kernel's code is larger than 2 GiB");
    auto narrow = static_cast<int32_t>(value);
    std::memcpy(image_.data() + offset, &narrow, sizeof narrow);
  }
  void write64(uint64_t offset, int64_t value) { std::memcpy(image_.data() + offset, &value, sizeof value); }

  const Object& object_;
  const EngineOutput& engine_;
  std::vector<std::byte> image_;
  std::map<std::string, uint64_t> imports_;  // name -> offset of its stub
  std::map<uint64_t, uint64_t> sections_;    // section index -> offset
  std::vector<uint64_t> addresses_;          // offsets of constants that are addresses
};

}  // namespace

std::vector<std::byte> write_image(const char* object, size_t object_bytes, const EngineOutput& engine) {
  auto file = object::ObjectFile::createELFObjectFile(MemoryBufferRef(StringRef(object, object_bytes), "kernel"));
  std::unique_ptr<object::ObjectFile> parsed = check(std::move(file));
  const auto* elf = dyn_cast<Object>(parsed.get());
  if (!elf) throw InternalError("a kernel's object is not for 64-bit x86");
  return ImageWriter(*elf, engine).write();
}

}  // namespace kiln
