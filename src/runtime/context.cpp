#include "runtime/context.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "cache/binary_id.h"
#include "core/diagnostic.h"
#include "core/floating_point_state.h"
#include "core/fork_guard.h"
#include "core/settings.h"
#include "core/text.h"
#include "kiln/error.h"
#include "runtime/compilation_dump.h"
#include "targets/cpu/cpu_target.h"

namespace kiln {
namespace {

[[noreturn]] void throw_failure(const KernelUnit& unit, CompileResult result) {
  std::string_view interface = interface_name(unit.dialect);
  switch (result.status) {
    case CompileStatus::kInvalid: {
      std::string message = summarize(interface, unit.name, result.report.diagnostics);
      throw CompileError(message, std::make_shared<const CompileReport>(std::move(result.report)));
    }
    case CompileStatus::kUnsupported:
      throw UnsupportedError(concat("[", interface, "] `", printable(unit.name), "` uses what is not supported.\n",
                                    render(result.report.diagnostics.at(0))));
    default:
      throw InternalError(concat("[", interface, "] `", printable(unit.name),
                                 "`: Kiln's compiler failed: ", result.report.log,
                                 ". This is a defect of Kiln; a report with the output of `source_for` helps."));
  }
}

}  // namespace

std::string_view interface_name(Dialect dialect) { return dialect == Dialect::kMetal ? "metal_kernel" : "cuda_kernel"; }

bool is_lasting(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CompileError&) {
    return true;
  } catch (const MissingCompilerError&) {
    return false;
  } catch (const UnsupportedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

Context::Context(std::unique_ptr<Compiler> compiler, DiskCacheOptions cache, const std::string& bundle_path)
    : cpu_(make_cpu_target()), compiler_(std::move(compiler)), cache_(std::move(cache)) {
  if (bundle_path.empty()) return;
  try {
    bundle_.emplace(bundle_path);
  } catch (const std::runtime_error& error) {
    bundle_failure_ = error.what();
  }
}

Context& Context::shared() {
  // Never destroyed: launches may still run when static objects are.
  ForkGuard guard;
  static Context* instance = new Context;
  return *instance;
}

// Without a compiler, that of the bundle: what it has serves as long as nobody can compile anything else.
CompilerIdentity Context::identity(const std::string& kernel) {
  if (std::optional<CompilerIdentity> known = compiler_.identity()) return *known;
  if (bundle_) return {bundle_->compiler(), true};
  open_compiler(kernel);
  return compiler_.identity().value();
}

Compiler& Context::open_compiler(const std::string& kernel) {
  try {
    return compiler_.get();
  } catch (const MissingCompilerError& error) {
    std::string message = error.what();
    if (!message.ends_with('.')) message += '.';
    if (bundle_)
      throw MissingCompilerError(concat(message, " The bundle ", printable(bundle_->path()), " has no code for `",
                                        printable(kernel), "` called like this."));
    if (!bundle_failure_.empty())
      throw MissingCompilerError(concat(message, " The bundle cannot be used: ", bundle_failure_, "."));
    throw;
  }
}

std::string Context::bundle_problem() {
  if (!bundle_) return bundle_failure_;
  std::optional<CompilerIdentity> compiler = compiler_.identity();
  if (!compiler || compiler->text == bundle_->compiler()) return {};
  return concat(printable(bundle_->path()), " was made by another compiler: ", bundle_->compiler(), ", this one is ",
                compiler->text);
}

std::optional<CodeEntry> Context::find_stored(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                                              const CompilerIdentity& compiler, CodeSource& source) {
  if (!compiler.lasting) return std::nullopt;
  // The id says all of this. An entry that some program has put together from others would not be damaged.
  auto fits = [&](const std::optional<CodeEntry>& entry) {
    return entry && entry->source == unit.text && entry->target == target && entry->compiler == compiler.text;
  };
  if (bundle_ && bundle_->compiler() == compiler.text) {
    source = CodeSource::kBundle;
    if (std::optional<CodeEntry> entry = bundle_->load(id); fits(entry)) return entry;
  }
  source = CodeSource::kDisk;
  std::optional<CodeEntry> entry = cache_.load(id);
  if (fits(entry)) return entry;
  if (entry) cache_.discard(id);
  return std::nullopt;
}

MadeCode Context::compile(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                          const CompilerIdentity& compiler) {
  Compiler& library = open_compiler(unit.name);
  auto start = std::chrono::steady_clock::now();
  const std::string& dump_folder = settings().dump_folder;
  CompileResult result = library.compile({unit, target, /*keep_stages=*/!dump_folder.empty()});
  if (!dump_folder.empty()) dump_compilation(dump_folder, unit, result);
  if (result.status != CompileStatus::kOk) throw_failure(unit, std::move(result));
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  // The library may have been replaced since its identity was asked for, and what it made is its own.
  CompilerIdentity now = compiler_.identity().value();
  MadeCode made;
  made.id = now.text == compiler.text ? id : binary_id(unit, target, now.text);
  made.entry = {now.text,
                target,
                unit.name,
                unit.text,
                std::move(result.engine),
                std::move(result.engine_reason),
                ms,
                std::move(result.binary)};
  made.not_stored =
      now.lasting ? cache_.store(made.id, made.entry) : concat(printable(CompilerLibrary::path()), " has no build ID");
  return made;
}

MadeCode Context::find_or_compile(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                                  const CompilerIdentity& compiler) {
  CodeSource source = CodeSource::kCompiled;
  if (std::optional<CodeEntry> entry = find_stored(id, unit, target, compiler, source))
    return {id, std::move(*entry), source, {}};
  return compile(id, unit, target, compiler);
}

SingleFlight<Binary>::Found Context::binary_for(const KernelUnit& unit, Target& target) {
  CompilerIdentity compiler = identity(unit.name);
  std::string id = binary_id(unit, target.spec(), compiler.text);
  return binaries_.get(id, [&] {
    // LLVM has locks of its own.
    ForkGuard guard;
    DefaultFloatingPoint floating_point;  // the compiler folds constants
    MadeCode made = find_or_compile(id, unit, target.spec(), compiler);
    auto binary = std::make_shared<Binary>();
    try {
      binary->code = target.load(made.entry.binary);
    } catch (const InternalError&) {
      if (made.source == CodeSource::kCompiled) throw;
      // Undamaged, and yet of no use.
      if (made.source == CodeSource::kDisk) cache_.discard(id);
      made = compile(id, unit, target.spec(), compiler);
      binary->code = target.load(made.entry.binary);
    }
    binary->engine = std::move(made.entry.engine);
    binary->engine_reason = std::move(made.entry.engine_reason);
    binary->compile_ms = made.entry.compile_ms;
    binary->source = made.source;
    binary->not_stored = std::move(made.not_stored);
    return std::shared_ptr<const Binary>(std::move(binary));
  });
}

MadeCode Context::compile_ahead(const KernelUnit& unit, const TargetSpec& target) {
  CompilerIdentity compiler = identity(unit.name);
  ForkGuard guard;
  DefaultFloatingPoint floating_point;
  return find_or_compile(binary_id(unit, target, compiler.text), unit, target, compiler);
}

TargetSpec target_named(std::string_view architecture) {
  if (is_processor_level(architecture)) return {TargetKind::kCpu, std::string(architecture), settings().cpu_engine};
  if (architecture.starts_with("sm_"))
    throw UnsupportedError(
        concat("this version of Kiln has no NVIDIA target, so it cannot compile for ", architecture));
  throw ValueError(
      concat("Expected an architecture to be x86-64, x86-64-v2, x86-64-v3 or x86-64-v4 but got `", architecture, "`."));
}

std::vector<CompileStage> Context::stages_of(const KernelUnit& unit, Target& target) {
  DefaultFloatingPoint floating_point;
  CompileResult result = open_compiler(unit.name).compile({unit, target.spec(), /*keep_stages=*/true});
  if (result.status != CompileStatus::kOk) throw_failure(unit, std::move(result));
  return std::move(result.stages);
}

}  // namespace kiln
