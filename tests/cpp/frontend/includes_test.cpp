// Kernels in files (docs/language.md 1.7): which names a text includes, and which files they mean.
#include "frontend/includes.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kiln/error.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (const IncludeName& name : include_names(text, TokenList(text)))
    names.emplace_back(text.substr(name.begin, name.end - name.begin));
  return names;
}

TEST(IncludeNames, AreThoseOfDirectives) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_in("#include \"a.h\"\n  #  include <b/c.h> // d\n#import \"e\""),
            (Names{"\"a.h\"", "<b/c.h>", "\"e\""}));
  EXPECT_EQ(names_in("#if __has_include(\"a.h\") && __has_include ( <b> )\n#endif"), (Names{"\"a.h\"", "<b>"}));
  EXPECT_EQ(names_in("#include <a//b> \n#include \"c//d\"\n#inc\\\nlude \"e\""),
            (Names{"<a//b>", "\"c//d\"", "\"e\""}));
  EXPECT_EQ(names_in("#/* */include/* */\"a\""), (Names{"\"a\""}));
}

TEST(IncludeNames, AreNothingElse) {
  for (std::string_view text :
       {"// #include \"a\"", "/*\n#include \"a\"\n*/", "R\"(\n#include \"a\"\n)\"", "x #include \"a\"", "include \"a\"",
        "#include A", "#include", "#include \"a", "#include <a\n>", "#define include \"a\"", "#pragma include \"a\"",
        "#include \"a\\\nb\"", "#include <a\\\nb>", "__has_include(\"a\")", "#include \n\"a\""})
    EXPECT_TRUE(names_in(text).empty()) << text;
}

// A folder with files; the current folder while it lives.
class KernelFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kiln-includes-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    before_ = fs::current_path();
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  static void write(const std::string& path, std::string_view text) {
    if (fs::path(path).has_parent_path()) fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  KernelFiles read(TextArgument source, TextArgument header = {}, std::vector<std::string> include_dirs = {}) {
    source_ = std::move(source);
    header_ = std::move(header);
    return read_kernel_files("metal_kernel", source_, header_, std::move(include_dirs));
  }

  static std::vector<std::string> paths(const KernelFiles& files) {
    std::vector<std::string> paths;
    for (const IncludedFile& file : files.included) paths.push_back(file.path);
    return paths;
  }

  std::string error(TextArgument source, TextArgument header = {}) {
    try {
      read(std::move(source), std::move(header));
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  }

  std::string folder_;
  fs::path before_;
  TextArgument source_, header_;
};

using Paths = std::vector<std::string>;

TEST_F(KernelFilesTest, TextReadsNothing) {
  write("a.h", "");
  std::string text = "#include \"a.h\"\n#include \"" + folder_ + "/a.h\"\n";
  EXPECT_EQ(read({text}, {text}), KernelFiles());
}

TEST_F(KernelFilesTest, HoldBodyAndHeader) {
  write("k/body.metal", "y[0] = 1;");
  write("k/head.h", "\xef\xbb\xbfint a;\r\n");
  KernelFiles files = read({{}, "k/body.metal"}, {{}, "k/head.h"});
  EXPECT_EQ(source_.text, "y[0] = 1;");
  EXPECT_EQ(header_.text, "int a;\r\n");  // without the byte order mark
  EXPECT_EQ(files.source_path, "k/body.metal");
  EXPECT_EQ(files.header_path, "k/head.h");
}

TEST_F(KernelFilesTest, AreFoundBesideTheFileThatIncludesThem) {
  write("k/body.metal", "#include \"a.h\"\n#include \"sub/b.h\"\n");
  write("k/a.h", "a");
  write("k/sub/b.h", "#include \"a.h\"\n#include \"../a.h\"\n");
  write("k/sub/a.h", "sub a");
  KernelFiles files = read({{}, "k/body.metal"});
  EXPECT_EQ(paths(files), (Paths{"k/a.h", "k/sub/b.h", "k/sub/a.h"}));
  EXPECT_EQ(files.source_inclusions, (std::vector<Inclusion>{{9, 14, 0}, {24, 33, 1}}));
  EXPECT_EQ(files.included[1].inclusions, (std::vector<Inclusion>{{9, 14, 2}, {24, 32, 0}}));
  EXPECT_EQ(with_included_names(source_.text, files.source_inclusions),
            "#include \"kiln_include_0\"\n#include \"kiln_include_1\"\n");
}

TEST_F(KernelFilesTest, HeaderAndBodyHaveTheirOwnFolders) {
  write("one/body.metal", "#include \"a.h\"\n");
  write("two/head.h", "#include \"a.h\"\n");
  write("one/a.h", "1");
  write("two/a.h", "2");
  KernelFiles files = read({{}, "one/body.metal"}, {{}, "two/head.h"});
  EXPECT_EQ(paths(files), (Paths{"two/a.h", "one/a.h"}));
  EXPECT_EQ(files.source_inclusions[0].file, 1u);
  EXPECT_EQ(files.header_inclusions[0].file, 0u);
}

TEST_F(KernelFilesTest, AreFoundInTheFoldersInTheirOrder) {
  write("one/a.h", "1");
  write("two/a.h", "2");
  write("two/b.h", "2");
  write("a.h", "0");
  EXPECT_EQ(paths(read({"#include \"a.h\"\n#include <b.h>"}, {}, {"one", "two"})), (Paths{"one/a.h", "two/b.h"}));
  EXPECT_EQ(paths(read({"#include \"a.h\""}, {}, {"nowhere", "two", "one"})), (Paths{"two/a.h"}));
  // "…" is looked for beside the file first, <…> is not.
  write("body.metal", "#include \"a.h\"\n#include <a.h>\n");
  EXPECT_EQ(paths(read({{}, "body.metal"}, {}, {"one"})), (Paths{"a.h", "one/a.h"}));
}

TEST_F(KernelFilesTest, AFileIsOneByWhateverPath) {
  write("body.metal", "#include \"a.h\"\n#include \"./a.h\"\n#include \"link.h\"\n#include \"" + folder_ + "/a.h\"\n");
  write("a.h", "");
  fs::create_symlink("a.h", "link.h");
  KernelFiles files = read({{}, "body.metal"});
  EXPECT_EQ(paths(files), (Paths{"a.h"}));
  EXPECT_EQ(files.source_inclusions.size(), 4u);
}

TEST_F(KernelFilesTest, MayIncludeOneAnother) {
  write("body.metal", "#include \"a.h\"\n");
  write("a.h", "#include \"b.h\"\n#include \"a.h\"\n");
  write("b.h", "#include \"a.h\"\n#include \"body.metal\"\n");
  EXPECT_EQ(paths(read({{}, "body.metal"})), (Paths{"a.h", "b.h", "body.metal"}));
}

TEST_F(KernelFilesTest, MetalsOwnHeadersAreNotLookedFor) {
  write("dir/metal_stdlib", "");
  write("dir/metal_mine.h", "");
  EXPECT_EQ(paths(read({"#include <metal_stdlib>\n#include <simd/simd.h>\n#include \"metal_mine.h\""}, {}, {"dir"})),
            (Paths{"dir/metal_mine.h"}));
}

TEST_F(KernelFilesTest, WhatIsMissingIsLeftToTheCompiler) {
  write("body.metal", "#include \"missing.h\"\n#include \"folder\"\n#include \"\"\n#include \"body.metal/a.h\"\n");
  fs::create_directory("folder");
  EXPECT_TRUE(read({{}, "body.metal"}).included.empty());
}

TEST_F(KernelFilesTest, ErrorsNameTheArgument) {
  fs::create_directory("folder");
  write("latin", "// gr\xf6\xdf");
  ASSERT_EQ(mkfifo("pipe", 0600), 0);
  std::string begin = "[metal_kernel] Expected `source` to be ";
  EXPECT_EQ(error({{}, "k.metal"}), begin + "a file but there is no k.metal.");
  EXPECT_EQ(error({{}, "folder"}), begin + "a file but folder is a folder.");
  EXPECT_EQ(error({{}, ""}), begin + "a file but there is no .");
  EXPECT_EQ(error({{}, "pipe"}), begin + "a file but pipe is a device or a pipe.");
  EXPECT_EQ(error({{}, "latin"}), begin + "a file of UTF-8 but byte 5 of latin is not.");
  EXPECT_EQ(error({"", {}}, {{}, "k.h"}), "[metal_kernel] Expected `header` to be a file but there is no k.h.");
  EXPECT_EQ(error({{}, std::string("a\0b", 3)}), begin + "a file but the path a\u2400b has a NUL.");
  EXPECT_EQ(error({{}, "\xff"}), "[metal_kernel] Expected the path of `source` to be UTF-8.");
}

TEST_F(KernelFilesTest, WhatCannotBeReadIsAnErrorOfItsLine) {
  write("k/latin.h", "// gr\xf6\xdf");
  write("k/body.metal", "// body\r\n\t#include \"latin.h\"  // größer\r\nint a;");
  EXPECT_EQ(error({{}, "k/body.metal"}),
            "[metal_kernel] An included file cannot be used.\n"
            "k/body.metal:2:11: error: expected 'latin.h' to be a file of UTF-8 but byte 5 of k/latin.h is not\n"
            "  \t#include \"latin.h\"  // größer\n"
            "  \t         ^");
  if (geteuid() == 0) return;  // to whom nothing is forbidden
  write("k/latin.h", "");
  fs::permissions("k/latin.h", fs::perms::none);
  EXPECT_EQ(
      error({{}, "k/body.metal"}),
      "[metal_kernel] An included file cannot be used.\n"
      "k/body.metal:2:11: error: expected 'latin.h' to be a file that can be read but k/latin.h cannot: Permission "
      "denied\n"
      "  \t#include \"latin.h\"  // größer\n"
      "  \t         ^");
}

TEST_F(KernelFilesTest, TogetherHaveALimit) {
  std::string half(kMostFileBytes / 2, ' ');
  write("body.metal", "#include \"a.h\"\n#include \"a2.h\"\n#include \"b.h\"\n");
  write("a.h", half);
  fs::create_hard_link("a.h", "a2.h");  // counts once
  write("b.h", "");
  EXPECT_EQ(read({{}, "body.metal"}).included.size(), 2u);
  write("b.h", half);
  EXPECT_EQ(error({{}, "body.metal"}),
            "[metal_kernel] An included file cannot be used.\n"
            "body.metal:3:10: error: expected 'b.h' to be a file that makes, with all others of the kernel, at most "
            "16777216 bytes but b.h is larger\n"
            "  #include \"b.h\"\n"
            "           ^");
  write("body.metal", half + half + " ");
  EXPECT_EQ(error({{}, "body.metal"}),
            "[metal_kernel] Expected `source` to be a file that makes, with all others of the kernel, at most 16777216 "
            "bytes but body.metal is larger.");
}

}  // namespace
}  // namespace kiln
