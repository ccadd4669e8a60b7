#include "core/library_folders.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace kiln {
namespace {

namespace fs = std::filesystem;
using Folders = std::vector<std::string>;

// The process's list begins with what other tests have added.
Folders added_since(size_t before) {
  Folders all = library_folders();
  return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
}

TEST(LibraryFolders, AreThoseOfPackagesThatHaveOneByName) {
  std::string root = testing::TempDir() + "kiln-packages-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  for (const char* folder : {"nvrtc/lib", "cublas/lib", "headers/include"})
    fs::create_directories(fs::path(root) / folder);
  std::ofstream(root + "/file");
  size_t before = library_folders().size();

  add_package_folder(root);
  add_package_folder(root);
  EXPECT_EQ(added_since(before), (Folders{root + "/cublas/lib", root + "/nvrtc/lib"}));

  // What is installed later is found.
  fs::create_directories(fs::path(root) / "another/lib");
  EXPECT_EQ(added_since(before), (Folders{root + "/another/lib", root + "/cublas/lib", root + "/nvrtc/lib"}));
  fs::remove_all(root);
  EXPECT_EQ(added_since(before), Folders{});
}

}  // namespace
}  // namespace kiln
