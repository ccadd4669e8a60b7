#include "targets/cpu/image_loader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/launch_geometry.h"
#include "core/out_of_memory.h"
#include "core/text.h"
#include "kiln/error.h"
#include "targets/cpu/c_functions.h"
#include "targets/cpu/kernel_output.h"
#include "targets/cpu/launch_attendant.h"
#include "targets/cpu/row_updates.h"

// The compiler's own library has these; C++ has no names for them. They follow the conventions for halves and
// for integers in registers.
extern "C" {
void __extendhfsf2();
void __truncsfhf2();
// Integers of 128 bits.
void __divti3();
void __modti3();
void __udivti3();
void __umodti3();
void __fixsfti();
void __fixdfti();
void __fixunssfti();
void __fixunsdfti();
void __floattisf();
void __floattidf();
void __floatuntisf();
void __floatuntidf();
}

namespace kiln {
namespace {

// What compiled code may call. The functions of <cmath> are exact and the conversions of halves exact or correctly
// rounded, so that they have the same results everywhere; processors that have instructions for them call none.
struct Import {
  std::string_view name;
  const void* address;
};

template <typename Function>
const void* address(Function* function) {
  return reinterpret_cast<const void*>(function);
}

const Import kImports[] = {
    {"memcpy", address(static_cast<void* (*)(void*, const void*, size_t)>(std::memcpy))},
    {"memmove", address(static_cast<void* (*)(void*, const void*, size_t)>(std::memmove))},
    {"memset", address(static_cast<void* (*)(void*, int, size_t)>(std::memset))},
    {"floorf", address(static_cast<float (*)(float)>(std::floor))},
    {"ceilf", address(static_cast<float (*)(float)>(std::ceil))},
    {"truncf", address(static_cast<float (*)(float)>(std::trunc))},
    {"rintf", address(static_cast<float (*)(float)>(std::rint))},
    {"fmaf", address(static_cast<float (*)(float, float, float)>(std::fma))},
    {"floor", address(static_cast<double (*)(double)>(std::floor))},
    {"ceil", address(static_cast<double (*)(double)>(std::ceil))},
    {"trunc", address(static_cast<double (*)(double)>(std::trunc))},
    {"rint", address(static_cast<double (*)(double)>(std::rint))},
    {"fma", address(static_cast<double (*)(double, double, double)>(std::fma))},
    {"__extendhfsf2", address(__extendhfsf2)},
    {"__truncsfhf2", address(__truncsfhf2)},
    {"__divti3", address(__divti3)},
    {"__modti3", address(__modti3)},
    {"__udivti3", address(__udivti3)},
    {"__umodti3", address(__umodti3)},
    {"__fixsfti", address(__fixsfti)},
    {"__fixdfti", address(__fixdfti)},
    {"__fixunssfti", address(__fixunssfti)},
    {"__fixunsdfti", address(__fixunsdfti)},
    {"__floattisf", address(__floattisf)},
    {"__floattidf", address(__floattidf)},
    {"__floatuntisf", address(__floatuntisf)},
    {"__floatuntidf", address(__floatuntidf)},
};

const void* find_import(std::string_view name) {
  for (const Import& import : kImports)
    if (import.name == name) return import.address;
  if (const void* function = find_c_function(name)) return function;
  if (const void* function = find_row_update(name)) return function;
  if (name == kAttendFunction) return address(attend_to_launch);
  return find_output_function(name);
}

[[noreturn]] void damaged(const char* what) { throw InternalError(concat("machine code is damaged: ", what)); }

bool fits(uint64_t offset, uint64_t count, uint64_t size, uint64_t total) {
  uint64_t bytes;
  return !__builtin_mul_overflow(count, size, &bytes) && offset <= total && bytes <= total - offset;
}

}  // namespace

LoadedImage::LoadedImage(std::span<const std::byte> image) {
  if (image.size() < sizeof header_) damaged("it is too short");
  std::memcpy(&header_, image.data(), sizeof header_);
  uint64_t total = image.size();
  if (header_.magic != kCpuImageMagic || header_.version != kCpuImageVersion ||
      (header_.kind != CpuImageKind::kLoop && header_.kind != CpuImageKind::kCoroutines &&
       header_.kind != CpuImageKind::kSimdgroups))
    damaged("it is of another version");
  // Each part ends before the next one begins: what the loader writes into the slots changes nothing else.
  if (header_.total_bytes != total || header_.sites_offset < sizeof header_ ||
      !fits(header_.sites_offset, header_.site_count, sizeof(CpuSite), header_.paths_offset) ||
      header_.paths_offset > header_.import_names_offset || header_.import_names_offset > header_.code_offset ||
      !fits(header_.code_offset, header_.code_bytes, 1, header_.import_slots_offset) ||
      !fits(header_.import_slots_offset, header_.import_count, 8, header_.addresses_offset) ||
      !fits(header_.addresses_offset, header_.address_count, 8, total) || !is_code(header_.run_offset) ||
      (header_.threadgroup_offset != 0 && !is_code(header_.threadgroup_offset)) ||
      header_.sites_offset % alignof(CpuSite) != 0 || header_.paths_offset % alignof(uint32_t) != 0)
    damaged("its parts do not lie within it");
  uint64_t threads = header_.kind == CpuImageKind::kSimdgroups ? kSimdgroupSize : 1;
  if (header_.frame_bytes > threads * kCpuPrivateMemoryLimit) damaged("its frames are too large");
  if (header_.stack_bytes > kCpuStackLimit) damaged("it takes too much of a stack");

  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  mapped_bytes_ = (total + page - 1) / page * page;
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw OutOfMemory(
        concat("There is no memory for ", mapped_bytes_, " bytes of machine code: ", std::strerror(errno), "."));
  base_ = static_cast<std::byte*>(memory);
  auto* bytes = static_cast<std::byte*>(memory);
  std::memcpy(bytes, image.data(), total);

  try {
    for (const CpuSite& site : sites())
      if (!is_valid(site)) damaged("a site is not valid");
    uint64_t name_offset = header_.import_names_offset;
    for (uint32_t i = 0; i < header_.import_count; ++i) {
      if (name_offset >= header_.code_offset) damaged("its names do not lie within it");
      const char* name = reinterpret_cast<const char*>(bytes) + name_offset;
      size_t length = strnlen(name, header_.code_offset - name_offset);
      const void* target = find_import(std::string_view(name, length));
      std::string_view import(name, length);
      may_fail_ = may_fail_ || import == kFailFunction || import == kUnsupportedFunction;
      if (!target)
        throw InternalError(
            concat("machine code calls a function that Kiln does not have: ", std::string_view(name, length)));
      std::memcpy(bytes + header_.import_slots_offset + 8 * i, &target, 8);
      name_offset += length + 1;
    }
    for (uint32_t i = 0; i < header_.address_count; ++i) {
      uint64_t place, address;
      std::memcpy(&place, bytes + header_.addresses_offset + 8 * i, 8);
      if (place < header_.code_offset || !fits(place - header_.code_offset, 1, 8, header_.code_bytes))
        damaged("an address does not lie within its code");
      std::memcpy(&address, bytes + place, 8);
      address += reinterpret_cast<uint64_t>(bytes);
      std::memcpy(bytes + place, &address, 8);
    }
    // From here on nobody writes.
    if (mprotect(memory, mapped_bytes_, PROT_READ | PROT_EXEC) != 0) {
      if (errno == ENOMEM) throw OutOfMemory("There is no memory for machine code.");
      throw DeviceError(concat("cannot make machine code executable: ", std::strerror(errno)));
    }
  } catch (...) {
    munmap(memory, mapped_bytes_);
    throw;
  }
}

bool LoadedImage::is_code(uint64_t offset) const {
  return offset >= header_.code_offset && offset - header_.code_offset < header_.code_bytes;
}

bool LoadedImage::is_valid(const CpuSite& site) const {
  if (site.loop_depth > header_.max_loop_depth ||
      !fits(header_.paths_offset, uint64_t{site.path_offset} + site.loop_depth + 1, 4, header_.import_names_offset))
    return false;
  switch (site.exchange) {
    case CpuExchange::kNone:
    case CpuExchange::kShuffle:
    case CpuExchange::kBallot: return site.combine_offset == 0;
    case CpuExchange::kReduce:
    case CpuExchange::kInclusiveScan:
    case CpuExchange::kExclusiveScan:
      return std::has_single_bit(site.width) && site.width <= 32 && is_code(site.combine_offset);
  }
  return false;
}

LoadedImage::~LoadedImage() { munmap(const_cast<std::byte*>(base_), mapped_bytes_); }

std::span<const CpuSite> LoadedImage::sites() const {
  return {reinterpret_cast<const CpuSite*>(base_ + header_.sites_offset), header_.site_count};
}

std::span<const uint32_t> LoadedImage::path(const CpuSite& site) const {
  return {reinterpret_cast<const uint32_t*>(base_ + header_.paths_offset) + site.path_offset, site.loop_depth + 1u};
}

}  // namespace kiln
