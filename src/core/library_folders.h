// Folders of libraries that are installed beside a program where the loader does not look, as those of Python's
// packages are. Whoever knows of some says so; whoever opens a library of another vendor looks there.
#pragma once

#include <string>
#include <vector>

namespace kiln {

/// Adds each `lib` of the packages in a folder, behind those that are known. A folder that is known changes nothing. It
/// is looked into when the libraries' folders are asked for: that takes longer than finding a kernel on disk, which
/// mostly needs none of them.
void add_package_folder(std::string folder);

/// In the order in which they were added, those of packages by their names.
std::vector<std::string> library_folders();

}  // namespace kiln
