#include "runtime/context.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "cache/binary_id.h"
#include "core/diagnostic.h"
#include "core/floating_point_state.h"
#include "core/fork_guard.h"
#include "core/job_threads.h"
#include "core/log.h"
#include "core/out_of_memory.h"
#include "core/settings.h"
#include "core/text.h"
#include "kiln/error.h"
#include "runtime/compilation_dump.h"
#include "runtime/kernel_object.h"
#include "runtime/target_registry.h"
#include "targets/cuda/nvrtc_compiler.h"

namespace kiln {
namespace {

// Of its caller's stack, where no thread can be started for a compilation.
constexpr size_t kEnoughStackBytes = size_t{4} << 20;

// The one of a bundle's compilers that is NVRTC, or is not.
std::optional<std::string> compiler_of(const Bundle& bundle, bool nvrtc) {
  for (const std::string& identity : bundle.compilers())
    if (identity.starts_with(kNvrtcIdentity) == nvrtc) return identity;
  return std::nullopt;
}

[[noreturn]] void throw_failure(const KernelUnit& unit, CompileResult result) {
  std::string_view interface = interface_name(unit.dialect);
  switch (result.status) {
    case CompileStatus::kInvalid: {
      std::string message = summarize(interface, unit.name, result.report.diagnostics);
      throw CompileError(message, std::make_shared<const CompileReport>(std::move(result.report)));
    }
    case CompileStatus::kUnsupported:
      throw UnsupportedError(unsupported_message(unit, result.report.diagnostics.at(0)));
    case CompileStatus::kOutOfMemory:
      throw OutOfMemory(concat("[", interface, "] There is no memory to compile `", printable(unit.name), "`."));
    case CompileStatus::kTooLarge:
      throw UnsupportedError(
          concat("[", interface, "] `", printable(unit.name), "` is too large to compile: ", result.report.log, "."));
    default:
      throw InternalError(concat("[", interface, "] `", printable(unit.name),
                                 "`: Kiln's compiler failed: ", result.report.log,
                                 ". This is a defect of Kiln; a report with the output of `source_for` helps."));
  }
}

// The passes of one compilation that fired, and why others did not.
void log_passes(const KernelUnit& unit, const CompileResult& result) {
  double ms = 0;
  size_t fired = 0;
  for (const CompilePass& pass : result.passes) {
    ms += pass.ms;
    if (!pass.fired) continue;
    ++fired;
    log(LogCategory::kPasses, unit.name, ": ", pass.name, pass.function.empty() ? "" : " of ", pass.function, " in ",
        in_milliseconds(pass.ms), ", ", pass.instructions_before, " -> ", pass.instructions_after, " instructions");
  }
  for (const CompileRemark& remark : result.remarks) log(LogCategory::kPasses, unit.name, ": remark: ", render(remark));
  log(LogCategory::kPasses, unit.name, ": ", fired, " of ", result.passes.size(), " passes fired, in ",
      in_milliseconds(ms));
}

}  // namespace

std::string_view interface_name(Dialect dialect) { return dialect == Dialect::kMetal ? "metal_kernel" : "cuda_kernel"; }

std::string_view message_prefix(Dialect dialect) {
  return dialect == Dialect::kMetal ? "[metal_kernel] " : "[cuda_kernel] ";
}

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
    : nvrtc_(compiler ? nullptr : make_nvrtc_compiler(cache.mode == CacheMode::kOn ? cache.directory : std::string())),
      compiler_(std::move(compiler)),
      cache_(std::move(cache)) {
  if (bundle_path.empty()) return;
  try {
    bundle_.emplace(bundle_path);
  } catch (const std::runtime_error& error) {
    bundle_failure_ = error.what();
  }
}

// Jobs that nobody waits for any more use it.
Context::~Context() {
  if (getpid() != process_) return;  // they are the parent's
  for (int left; (left = jobs_.load()) != 0;) jobs_.wait(left);
}

Target& Context::make_target(Device device) {
  ForkGuard guard;
  std::lock_guard lock(targets_mutex_);
  if (Target* made = made_target(device)) return *made;
  std::unique_ptr<Target> made = entry_of(device.kind).make(device.index);
  std::atomic<Target*>& slot = targets_[static_cast<size_t>(device.kind)].at(static_cast<size_t>(device.index));
  Target& target = *owned_targets_.emplace_back(std::move(made));
  slot.store(&target, std::memory_order_release);
  return target;
}

KernelObject& Context::copier() {
  std::call_once(copier_once_, [&] {
    KernelSpec spec;
    spec.name = "kiln_copy";
    spec.input_names = {"from"};
    spec.output_names = {"to"};
    // Rows of 2^30 threads, so that arrays may have more elements than a grid has in x. The last row's surplus writes
    // outside of the array, which does nothing.
    spec.source = R"(
      int64_t i = thread_position_in_grid.x + (int64_t(thread_position_in_grid.y) << 30);
      to[i] = from[elem_to_loc<int64_t>(i, from_shape, from_strides, from_ndim)];)";
    spec.ensure_row_contiguous = false;
    spec.compile_options = {.bounds = true, .specialize = false};
    copier_ = std::make_unique<KernelObject>(std::move(spec), *this);
  });
  return *copier_;
}

Context& Context::shared() {
  // Never destroyed: launches may still run when static objects are.
  ForkGuard guard;
  static Context* instance = new Context;
  return *instance;
}

// Without a compiler, that of the bundle: what it has serves as long as nobody can compile anything else.
CompilerIdentity Context::identity(const KernelUnit& unit, const TargetSpec& target) {
  const bool nvrtc = nvrtc_ && is_for_nvrtc(unit.dialect, target.kind);
  std::optional<std::string> of_bundle;
  if (bundle_) of_bundle = compiler_of(*bundle_, nvrtc);
  try {
    if (nvrtc) return {nvrtc_->identity(), true};
    if (std::optional<CompilerIdentity> known = compiler_.identity()) return *known;
    if (of_bundle) return {*of_bundle, true};
    JobThreads::compiling().run([&] { compiler_.get(); }, kEnoughStackBytes);
    return compiler_.identity().value();
  } catch (const MissingCompilerError& error) {
    if (of_bundle) return {*of_bundle, true};
    throw_missing(error, unit);
  }
}

CompileResult Context::run_compiler(const KernelUnit& unit, const TargetSpec& target, bool keep_stages,
                                    bool keep_remarks, std::vector<std::string> keep_after) {
  try {
    Compiler& compiler = nvrtc_ && is_for_nvrtc(unit.dialect, target.kind) ? *nvrtc_ : compiler_.get();
    return compiler.compile({unit,
                             target,
                             keep_stages,
                             {settings().compile_bytes, settings().compile_seconds},
                             settings().verify_passes,
                             std::move(keep_after),
                             keep_remarks});
  } catch (const MissingCompilerError& error) {
    throw_missing(error, unit);
  }
}

void Context::throw_missing(const MissingCompilerError& error, const KernelUnit& unit) const {
  std::string message = error.what();
  if (!message.ends_with('.')) message += '.';
  if (bundle_)
    throw MissingCompilerError(concat(message, " The bundle ", printable(bundle_->path()), " has no code for `",
                                      printable(unit.name), "` called like this."));
  if (!bundle_failure_.empty())
    throw MissingCompilerError(concat(message, " The bundle cannot be used: ", bundle_failure_, "."));
  throw MissingCompilerError(error);
}

std::string Context::describe_nvrtc() { return kiln::describe_nvrtc(); }

std::string Context::bundle_problem() {
  if (!bundle_) return bundle_failure_;
  std::optional<CompilerIdentity> compiler = compiler_.identity();
  std::optional<std::string> of_bundle = compiler_of(*bundle_, /*nvrtc=*/false);
  if (!compiler || !of_bundle || compiler->text == *of_bundle) return {};
  return concat(printable(bundle_->path()), " was made by another compiler: ", *of_bundle, ", this one is ",
                compiler->text);
}

std::optional<CodeEntry> Context::find_stored(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                                              const CompilerIdentity& compiler, CodeSource& source) {
  auto note = [&](const auto&... what) { log(LogCategory::kCache, unit.name, ": ", what...); };
  if (!compiler.lasting) {
    note("no look-up on disk: ", CompilerLibrary::path(), " has no build ID");
    return std::nullopt;
  }
  // The id says all of this. An entry that some program has put together from others would not be damaged.
  auto fits = [&](const std::optional<CodeEntry>& entry) {
    return entry && entry->source == unit.text && entry->target == target && entry->compiler == compiler.text;
  };
  if (bundle_ && std::ranges::find(bundle_->compilers(), compiler.text) != bundle_->compilers().end()) {
    source = CodeSource::kBundle;
    if (std::optional<CodeEntry> entry = bundle_->load(id); fits(entry)) {
      note("bundle hit ", id);
      return entry;
    }
    note("bundle miss ", id);
  }
  source = CodeSource::kDisk;
  std::string problem;
  std::optional<CodeEntry> entry = cache_.load(id, is_logged(LogCategory::kCache) ? &problem : nullptr);
  if (fits(entry)) {
    note("disk hit ", id);
    return entry;
  }
  if (entry) {
    note("disk refusal ", id, ": it was made from something else");
    cache_.discard(id);
  } else if (problem.empty()) {
    note("disk miss ", id);
  } else {
    note("disk refusal ", id, ": ", problem);
  }
  return std::nullopt;
}

MadeCode Context::compile(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                          const CompilerIdentity& compiler, Target* here) {
  log(LogCategory::kCache, unit.name, ": compiling ", id, " for ", target.cpu);
  auto start = std::chrono::steady_clock::now();
  const std::string& dump_folder = settings().dump_folder;
  const bool logs_passes = is_logged(LogCategory::kPasses);
  CompileResult result = run_compiler(unit, target, /*keep_stages=*/!dump_folder.empty(), logs_passes);
  if (logs_passes) log_passes(unit, result);
  if (!dump_folder.empty()) dump_compilation(dump_folder, unit, result);
  auto elapsed_ms = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  if (result.status != CompileStatus::kOk) {
    if (is_logged(LogCategory::kCache))
      log(LogCategory::kCache, unit.name, ": not compiled, after ", in_milliseconds(elapsed_ms()));
    throw_failure(unit, std::move(result));
  }
  if (here) here->finish(result.binary, unit);
  double ms = elapsed_ms();
  // The library may have been replaced since its identity was asked for, and what it made is its own.
  CompilerIdentity now = identity(unit, target);
  MadeCode made;
  made.id = now.text == compiler.text ? id : binary_id(unit, target, now.text);
  made.entry = {now.text,
                target,
                unit.name,
                unit.text,
                std::move(result.engine),
                std::move(result.engine_reason),
                std::move(result.written_inputs),
                ms,
                std::move(result.binary),
                std::move(result.report.diagnostics)};
  made.not_stored =
      now.lasting ? cache_.store(made.id, made.entry) : concat(printable(CompilerLibrary::path()), " has no build ID");
  if (is_logged(LogCategory::kCache)) {
    log(LogCategory::kCache, unit.name, ": compiled ", made.id, " in ", in_milliseconds(ms), ", ", made.entry.engine,
        " engine: ", made.entry.engine_reason);
    if (made.not_stored.empty())
      log(LogCategory::kCache, unit.name, ": disk store ", made.id);
    else
      log(LogCategory::kCache, unit.name, ": not stored on disk: ", made.not_stored);
  }
  return made;
}

MadeCode Context::find_or_compile(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                                  const CompilerIdentity& compiler, Target* here) {
  if (std::optional<MadeCode> found = find_finished(id, unit, target, compiler, here)) return std::move(*found);
  // On a CPU what was made ahead, for launches with threadgroups at an edge too, serves those without.
  if (unit.form.threadgroups_are_even && traits_of(target.kind).form_use == FormUse::kSimdgroups) {
    KernelUnit wider = unit;
    wider.form.threadgroups_are_even = false;
    const std::string wider_id = binary_id(wider, target, compiler.text);
    if (std::optional<MadeCode> found = find_finished(wider_id, wider, target, compiler, here))
      return std::move(*found);
  }
  // Of the processes that want it now, one compiles it. Longer than nearly all kernels take to compile.
  constexpr std::chrono::seconds kMostWaiting{20};
  bool is_there = false;
  DiskCache::Claim claim = cache_.claim(id, kMostWaiting, is_there);
  if (is_there)
    if (std::optional<MadeCode> found = find_finished(id, unit, target, compiler, here)) return std::move(*found);
  return compile(id, unit, target, compiler, here);
}

std::optional<MadeCode> Context::find_finished(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                                               const CompilerIdentity& compiler, Target* here) {
  CodeSource source = CodeSource::kCompiled;
  std::optional<CodeEntry> entry = find_stored(id, unit, target, compiler, source);
  if (!entry) return std::nullopt;
  try {
    // What was compiled where this target was not there is finished once.
    if (here && here->finish(entry->binary, unit) && source == CodeSource::kDisk) {
      cache_.discard(id);
      static_cast<void>(cache_.store(id, *entry));
    }
    return MadeCode{id, std::move(*entry), source, {}};
  } catch (const InternalError& error) {  // undamaged, and yet of no use
    log(LogCategory::kCache, unit.name, ": ", name_of(source), " refusal ", id, ": ", error.what());
    if (source == CodeSource::kDisk) cache_.discard(id);
    return std::nullopt;
  }
}

SingleFlight<Binary>::Found Context::binary_for(const KernelUnit& unit, Target& target) {
  CompilerIdentity compiler = identity(unit, target.spec());
  std::string id = binary_id(unit, target.spec(), compiler.text);
  // Code is loaded into one device's memory. And a failure is remembered with its message, which names files; the id
  // does not.
  std::string key = concat(id, " ", target.name());
  for (const std::string& path : {unit.source_path, unit.header_path}) key += concat('\n', path);
  for (const IncludedFile& file : unit.included_files) key += concat('\n', file.path);
  for (const std::string& folder : unit.include_dirs) key += concat('\n', folder);
  if (std::shared_ptr<const Binary> made = binaries_.find(key)) return {std::move(made), false};
  auto found = std::make_shared<SingleFlight<Binary>::Found>();
  // Copies: the job may outlive the call. Targets live as long as the context, which waits for its jobs.
  run_job(unit, [this, found, own = std::make_shared<const KernelUnit>(unit), &target, compiler, id, key] {
    *found = find_or_make_binary(*own, target, compiler, id, key);
  });
  return std::move(*found);
}

SingleFlight<Binary>::Found Context::find_or_make_binary(const KernelUnit& unit, Target& target,
                                                         const CompilerIdentity& compiler, const std::string& id,
                                                         const std::string& key) {
  return binaries_.get(key, [&] {
    // LLVM has locks of its own.
    ForkGuard guard;
    DefaultFloatingPoint floating_point;  // the compiler folds constants
    MadeCode made = find_or_compile(id, unit, target.spec(), compiler, &target);
    auto binary = std::make_shared<Binary>();
    try {
      binary->code = target.load(made.entry.binary, unit);
    } catch (const InternalError& error) {
      if (made.source == CodeSource::kCompiled) throw;
      log(LogCategory::kCache, unit.name, ": ", name_of(made.source), " refusal ", id, ": ", error.what());
      if (made.source == CodeSource::kDisk) cache_.discard(made.id);
      made = compile(id, unit, target.spec(), compiler, &target);
      binary->code = target.load(made.entry.binary, unit);
    }
    binary->engine = std::move(made.entry.engine);
    binary->engine_reason = std::move(made.entry.engine_reason);
    binary->written_inputs = std::move(made.entry.written_inputs);
    binary->compile_ms = made.entry.compile_ms;
    binary->diagnostics = std::move(made.entry.diagnostics);
    // The code may have been made of the same texts in other files.
    for (Diagnostic& diagnostic : binary->diagnostics) {
      if (diagnostic.text == SourceText::kBody) diagnostic.file = unit.source_path;
      if (diagnostic.text == SourceText::kHeader) diagnostic.file = unit.header_path;
    }
    binary->source = made.source;
    binary->not_stored = std::move(made.not_stored);
    return std::shared_ptr<const Binary>(std::move(binary));
  });
}

MadeCode Context::compile_ahead(const KernelUnit& unit, const TargetSpec& target) {
  auto made = std::make_shared<MadeCode>();
  run_job(unit, [this, made, own = std::make_shared<const KernelUnit>(unit), target] {
    CompilerIdentity compiler = identity(*own, target);
    ForkGuard guard;
    DefaultFloatingPoint floating_point;
    *made = find_or_compile(binary_id(*own, target, compiler.text), *own, target, compiler, nullptr);
  });
  return std::move(*made);
}

void Context::run_job(const KernelUnit& unit, const std::function<void()>& job) {
  // From its copy on, until the last copy is gone.
  struct Count {
    explicit Count(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Count() {
      --count_;
      count_.notify_all();
    }
    std::atomic<int>& count_;
  };
  // Captures are destroyed last to first.
  auto counted = [count = std::make_shared<Count>(jobs_), job] { job(); };
  // Limits are the compiler's to keep (CompileLimits). What it cannot end goes on without its caller.
  const double seconds = settings().compile_seconds;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                         std::chrono::duration<double>(1.25 * seconds + 5));
  if (JobThreads::compiling().run_abandonable(counted, kEnoughStackBytes, deadline)) return;
  throw UnsupportedError(concat(message_prefix(unit.dialect), "`", printable(unit.name),
                                "` is too large to compile: it takes more than the ", seconds,
                                " seconds of KILN_COMPILE_TIME_LIMIT."));
}

CompileResult Context::recompile(const KernelUnit& unit, Target& target, Keep keep,
                                 std::vector<std::string> keep_after) {
  auto made = std::make_shared<CompileResult>();
  run_job(unit, [this, made, own = std::make_shared<const KernelUnit>(unit), spec = target.spec(), keep,
                 keep_after = std::move(keep_after)] {
    DefaultFloatingPoint floating_point;
    CompileResult result = run_compiler(*own, spec, keep == Keep::kStages, keep == Keep::kRemarks, keep_after);
    if (result.status != CompileStatus::kOk) throw_failure(*own, std::move(result));
    *made = std::move(result);
  });
  return std::move(*made);
}

}  // namespace kiln
