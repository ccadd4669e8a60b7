// Images are built by hand: a header, one site, one path, import names, a few bytes of code, import slots.
#include "targets/cpu/image_loader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "kiln/error.h"

namespace kiln {
namespace {

struct Image {
  CpuImageHeader header{};
  CpuSite site{};
  uint32_t path[2] = {4, 9};
  std::string names = std::string("memcpy\0floorf\0", 14);
  std::vector<uint8_t> code;
  size_t slots = 2;

  Image() {
    header.magic = kCpuImageMagic;
    header.version = kCpuImageVersion;
    header.kind = CpuImageKind::kLoop;
    header.site_count = 1;
    header.sites_offset = sizeof header;
    header.paths_offset = header.sites_offset + sizeof site;
    header.import_names_offset = header.paths_offset + sizeof path;
    header.import_count = 2;
    header.max_loop_depth = 1;
    header.code_offset = (header.import_names_offset + names.size() + 15) / 16 * 16;
    header.code_bytes = 32;
    header.run_offset = header.code_offset + 16;
    header.import_slots_offset = header.code_offset + header.code_bytes;
    header.addresses_offset = header.import_slots_offset + 8 * slots;
    header.total_bytes = header.addresses_offset;
    site.is_barrier = 1;
    site.line = 12;
    site.loop_depth = 1;
    // At 0: jmp *slot[1](%rip). At 16: jmp *slot[0](%rip).
    code.assign(32, 0xcc);
    put_jump(0, 1);
    put_jump(16, 0);
  }

  void put_jump(size_t at, size_t slot) {
    auto distance = static_cast<int32_t>(header.import_slots_offset + 8 * slot - (header.code_offset + at + 6));
    code[at] = 0xff;
    code[at + 1] = 0x25;
    std::memcpy(code.data() + at + 2, &distance, 4);
  }

  // Everything at its own place, whatever the header says.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> result(sizeof header);
    auto append = [&](const void* data, size_t count, size_t alignment) {
      result.resize((result.size() + alignment - 1) / alignment * alignment);
      size_t at = result.size();
      result.resize(at + count);
      std::memcpy(result.data() + at, data, count);
    };
    std::memcpy(result.data(), &header, sizeof header);
    append(&site, sizeof site, 8);
    append(path, sizeof path, 4);
    append(names.data(), names.size(), 1);
    append(code.data(), code.size(), 16);
    result.resize(result.size() + 8 * slots);
    return result;
  }
};

std::string refusal(const std::function<void(Image&)>& damage) {
  Image image;
  damage(image);
  try {
    LoadedImage loaded(image.bytes());
  } catch (const InternalError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// What /proc/self/maps says of the page that holds an address: "r-xp".
std::string permissions_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uintptr_t begin, end;
    char dash;
    std::string permissions;
    fields >> std::hex >> begin >> dash >> end >> permissions;
    auto wanted = reinterpret_cast<uintptr_t>(address);
    if (wanted >= begin && wanted < end) return permissions;
  }
  return "not mapped";
}

TEST(ImageLoader, MapsAnImageAndResolvesItsImports) {
  Image image;
  LoadedImage loaded(image.bytes());
  EXPECT_EQ(loaded.header().kind, CpuImageKind::kLoop);
  ASSERT_EQ(loaded.sites().size(), 1u);
  EXPECT_EQ(loaded.sites()[0].line, 12u);
  EXPECT_EQ(loaded.path(loaded.sites()[0]).size(), 2u);
  EXPECT_EQ(loaded.path(loaded.sites()[0])[1], 9u);
  EXPECT_EQ(std::memcmp(loaded.code().data(), image.code.data(), image.code.size()), 0);

  // The code at run_offset goes on to memcpy.
  auto copy =
      reinterpret_cast<void* (*)(void*, const void*, size_t)>(reinterpret_cast<uintptr_t>(loaded.row_function()));
  char text[6] = "-----";
  EXPECT_EQ(copy(text, "kiln", 5), text);
  EXPECT_STREQ(text, "kiln");
  // The other import is the second slot.
  auto floor = reinterpret_cast<float (*)(float)>(const_cast<std::byte*>(loaded.code().data()));
  EXPECT_EQ(floor(-1.5f), -2.0f);
}

TEST(ImageLoader, AddsItsPlaceToAddresses) {
  Image image;
  image.code.resize(48);
  image.header.code_bytes = 48;
  image.header.import_slots_offset += 16;
  uint64_t address = image.header.code_offset + 3, place = image.header.code_offset + 32;
  std::memcpy(image.code.data() + 32, &address, 8);
  image.put_jump(0, 1);
  image.put_jump(16, 0);
  // The second slot holds the list of one place; only one import is asked for.
  image.header.import_count = 1;
  image.header.addresses_offset = image.header.import_slots_offset + 8;
  image.header.address_count = 1;
  image.header.total_bytes += 16;
  std::vector<std::byte> bytes = image.bytes();
  std::memcpy(bytes.data() + image.header.addresses_offset, &place, 8);
  LoadedImage loaded(bytes);
  const std::byte* pointer;
  std::memcpy(&pointer, loaded.code().data() + 32, 8);
  EXPECT_EQ(pointer, loaded.code().data() + 3);

  place = image.header.code_offset + 41;
  std::memcpy(bytes.data() + image.header.addresses_offset, &place, 8);
  EXPECT_THROW(LoadedImage{bytes}, InternalError);
}

TEST(ImageLoader, LeavesNothingWritable) {
  LoadedImage loaded(Image().bytes());
  EXPECT_EQ(permissions_of(loaded.code().data()), "r-xp");
}

TEST(ImageLoader, GivesItsMemoryBack) {
  const void* address;
  {
    LoadedImage loaded(Image().bytes());
    address = loaded.code().data();
  }
  // Nothing executable is left there; what else the process maps may have taken the place.
  EXPECT_NE(permissions_of(address), "r-xp");
}

TEST(ImageLoader, TakesAnImageWithoutSitesAndImports) {
  Image image;
  image.header.site_count = 0;
  image.header.import_count = 0;
  LoadedImage loaded(image.bytes());
  EXPECT_TRUE(loaded.sites().empty());
}

TEST(ImageLoader, RefusesWhatIsTooShort) {
  std::vector<std::byte> bytes = Image().bytes();
  for (size_t length : {size_t{0}, size_t{1}, sizeof(CpuImageHeader) - 1}) {
    try {
      LoadedImage loaded({bytes.data(), length});
      FAIL() << length;
    } catch (const InternalError& error) {
      EXPECT_STREQ(error.what(), "machine code is damaged: it is too short");
    }
  }
}

TEST(ImageLoader, RefusesEveryTruncation) {
  std::vector<std::byte> bytes = Image().bytes();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(LoadedImage({bytes.data(), length}), InternalError) << length;
  bytes.resize(bytes.size() + 1);
  EXPECT_THROW(LoadedImage{bytes}, InternalError);
}

TEST(ImageLoader, RefusesAnotherFormat) {
  const char* message = "machine code is damaged: it is of another version";
  EXPECT_EQ(refusal([](Image& i) { i.header.magic ^= 1; }), message);
  EXPECT_EQ(refusal([](Image& i) { ++i.header.version; }), message);
  EXPECT_EQ(refusal([](Image& i) { i.header.kind = static_cast<CpuImageKind>(3); }), message);
}

TEST(ImageLoader, RefusesPartsThatDoNotLieWithinIt) {
  const char* message = "machine code is damaged: its parts do not lie within it";
  constexpr uint64_t kFar = uint64_t{1} << 63;
  const std::function<void(Image&)> damages[] = {
      [](Image& i) { --i.header.total_bytes; },
      [](Image& i) { ++i.header.total_bytes; },
      [](Image& i) { i.header.sites_offset = i.header.total_bytes; },
      [](Image& i) { i.header.sites_offset = kFar; },
      [](Image& i) { i.header.sites_offset += 4; },  // alignment of its 64-bit fields
      [](Image& i) { i.header.site_count = 0xffffffff; },
      [](Image& i) { i.header.paths_offset += 1; },
      [](Image& i) { i.header.import_slots_offset = i.header.total_bytes - 8; },
      [](Image& i) { i.header.import_slots_offset = kFar; },
      [](Image& i) { i.header.import_count = 0xffffffff; },
      [](Image& i) { i.header.address_count = 0xffffffff; },
      [](Image& i) { i.header.addresses_offset = kFar; },
      [](Image& i) { i.header.code_offset = i.header.total_bytes; },
      [](Image& i) { i.header.code_bytes = kFar; },
      [](Image& i) { i.header.run_offset = i.header.total_bytes; },
      [](Image& i) { i.header.run_offset = i.header.code_offset - 1; },
      [](Image& i) { i.header.run_offset = i.header.code_offset + i.header.code_bytes; },
      [](Image& i) { i.header.run_offset = kFar; },
  };
  for (size_t i = 0; i < std::size(damages); ++i) EXPECT_EQ(refusal(damages[i]), message) << i;
}

TEST(ImageLoader, RefusesFramesThatAreTooLarge) {
  for (uint64_t bytes : {kCpuPrivateMemoryLimit + 1, ~uint64_t{0}})
    EXPECT_EQ(refusal([&](Image& i) { i.header.frame_bytes = bytes; }),
              "machine code is damaged: its frames are too large");
}

TEST(ImageLoader, RefusesSitesThatPointOutside) {
  const char* message = "machine code is damaged: a site is not valid";
  EXPECT_EQ(refusal([](Image& i) { i.site.path_offset = 0xffffffff; }), message);
  EXPECT_EQ(refusal([](Image& i) { i.site.path_offset = 1000; }), message);
  EXPECT_EQ(refusal([](Image& i) { i.site.loop_depth = 2; }), message);  // more than max_loop_depth
  EXPECT_EQ(refusal([](Image& i) { i.site.loop_depth = 0xffffffff, i.header.max_loop_depth = 0xffffffff; }), message);
  // Nothing is combined where threads only wait.
  EXPECT_EQ(refusal([](Image& i) { i.site.combine_offset = i.header.code_offset; }), message);
  EXPECT_EQ(refusal([](Image& i) { i.site.exchange = CpuExchange{6}; }), message);
  for (CpuExchange exchange : {CpuExchange::kReduce, CpuExchange::kInclusiveScan, CpuExchange::kExclusiveScan}) {
    auto reduces = [&](Image& i) {
      i.site.exchange = exchange;
      i.site.width = 32;
      i.site.combine_offset = i.header.code_offset;
    };
    EXPECT_EQ(refusal(reduces), "nothing was thrown");
    auto refuses = [&](auto damage) { EXPECT_EQ(refusal([&](Image& i) { reduces(i), damage(i); }), message); };
    refuses([](Image& i) { i.site.combine_offset = i.header.total_bytes; });
    refuses([](Image& i) { i.site.combine_offset = 8; });  // no code
    for (uint32_t width : {0u, 3u, 64u}) refuses([&](Image& i) { i.site.width = width; });
  }
}

TEST(ImageLoader, RefusesImportsThatNobodyProvides) {
  const std::string message = "machine code calls a function that Kiln does not have: ";
  EXPECT_EQ(refusal([](Image& i) { i.names = std::string("memcpy\0system\0", 14); }), message + "system");
  EXPECT_EQ(refusal([](Image& i) { i.names = std::string("memcp\0\0floorf\0", 14); }), message + "memcp");
  EXPECT_EQ(refusal([](Image& i) { i.names = std::string("memcpy\0floorfx", 14); }).substr(0, message.size() + 7),
            message + "floorfx");
  EXPECT_EQ(refusal([](Image& i) { i.header.import_names_offset = i.header.code_offset; }),
            "machine code is damaged: its names do not lie within it");
}

TEST(ImageLoader, RefusesPartsThatOverlap) {
  // Where the loader would write its addresses over the header, the sites or the code.
  for (uint64_t slots : {uint64_t{0}, uint64_t{sizeof(CpuImageHeader)}, Image().header.code_offset})
    EXPECT_NE(refusal([&](Image& image) { image.header.import_slots_offset = slots; }), "nothing was thrown") << slots;
  EXPECT_NE(refusal([](Image& image) { image.header.sites_offset = 0; }), "nothing was thrown");
  EXPECT_NE(refusal([](Image& image) { image.header.paths_offset = image.header.sites_offset; }), "nothing was thrown");
  for (uint64_t names : {Image().header.code_offset + 1, Image().header.total_bytes, uint64_t{1} << 63})
    EXPECT_NE(refusal([&](Image& image) { image.header.import_names_offset = names; }), "nothing was thrown") << names;
}

}  // namespace
}  // namespace kiln
