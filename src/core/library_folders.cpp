#include "core/library_folders.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/fork_guard.h"

namespace kiln {
namespace {

struct Folders {
  std::mutex mutex;
  std::vector<std::string> names;
};

Folders& folders() {
  static Folders* instance = new Folders;
  return *instance;
}

}  // namespace

void add_library_folder(std::string folder) {
  ForkGuard guard;
  std::lock_guard lock(folders().mutex);
  std::vector<std::string>& names = folders().names;
  if (std::find(names.begin(), names.end(), folder) == names.end()) names.push_back(std::move(folder));
}

std::vector<std::string> library_folders() {
  ForkGuard guard;
  std::lock_guard lock(folders().mutex);
  return folders().names;
}

}  // namespace kiln
