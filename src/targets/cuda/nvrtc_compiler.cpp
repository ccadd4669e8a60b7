#include "targets/cuda/nvrtc_compiler.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fork_guard.h"
#include "core/gpu_image.h"
#include "core/sha256.h"
#include "core/text.h"
#include "targets/cuda/device_text.h"
#include "targets/cuda/nvrtc_diagnostics.h"
#include "targets/cuda/nvrtc_library.h"

namespace kiln {
namespace {

constexpr int kCompilationFailed = 6;  // NVRTC_ERROR_COMPILATION
constexpr int kInvalidOption = 5;      // NVRTC_ERROR_INVALID_OPTION

constexpr const char* kPrefixFile = "kiln.cuh";  // what stands before the unit's text

constexpr const char* kHowToGetHeaders =
    "CUDA's headers are not installed: `pip install nvidia-cuda-runtime nvidia-cuda-cccl` brings those of CUDA 13, "
    "`pip install nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12` those of CUDA 12, a CUDA toolkit has them";

// What a GPU is compiled for: "sm_90", or "compute_90" where NVRTC does not know a newer one.
struct Architecture {
  std::string option;
  GpuCodeKind kind = GpuCodeKind::kCubin;
};

// Empty where NVRTC knows nothing so old. "sm_90a": for this GPU alone, with all that it has.
std::optional<Architecture> choose_architecture(const NvrtcLibrary& nvrtc, std::string_view gpu) {
  std::string_view digits = gpu.substr(std::min(gpu.find('_') + 1, gpu.size()));
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const std::vector<int>& known = nvrtc.architectures();
  if (std::binary_search(known.begin(), known.end(), number)) return Architecture{std::string(gpu)};
  auto newer = std::upper_bound(known.begin(), known.end(), number);
  if (newer == known.begin()) return std::nullopt;
  return Architecture{concat("compute_", *(newer - 1)), GpuCodeKind::kPtx};
}

// A program, destroyed at the end of its scope.
class Program {
 public:
  Program(const NvrtcFunctions& nvrtc, const std::string& prefix, const KernelUnit& unit) : nvrtc_(nvrtc) {
    std::string text = concat(prefix, "#line 1 \"", kUnitFile, "\"\n", with_included_names(unit.text, unit.inclusions));
    std::vector<std::string> names, texts;
    for (size_t i = 0; i < unit.included_files.size(); ++i) {
      const IncludedFile& file = unit.included_files[i];
      names.push_back(included_name(i));
      texts.push_back(concat("#line ", unit.source_map.included_first_lines[i], " \"", kUnitFile, "\"\n",
                             with_included_names(file.text, file.inclusions)));
    }
    auto pointers_to = [](const std::vector<std::string>& strings) {
      std::vector<const char*> pointers;
      for (const std::string& string : strings) pointers.push_back(string.c_str());
      return pointers;
    };
    // NVRTC copies them all.
    error_ = nvrtc_.CreateProgram(&program_, text.c_str(), kPrefixFile, static_cast<int>(names.size()),
                                  pointers_to(texts).data(), pointers_to(names).data());
  }
  ~Program() {
    if (program_) nvrtc_.DestroyProgram(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // 0, or the first error.
  int compile(const std::string& entry, const std::vector<std::string>& options) {
    if (error_ == 0) error_ = nvrtc_.AddNameExpression(program_, entry.c_str());
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    if (error_ == 0) error_ = nvrtc_.CompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
    return error_;
  }

  std::string log() const {
    size_t size = 0;
    if (!program_ || nvrtc_.GetProgramLogSize(program_, &size) != 0 || size <= 1) return {};
    std::string text(size, '\0');
    if (nvrtc_.GetProgramLog(program_, text.data()) != 0) return {};
    text.resize(size - 1);
    return text;
  }

  std::string lowered_name(const std::string& entry) const {
    const char* name = nullptr;
    return nvrtc_.GetLoweredName(program_, entry.c_str(), &name) == 0 && name ? name : std::string();
  }

  std::vector<char> code(GpuCodeKind kind) const {
    auto size_of = kind == GpuCodeKind::kCubin ? nvrtc_.GetCUBINSize : nvrtc_.GetPTXSize;
    auto copy = kind == GpuCodeKind::kCubin ? nvrtc_.GetCUBIN : nvrtc_.GetPTX;
    size_t size = 0;
    if (size_of(program_, &size) != 0) return {};
    std::vector<char> bytes(size);
    if (copy(program_, bytes.data()) != 0) return {};
    return bytes;
  }

 private:
  const NvrtcFunctions& nvrtc_;
  NvrtcProgram program_ = nullptr;
  int error_ = 0;
};

std::vector<std::byte> write_image(const KernelUnit& unit, GpuCodeKind kind, const std::string& entry,
                                   const std::vector<char>& code) {
  GpuImageHeader header{};
  header.magic = kGpuImageMagic;
  header.version = kGpuImageVersion;
  header.kind = kind;
  header.block_bytes = gpu_block_layout(unit).bytes;
  header.entry_offset = sizeof header;
  header.code_offset = (header.entry_offset + entry.size() + 1 + 15) / 16 * 16;
  header.code_bytes = code.size();
  header.total_bytes = header.code_offset + code.size();
  std::vector<std::byte> image(header.total_bytes);
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + header.entry_offset, entry.c_str(), entry.size() + 1);
  std::memcpy(image.data() + header.code_offset, code.data(), code.size());
  return image;
}

// All but where to find headers and what GPU it is for.
std::vector<std::string> options_of(MathMode math_mode) {
  // Profilers and compute-sanitizer name lines by it; the code is the same.
  // As nvcc has it, `__int128` is a type.
  std::vector<std::string> options = {"--generate-line-info", "--device-int128"};
  if (math_mode == MathMode::kFast) options.emplace_back("--use_fast_math");
  return options;
}

std::vector<std::string> all_options() {
  std::vector<std::string> all;
  for (MathMode mode : {MathMode::kSafe, MathMode::kRelaxed, MathMode::kFast})
    for (std::string& option : options_of(mode)) all.push_back(std::move(option));
  return all;
}

class NvrtcCompiler : public Compiler {
 public:
  explicit NvrtcCompiler(std::string header_folder) : header_folder_(std::move(header_folder)) {}

  CompileResult compile(const CompileRequest& request) override;
  std::string identity() const override;

 private:
  const NvrtcLibrary& library() const;
  std::vector<std::string> header_folders(const NvrtcLibrary& nvrtc) const;

  const std::string header_folder_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const NvrtcLibrary> library_;
};

const NvrtcLibrary& NvrtcCompiler::library() const {
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  if (!library_) library_ = NvrtcLibrary::open();
  return *library_;
}

// CUDA's headers: those beside the library, those that it brings, those of some toolkit.
std::vector<std::string> NvrtcCompiler::header_folders(const NvrtcLibrary& nvrtc) const {
  if (std::vector<std::string> folders = cuda_header_folders(nvrtc.file()); !folders.empty()) return folders;
  if (nvrtc.functions().InstallBundledHeaders && !header_folder_.empty()) {
    // NVRTC has a lock of its own there, and writes nothing where they are complete.
    std::string folder = concat(header_folder_, "/cuda-headers-", nvrtc.major(), ".", nvrtc.minor());
    const char* error = nullptr;
    if (nvrtc.functions().InstallBundledHeaders(folder.c_str(), 0, &error) == 0) return {folder, folder + "/cccl"};
  }
  return toolkit_header_folders();
}

std::string NvrtcCompiler::identity() const {
  std::string file;
  {
    ForkGuard guard;
    std::lock_guard lock(mutex_);
    if (library_) file = library_->file();
  }
  if (file.empty()) file = NvrtcLibrary::first_file();
  std::string id = file.empty() ? std::string() : nvrtc_file_identity(file);
  if (id.empty()) {
    const NvrtcLibrary& nvrtc = library();
    file = nvrtc.file();
    id = nvrtc_file_identity(file);
    std::error_code error;
    if (id.empty()) id = concat(nvrtc.major(), ".", nvrtc.minor(), " ", std::filesystem::file_size(file, error));
  }
  static const std::string* device = new std::string(nvrtc_device_digest(all_options()).substr(0, 16));
  // Headers that are not the library's own may be replaced by others.
  std::vector<std::string> folders = cuda_header_folders(file);
  std::string headers = cuda_header_identity(folders.empty() ? toolkit_header_folders() : folders);
  return concat(kNvrtcIdentity, id, ", Kiln " KILN_VERSION " ", *device, headers.empty() ? "" : ", headers ", headers);
}

CompileResult NvrtcCompiler::compile(const CompileRequest& request) {
  const KernelUnit& unit = request.unit;
  const NvrtcLibrary& nvrtc = library();
  CompileResult result;
  result.report.generated_source = unit.text;
  auto refuse = [&](std::string message) {
    Diagnostic diagnostic;
    diagnostic.line = 0;
    diagnostic.message = std::move(message);
    result.report.diagnostics.push_back(std::move(diagnostic));
    result.status = CompileStatus::kUnsupported;
    return result;
  };

  std::optional<Architecture> architecture = choose_architecture(nvrtc, request.target.cpu);
  if (!architecture)
    return refuse(concat("NVRTC ", nvrtc.major(), ".", nvrtc.minor(), " makes no code for ", request.target.cpu,
                         "; the oldest GPU that it knows is sm_", nvrtc.architectures().front()));

  bool with_headers = asks_for_cuda_headers(unit), is_retry = false;
  for (;;) {
    NvrtcPrefix prefix = nvrtc_prefix(unit, with_headers);
    std::vector<std::string> options = options_of(unit.math_mode);
    options.push_back("--gpu-architecture=" + architecture->option);
    bool lacks_headers = false;
    if (with_headers) {
      std::vector<std::string> folders = header_folders(nvrtc);
      lacks_headers = folders.empty();
      if (lacks_headers && is_retry) return result;
      for (const std::string& folder : folders) options.push_back("--include-path=" + folder);
    }
    Program program(nvrtc.functions(), prefix.text, unit);
    int error = program.compile(unit.entry, options);
    std::string log = program.log();
    if (is_retry && error != 0) return result;  // what it says of the lean declarations is what the caller wrote

    result.report.log = log;
    result.report.diagnostics = read_nvrtc_log(unit, log);
    if (error == 0) {
      result.status = CompileStatus::kOk;
      std::vector<char> code = program.code(architecture->kind);
      std::string entry = program.lowered_name(unit.entry);
      if (code.empty() || entry.empty()) {
        result.status = CompileStatus::kInternal;
        result.report.log = "NVRTC gave no code or no name for " + unit.entry;
        return result;
      }
      result.binary = write_image(unit, architecture->kind, entry, code);
      result.engine = "nvrtc";
      result.engine_reason =
          concat("NVRTC ", nvrtc.major(), ".", nvrtc.minor(), with_headers ? " with CUDA's headers" : "",
                 architecture->kind == GpuCodeKind::kPtx ? ", which does not know the GPU" : "");
      if (request.keep_stages) {
        std::vector<char> ptx = program.code(GpuCodeKind::kPtx);
        result.stages.push_back({"text", prefix.text + unit.text});
        result.stages.push_back({"assembly", std::string(ptx.begin(), ptx.empty() ? ptx.end() : ptx.end() - 1)});
      }
      return result;
    }
    if (error != kCompilationFailed && error != kInvalidOption) {
      result.status = CompileStatus::kInternal;
      if (result.report.log.empty()) result.report.log = nvrtc.functions().GetErrorString(error);
      return result;
    }
    result.status = CompileStatus::kInvalid;
    if (lacks_headers)
      for (Diagnostic& diagnostic : result.report.diagnostics)
        if (diagnostic.message.find("could not open source file") != std::string::npos)
          diagnostic.message += concat("; ", kHowToGetHeaders);
    if (with_headers || !prefix.is_lean) return result;
    with_headers = is_retry = true;
  }
}

}  // namespace

std::unique_ptr<Compiler> make_nvrtc_compiler(std::string header_folder) {
  return std::make_unique<NvrtcCompiler>(std::move(header_folder));
}

std::string describe_nvrtc() {
  std::unique_ptr<const NvrtcLibrary> nvrtc = NvrtcLibrary::open();
  std::vector<std::string> headers = cuda_header_folders(nvrtc->file());
  return concat("NVRTC ", nvrtc->major(), ".", nvrtc->minor(), ", ", nvrtc->file(), ", sm_",
                nvrtc->architectures().front(), " to sm_", nvrtc->architectures().back(), "\nCUDA's headers: ",
                !headers.empty()                           ? headers.front()
                : nvrtc->functions().InstallBundledHeaders ? std::string("the library has them")
                                                           : std::string("none"));
}

}  // namespace kiln
