// NVRTC, NVIDIA's compiler of CUDA text, as a library that is opened when it is needed.
//
// Nothing of CUDA is there when Kiln is built or linked: the few functions that are used are declared here. The library
// is part of a toolkit, of Python packages (nvidia-cuda-nvrtc), or of a program that has loaded it. Its file is looked
// for by name in a list of folders and not left to the loader, because the file identifies the compiler: machine code
// that is on disk is found without opening 140 MB. Where several are installed the first one serves, whatever their
// versions: any from 12.0 on compiles what Kiln gives it, for the GPUs that it knows.
//
// Beside it NVRTC needs libnvrtc-builtins.so, which it finds in its own folder (its run path is $ORIGIN).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

using NvrtcProgram = struct NvrtcProgramState*;

// The functions, named as NVIDIA's header names them. They return 0, or a code that GetErrorString explains.
struct NvrtcFunctions {
  int (*Version)(int* major, int* minor);
  const char* (*GetErrorString)(int code);
  int (*GetNumSupportedArchs)(int* count);
  int (*GetSupportedArchs)(int* architectures);
  int (*CreateProgram)(NvrtcProgram* program, const char* text, const char* name, int header_count,
                       const char* const* headers, const char* const* header_names);
  int (*DestroyProgram)(NvrtcProgram* program);
  int (*AddNameExpression)(NvrtcProgram program, const char* expression);
  int (*CompileProgram)(NvrtcProgram program, int option_count, const char* const* options);
  int (*GetLoweredName)(NvrtcProgram program, const char* expression, const char** name);
  int (*GetCUBINSize)(NvrtcProgram program, size_t* bytes);
  int (*GetCUBIN)(NvrtcProgram program, char* code);
  int (*GetPTXSize)(NvrtcProgram program, size_t* bytes);
  int (*GetPTX)(NvrtcProgram program, char* code);
  int (*GetProgramLogSize)(NvrtcProgram program, size_t* bytes);
  int (*GetProgramLog)(NvrtcProgram program, char* log);
  // From 13.1 on; else null: writes CUDA's headers, which the library has, into a folder.
  int (*InstallBundledHeaders)(const char* folder, unsigned flags, const char** error);
};

class NvrtcLibrary {
 public:
  /// Opens the first library that can be used. Throws MissingCompilerError, which names the places.
  static std::unique_ptr<const NvrtcLibrary> open();

  /// The file that open() tries first; opens nothing. Empty where only the loader may know one, or nobody does.
  static std::string first_file();

  const NvrtcFunctions& functions() const { return functions_; }
  const std::string& file() const { return file_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  /// The GPUs that it makes machine code for, ascending: 75, 80, 86, …
  const std::vector<int>& architectures() const { return architectures_; }

 private:
  NvrtcLibrary() = default;
  // Empty where it can be used, else why not.
  std::string load(const std::string& name);

  std::string file_;
  NvrtcFunctions functions_{};
  int major_ = 0;
  int minor_ = 0;
  std::vector<int> architectures_;
};

/// What stays the same in every process while the file does: its build ID. Empty where it has none.
std::string nvrtc_file_identity(const std::string& file);

/// Where CUDA's headers lie that were installed with the library in this file; empty where none were.
std::vector<std::string> cuda_header_folders(const std::string& nvrtc_file);
/// Those of any toolkit on this machine.
std::vector<std::string> toolkit_header_folders();
/// What tells these headers from those of another version, as far as the sizes of files do that versions change. Empty
/// for no folders.
std::string cuda_header_identity(const std::vector<std::string>& folders);

}  // namespace kiln
