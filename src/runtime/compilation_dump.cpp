#include "runtime/compilation_dump.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& folder, const std::string& reason) {
  throw ValueError(
      concat("environment variable KILN_DUMP_DIR names a folder that cannot be written to: `", folder, "`: ", reason));
}

// A kernel's name may hold anything.
std::string as_file_name(const std::string& name) {
  std::string safe = name.substr(0, 64);
  for (char& c : safe)
    if (!isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  return safe;
}

fs::path make_folder(const std::string& folder, const std::string& name) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse(folder, error.message());
  // Others may write there too: who makes the folder has it.
  for (unsigned n = 0;; ++n) {
    fs::path path = fs::path(folder) / concat(name, "-", n);
    if (fs::create_directory(path, error)) return path;
    if (error) refuse(folder, error.message());
  }
}

void write(const std::string& folder, const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) refuse(folder, std::strerror(errno));
}

}  // namespace

void dump_compilation(const std::string& folder, const KernelUnit& unit, const CompileResult& result) {
  fs::path path = make_folder(folder, as_file_name(unit.name));
  write(folder, path / "generated.metal", result.report.generated_source);
  unsigned number = 1;
  for (const CompileStage& stage : result.stages) {
    const char* ending = stage.name == "assembly" ? ".s" : ".ll";
    write(folder, path / concat(number < 10 ? "0" : "", number, "-", stage.name, ending), stage.text);
    ++number;
  }
  write(folder, path / "log.txt", result.report.log);
  write(folder, path / "engine.txt", concat(result.engine, ": ", result.engine_reason, "\n"));
}

}  // namespace kiln
