#include "runtime/compiler_library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "core/build_id.h"
#include "core/fork_guard.h"
#include "core/out_of_memory.h"
#include "core/settings.h"
#include "core/text.h"
#include "core/thread_locals.h"
#include "kiln/error.h"

namespace kiln {
namespace {

std::string with_version(const std::string& build_id) { return concat("Kiln " KILN_VERSION ", compiler ", build_id); }

// The library's compiler, whose results are copied into memory of this side.
class OpenedCompiler : public Compiler {
 public:
  explicit OpenedCompiler(std::unique_ptr<Compiler> opened) : opened_(std::move(opened)) {}

  CompileResult compile(const CompileRequest& request) override {
    if (!has_memory_for_thread_locals()) throw OutOfMemory("There is no memory for Kiln's compiler.");
    return own(opened_->compile(request));
  }
  std::string identity() const override { return own(opened_->identity()); }

 private:
  template <typename T>
  T own(T theirs) const {
    struct Release {
      const Compiler& compiler;
      T& value;
      ~Release() { compiler.release(value); }
    } release{*opened_, theirs};
    return T(std::as_const(theirs));
  }

  std::unique_ptr<Compiler> opened_;
};

// The constructors of LLVM's static objects run while the library is opened, and have to have their memory.
void check_memory_for(const std::string& file) {
  struct stat status;
  if (stat(file.c_str(), &status) != 0) return;
  constexpr size_t kForConstructors = size_t{32} << 20;
  size_t bytes = static_cast<size_t>(status.st_size) + kForConstructors;
  void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw OutOfMemory(concat("There is no memory for Kiln's compiler, which takes ", bytes, " bytes."));
  munmap(memory, bytes);
}

}  // namespace

CompilerLibrary::CompilerLibrary(std::unique_ptr<Compiler> compiler) : compiler_(std::move(compiler)) {
  if (compiler_) identity_.emplace(compiler_->identity(), true);
}

std::optional<CompilerIdentity> CompilerLibrary::identity() {
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  if (!identity_)
    if (std::string id = build_id_of_file(path()); !id.empty()) identity_.emplace(with_version(id), true);
  return identity_;
}

std::string CompilerLibrary::path() {
  if (!settings().compiler_path.empty()) return settings().compiler_path;
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&CompilerLibrary::path), &info) || !info.dli_fname)
    throw InternalError("the folder of libkiln.so is not known");
  // Not the folder of a link to it.
  std::unique_ptr<char, decltype(&std::free)> real(realpath(info.dli_fname, nullptr), &std::free);
  std::string own(real ? real.get() : info.dli_fname);
  size_t slash = own.rfind('/');
  return (slash == std::string::npos ? std::string() : own.substr(0, slash + 1)) + "libkiln_compiler.so";
}

Compiler& CompilerLibrary::get() {
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  if (compiler_) return *compiler_;
  std::string file = path();
  check_memory_for(file);
  // Never closed: LLVM keeps state for as long as the process lives.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* text = dlerror();
    std::string reason = text ? text : "unknown error";
    if (reason.find(std::strerror(ENOMEM)) != std::string::npos)
      throw OutOfMemory(concat("There is no memory for Kiln's compiler: ", reason, "."));
    throw MissingCompilerError(concat("Kiln's compiler is missing: ", reason, ". Expected ", file,
                                      "; installing Kiln again brings it, and KILN_COMPILER names another file."));
  }
  auto factory = reinterpret_cast<CompilerFactory>(dlsym(library, kCompilerFactoryName));
  std::unique_ptr<Compiler> opened(factory ? factory(kCompilerInterfaceVersion) : nullptr);
  if (!opened)
    throw MissingCompilerError(concat(file,
                                      " belongs to another version of Kiln; installing Kiln again brings one that "
                                      "fits"));
  compiler_ = std::make_unique<OpenedCompiler>(std::move(opened));
  // Of what was opened, whatever the file was before.
  std::string id = build_id_of_loaded(reinterpret_cast<const void*>(factory));
  identity_ = id.empty() ? CompilerIdentity{compiler_->identity(), false} : CompilerIdentity{with_version(id), true};
  return *compiler_;
}

}  // namespace kiln
