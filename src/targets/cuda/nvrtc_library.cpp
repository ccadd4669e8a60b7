#include "targets/cuda/nvrtc_library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "core/build_id.h"
#include "core/compiler.h"
#include "core/library_folders.h"
#include "core/settings.h"
#include "core/text.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNvrtcNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
constexpr int kOldestMajor = 12;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Folders of toolkits, the newest first.
std::vector<std::string> toolkits() {
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root && *root) roots.emplace_back(root);
  std::vector<std::string> installed;
  std::error_code error;
  for (fs::directory_iterator entry("/usr/local", error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with("cuda-")) installed.push_back(entry->path().string());
  std::sort(installed.rbegin(), installed.rend());
  roots.emplace_back("/usr/local/cuda");
  roots.insert(roots.end(), installed.begin(), installed.end());
  return roots;
}

// Where the library is looked for, in this order. What the user says goes before what is installed.
std::vector<std::string> folders() {
  std::vector<std::string> result;
  auto add_toolkit = [&](const std::string& root) {
    result.push_back(root + "/lib64");
    result.push_back(root + "/targets/x86_64-linux/lib");
  };
  std::vector<std::string> roots = toolkits();
  size_t named = static_cast<size_t>(std::find(roots.begin(), roots.end(), "/usr/local/cuda") - roots.begin());
  for (size_t i = 0; i < named; ++i) add_toolkit(roots[i]);
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    std::string_view rest(path);
    while (!rest.empty()) {
      size_t colon = std::min(rest.find(':'), rest.size());
      if (colon > 0) result.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  for (std::string& folder : library_folders()) result.push_back(std::move(folder));
  for (size_t i = named; i < roots.size(); ++i) add_toolkit(roots[i]);
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"}) result.emplace_back(folder);
  return result;
}

std::string file_of_handle(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name) return {};
  return map->l_name;
}

// The one that the program has loaded. Asked of the list of what is loaded: `dlopen` that loads nothing looks into each
// folder of the loader's for a name that it doesn't know, which takes longer than finding a kernel on disk.
std::string loaded_file() {
  std::array<std::string, std::size(kNvrtcNames)> files;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto& found = *static_cast<decltype(files)*>(data);
        std::string_view path = object->dlpi_name ? object->dlpi_name : "";
        std::string_view name = path.substr(path.rfind('/') + 1);
        if (!name.starts_with("libnvrtc.so")) return 0;
        for (size_t i = 0; i < found.size(); ++i) {
          bool has_version = i + 1 < found.size();  // of the last name any version would do, and an old one does not
          if (found[i].empty() &&
              (name == kNvrtcNames[i] || (has_version && name.starts_with(concat(kNvrtcNames[i], "."))))) {
            found[i] = path;
            break;
          }
        }
        return 0;
      },
      &files);
  auto first = std::ranges::find_if(files, [](const std::string& file) { return !file.empty(); });
  return first == files.end() ? std::string() : *first;
}

// Empty: none.
std::string file_in(const std::string& folder) {
  for (const char* name : kNvrtcNames)
    if (std::string file = concat(folder, "/", name); exists(file)) return file;
  return {};
}

// The first of the folders that has CUDA's headers, and that of its C++ libraries where it is another one.
std::vector<std::string> headers_in(const std::vector<fs::path>& places) {
  std::error_code error;
  for (const fs::path& place : places) {
    if (!fs::exists(place / "cuda_fp16.h", error) || !fs::exists(place / "cooperative_groups.h", error)) continue;
    std::vector<std::string> result = {place.lexically_normal().string()};
    for (const fs::path& library : {place / "cccl", place / "../../cuda_cccl/include"})
      if (fs::exists(library / "cuda/std", error)) result.push_back(library.lexically_normal().string());
    return result;
  }
  return {};
}

constexpr const char* kHowToGetNvrtc =
    "`pip install nvidia-cuda-nvrtc` brings it, as a CUDA toolkit does; KILN_NVRTC names its file.";

}  // namespace

std::string NvrtcLibrary::first_file() {
  if (!settings().nvrtc_path.empty()) return settings().nvrtc_path;
  if (std::string file = loaded_file(); !file.empty()) return file;
  for (const std::string& folder : folders())
    if (std::string file = file_in(folder); !file.empty()) return file;
  return {};
}

std::unique_ptr<const NvrtcLibrary> NvrtcLibrary::open() {
  std::unique_ptr<NvrtcLibrary> library(new NvrtcLibrary);
  if (const std::string& file = settings().nvrtc_path; !file.empty()) {
    if (std::string reason = library->load(file); !reason.empty())
      throw MissingCompilerError(concat("NVRTC, which compiles CUDA bodies, cannot be used: ", printable(reason),
                                        ". KILN_NVRTC names that file."));
    return library;
  }
  if (std::string file = loaded_file(); !file.empty() && library->load(file).empty()) return library;
  std::vector<std::string> places = folders(), reasons;
  for (const std::string& folder : places) {
    std::string file = file_in(folder);
    if (file.empty()) continue;
    std::string reason = library->load(file);
    if (reason.empty()) return library;
    reasons.push_back(std::move(reason));
  }
  // What the loader knows beside them.
  for (const char* name : kNvrtcNames)
    if (library->load(name).empty()) return library;
  if (!reasons.empty())
    throw MissingCompilerError(concat(
        "NVRTC, which compiles CUDA bodies, cannot be used: ", printable(join(reasons, "; ")), ". ", kHowToGetNvrtc));
  throw MissingCompilerError(concat("NVRTC, which compiles CUDA bodies, is missing: there is no libnvrtc.so.13 or ",
                                    "libnvrtc.so.12 in ", printable(join(places, ", ")),
                                    ", nor where the loader looks. ", kHowToGetNvrtc));
}

std::string NvrtcLibrary::load(const std::string& name) {
  // Never closed: it keeps state for as long as the process lives.
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return reason ? reason : name + " cannot be opened";
  }
  std::string missing;
  auto find = [&](auto& function, const char* symbol, bool is_needed = true) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (!function && is_needed && missing.empty()) missing = symbol;
  };
  NvrtcFunctions found{};
  find(found.Version, "nvrtcVersion");
  find(found.GetErrorString, "nvrtcGetErrorString");
  find(found.GetNumSupportedArchs, "nvrtcGetNumSupportedArchs");
  find(found.GetSupportedArchs, "nvrtcGetSupportedArchs");
  find(found.CreateProgram, "nvrtcCreateProgram");
  find(found.DestroyProgram, "nvrtcDestroyProgram");
  find(found.AddNameExpression, "nvrtcAddNameExpression");
  find(found.CompileProgram, "nvrtcCompileProgram");
  find(found.GetLoweredName, "nvrtcGetLoweredName");
  find(found.GetCUBINSize, "nvrtcGetCUBINSize");
  find(found.GetCUBIN, "nvrtcGetCUBIN");
  find(found.GetPTXSize, "nvrtcGetPTXSize");
  find(found.GetPTX, "nvrtcGetPTX");
  find(found.GetProgramLogSize, "nvrtcGetProgramLogSize");
  find(found.GetProgramLog, "nvrtcGetProgramLog");
  find(found.InstallBundledHeaders, "nvrtcInstallBundledHeaders", /*is_needed=*/false);
  if (found.Version && found.Version(&major_, &minor_) == 0 && major_ < kOldestMajor)
    return concat(name, " is NVRTC ", major_, ".", minor_, ", and Kiln needs ", kOldestMajor, ".0 or later");
  if (!missing.empty()) return concat(name, " has no function ", missing);

  functions_ = found;
  file_ = file_of_handle(handle);
  if (file_.empty()) file_ = name;
  int count = 0;
  if (found.GetNumSupportedArchs(&count) == 0 && count > 0) {
    architectures_.resize(static_cast<size_t>(count));
    if (found.GetSupportedArchs(architectures_.data()) != 0) architectures_.clear();
    std::sort(architectures_.begin(), architectures_.end());
  }
  return {};
}

std::string nvrtc_file_identity(const std::string& file) { return build_id_of_file(file); }

std::vector<std::string> cuda_header_folders(const std::string& nvrtc_file) {
  std::error_code error;
  fs::path folder = fs::canonical(nvrtc_file, error).parent_path();
  // A toolkit, and packages for CUDA 13; packages for CUDA 12, which have a folder for each library; a distribution's
  // toolkit in /usr.
  return headers_in({folder / "../include", folder / "../../cuda_runtime/include", folder / "../../include"});
}

std::vector<std::string> toolkit_header_folders() {
  std::vector<fs::path> places;
  for (const std::string& root : toolkits()) places.emplace_back(fs::path(root) / "include");
  return headers_in(places);
}

std::string cuda_header_identity(const std::vector<std::string>& folders) {
  std::string sizes;
  for (const char* name : {"cuda_runtime_api.h", "cuda_fp16.hpp", "cuda_bf16.hpp", "cooperative_groups.h",
                           "cuda/std/__cccl/version.h", "cuda/std/__cccl/diagnostic.h"})
    for (const std::string& folder : folders) {  // the first that has it is what a compiler finds
      std::error_code error;
      uintmax_t bytes = fs::file_size(fs::path(folder) / name, error);
      if (error) continue;
      sizes += concat(sizes.empty() ? "" : ".", bytes);
      break;
    }
  return sizes;
}

}  // namespace kiln
