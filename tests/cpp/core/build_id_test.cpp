// What identifies a compiler without opening it.
#include "core/build_id.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/text.h"
#include "runtime/compiler_library.h"

namespace kiln {
namespace {

class BuildId : public testing::Test {
 protected:
  ~BuildId() override { std::filesystem::remove(file_); }

  // An object of a header, one part and notes.
  struct Parts {
    Elf64_Ehdr header{};
    Elf64_Phdr part{};
    std::string notes;
  };

  static std::string note(uint32_t type, const std::string& name, const std::string& content) {
    Elf64_Nhdr header{static_cast<Elf64_Word>(name.size() + 1), static_cast<Elf64_Word>(content.size()), type};
    std::string text(reinterpret_cast<const char*>(&header), sizeof header);
    auto add = [&](std::string part) { text += part.append((4 - part.size() % 4) % 4, '\0'); };
    add(name + '\0');
    add(content);
    return text;
  }

  static Parts parts(const std::string& notes) {
    Parts result;
    std::memcpy(result.header.e_ident, ELFMAG, SELFMAG);
    result.header.e_ident[EI_CLASS] = ELFCLASS64;
    result.header.e_ident[EI_DATA] = ELFDATA2LSB;
    result.header.e_phentsize = sizeof(Elf64_Phdr);
    result.header.e_phnum = 1;
    result.header.e_phoff = sizeof(Elf64_Ehdr);
    result.part.p_type = PT_NOTE;
    result.part.p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
    result.part.p_filesz = notes.size();
    result.part.p_align = 4;
    result.notes = notes;
    return result;
  }

  std::string id_of(const Parts& parts) {
    std::ofstream out(file_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&parts.header), sizeof parts.header);
    out.write(reinterpret_cast<const char*>(&parts.part), sizeof parts.part);
    out << parts.notes;
    out.close();
    return build_id_of_file(file_);
  }

  const std::string file_ = concat(std::filesystem::temp_directory_path().string(), "/kiln-build-id-", getpid());
};

TEST_F(BuildId, IsReadFromItsNote) {
  std::string id("\x01\x23\xab\xff", 4);
  EXPECT_EQ(id_of(parts(note(NT_GNU_BUILD_ID, "GNU", id))), "0123abff");
  // Behind others, one with a name of other length and one of another owner.
  EXPECT_EQ(id_of(parts(note(1, "Linker", "abcde") + note(NT_GNU_BUILD_ID, "XYZ", "1234") +
                        note(NT_GNU_BUILD_ID, "GNU", id))),
            "0123abff");
}

TEST_F(BuildId, IsNoneWhereNothingSaysIt) {
  EXPECT_EQ(build_id_of_file("/nowhere"), "");
  EXPECT_EQ(build_id_of_file("/"), "");
  EXPECT_EQ(build_id_of_file("/proc/self/cmdline"), "");
  EXPECT_EQ(id_of(parts("")), "");
  EXPECT_EQ(id_of(parts(note(1, "GNU", "abcd"))), "");
}

TEST_F(BuildId, IsNoneWhereSizesDoNotFit) {
  const std::string good = note(NT_GNU_BUILD_ID, "GNU", "abcd");
  for (size_t size = 0; size < good.size(); ++size) EXPECT_EQ(id_of(parts(good.substr(0, size))), "") << size;
  for (size_t at : {0, 4})
    for (uint32_t size : {100u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu}) {
      std::string notes = good;
      std::memcpy(notes.data() + at, &size, 4);
      EXPECT_EQ(id_of(parts(notes)), "") << at << " " << size;
    }
  for (uint64_t offset : {uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 8}) {
    Parts far = parts(good);
    far.part.p_offset = offset;
    EXPECT_EQ(id_of(far), "");
    far = parts(good);
    far.header.e_phoff = offset;
    EXPECT_EQ(id_of(far), "");
    far = parts(good);
    far.part.p_filesz = offset;
    EXPECT_EQ(id_of(far), "");
  }
  Parts many = parts(good);
  many.header.e_phnum = 0xffff;
  EXPECT_EQ(id_of(many), "");
}

TEST_F(BuildId, OfTheFileIsThatOfWhatIsLoaded) {
  CompilerLibrary library;
  std::optional<CompilerIdentity> before = library.identity();
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->lasting);
  EXPECT_EQ(dlopen(CompilerLibrary::path().c_str(), RTLD_NOLOAD | RTLD_LAZY), nullptr) << "asking has opened it";
  library.get();
  EXPECT_EQ(library.identity()->text, before->text);
  EXPECT_EQ(before->text.find("Kiln 0."), 0u) << before->text;
  // 160 bits.
  EXPECT_EQ(before->text.size() - before->text.rfind(' ') - 1, 40u) << before->text;
}

}  // namespace
}  // namespace kiln
