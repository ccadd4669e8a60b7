#include "core/library_folders.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include "core/fork_guard.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

struct Folders {
  std::mutex mutex;
  std::vector<std::string> known;  // of packages
};

Folders& folders() {
  static Folders* instance = new Folders;
  return *instance;
}

std::vector<std::string> libraries_of_packages(const std::string& folder) {
  std::vector<std::string> libraries;
  std::error_code error;
  for (fs::directory_iterator package(folder, error), end; !error && package != end; package.increment(error)) {
    std::error_code is_none;
    fs::path library = package->path() / "lib";
    if (fs::is_directory(library, is_none)) libraries.push_back(library.string());
  }
  std::sort(libraries.begin(), libraries.end());
  return libraries;
}

}  // namespace

void add_package_folder(std::string folder) {
  ForkGuard guard;
  std::lock_guard lock(folders().mutex);
  std::vector<std::string>& known = folders().known;
  if (std::find(known.begin(), known.end(), folder) == known.end()) known.push_back(std::move(folder));
}

std::vector<std::string> library_folders() {
  std::vector<std::string> known;
  {
    ForkGuard guard;
    std::lock_guard lock(folders().mutex);
    known = folders().known;
  }
  std::vector<std::string> result;
  for (const std::string& folder : known) {
    std::vector<std::string> libraries = libraries_of_packages(folder);
    result.insert(result.end(), libraries.begin(), libraries.end());
  }
  return result;
}

}  // namespace kiln
