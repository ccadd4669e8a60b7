// Folders of libraries that are installed beside a program where the loader does not look, as those of Python's
// packages are. Whoever knows of some says so; whoever opens a library of another vendor looks there.
#pragma once

#include <string>
#include <vector>

namespace kiln {

/// Adds a folder behind those that are known. One that is known changes nothing.
void add_library_folder(std::string folder);

/// In the order in which they were added.
std::vector<std::string> library_folders();

}  // namespace kiln
