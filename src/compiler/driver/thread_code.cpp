#include "compiler/driver/thread_code.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/clang/clang_frontend.h"
#include "compiler/ir/abandonment.h"
#include "compiler/ir/entry.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/remarks.h"
#include "compiler/lowering/input_stores.h"
#include "compiler/pipeline.h"
#include "core/diagnostic.h"
#include "core/text.h"

namespace kiln {
namespace {

// A thread's variables before any of them is promoted: more of them is refused at once. Of each size one may be in use
// at a time only, and most go; `private_bytes` of what is left is checked in the end.
constexpr uint64_t kMostVariableBytes = uint64_t{64} << 20;

uint64_t bytes_of_variables(const llvm::Function& function) {
  uint64_t bytes = 0;
  for (const llvm::Instruction& instruction : llvm::instructions(function))
    if (const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
      bytes += variable->getAllocationSize(function.getDataLayout())->getFixedValue();
  return bytes;
}

const llvm::GlobalVariable* find_mutable_variable(const llvm::Module& module) {
  for (const llvm::GlobalVariable& variable : module.globals())
    if (!variable.isConstant() && !variable.hasSection() && !variable.isDeclaration() &&
        !variable.getName().starts_with("llvm."))
      return &variable;
  return nullptr;
}

// What a value is if it is computed from constants: no pass has folded them yet, and Clang packs small structures that
// are arguments into a number.
llvm::Constant* constant_of(llvm::Value* value, const llvm::DataLayout& layout) {
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(value)) return constant;
  if (!llvm::isa<llvm::BinaryOperator, llvm::CastInst>(value)) return nullptr;
  auto* instruction = llvm::cast<llvm::Instruction>(value);
  llvm::SmallVector<llvm::Constant*> operands;
  for (llvm::Value* operand : instruction->operands()) {
    operands.push_back(constant_of(operand, layout));
    if (!operands.back()) return nullptr;
  }
  return llvm::ConstantFoldInstOperands(instruction, operands, layout);
}

// Where a thread would come to what is not supported.
std::optional<Diagnostic> find_unsupported(const llvm::Module& module, const KernelUnit& unit) {
  const llvm::Function* function = module.getFunction(kUnsupportedFunction);
  if (!function) return std::nullopt;
  for (const llvm::User* user : function->users()) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
    if (!call) continue;
    auto number = [&](unsigned argument) {
      return llvm::dyn_cast_or_null<llvm::ConstantInt>(
          constant_of(call->getArgOperand(argument), module.getDataLayout()));
    };
    const llvm::ConstantInt *line = number(0), *column = number(1);
    if (!line || !column) continue;
    llvm::StringRef what;
    llvm::getConstantStringInfo(call->getArgOperand(2), what);
    Diagnostic diagnostic = diagnostic_at(unit, static_cast<int>(line->getZExtValue()), what.str());
    diagnostic.column = static_cast<int>(column->getZExtValue());
    return diagnostic;
  }
  return std::nullopt;
}

void collect_remarks(llvm::LLVMContext& context, const KernelUnit& unit, std::vector<CompileRemark>& remarks) {
  auto locate = [&unit](const llvm::DILocation& at, CompileRemark& remark) {
    Diagnostic found = diagnostic_at(&at, unit, {});
    remark.text = found.text;
    remark.line = found.line;
    remark.file = std::move(found.file);
  };
  context.setDiagnosticHandler(std::make_unique<RemarkCollector>(remarks, locate));
}

// ---- Writes to inputs

std::string input_store_message(const KernelUnit& unit, const std::vector<InputStore>& stores) {
  const KernelParameter& first = unit.parameters[stores[0].parameter];
  if (first.role != ParameterRole::kInput) return concat("`", first.name, "` is read-only, and the body writes to it");
  std::vector<std::string> names;
  for (const InputStore& store : stores) {
    const KernelParameter& parameter = unit.parameters[store.parameter];
    std::string name = concat('"', parameter.name, '"');
    if (parameter.role == ParameterRole::kInput && std::ranges::find(names, name) == names.end())
      names.push_back(std::move(name));
  }
  bool is_one = names.size() == 1;
  return concat("`", first.name, "` is an input, and the body writes to it; name ", is_one ? "it" : "them",
                " in compile_options={\"writable_inputs\": [", join(names, ", "), "]} to write ",
                is_one ? "it" : "them", " in place");
}

// The text is parsed again, with line tables, which others need not pay for.
Diagnostic place_input_store(const CompileRequest& request, const ThreadTarget& thread, const std::string& message) {
  const KernelUnit& unit = request.unit;
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  FrontendResult frontend = run_clang(unit, kFrontendTriple, thread.cpu, context, LineTables::kMade);
  Diagnostic nowhere;
  nowhere.message = message;
  if (!frontend.module) return nowhere;
  const FunctionsFreedWhenAbandoned freed(*frontend.module);
  CompileRequest silent{unit, request.target, /*keep_stages=*/false, request.limits, /*verify_passes=*/false, {}};
  CompileResult unused;
  Pipeline pipeline(silent, unused);
  if (!make_one_function(pipeline, *frontend.module, thread)) return nowhere;
  llvm::Function& body = *frontend.module->getFunction(kBodyFunction);
  expose_addresses(pipeline, body);
  const ReachableInputStores reachable = find_reachable_input_stores(body, unit);
  // What optimization has merged has no line.
  for (const auto& stores : {reachable.stores, find_input_stores(body, unit)})
    for (const InputStore& store : stores)
      if (Diagnostic found = diagnostic_at(*store.access, unit, message); found.line > 0) return found;
  return nowhere;
}

// The parameters with those inputs writable that the body writes. Nothing, and `result` says why, where it must not.
std::optional<std::vector<KernelParameter>> find_written(const CompileRequest& request, const ThreadTarget& thread,
                                                         llvm::Function& body, CompileResult& result) {
  const KernelUnit& unit = request.unit;
  std::vector<KernelParameter> parameters = unit.parameters;
  if (find_input_stores(body, unit).empty()) return parameters;
  // The module lives as long as what points into it.
  auto [optimized, stores] = find_reachable_input_stores(body, unit);
  auto is_input = [&](const InputStore& store) {
    return unit.parameters[store.parameter].role == ParameterRole::kInput;
  };
  // Of shapes no program of a Mac's writes either.
  bool is_allowed = unit.allows_input_stores && std::ranges::all_of(stores, is_input);
  if (unit.allows_input_stores && !is_allowed) std::erase_if(stores, is_input);
  if (!stores.empty() && !is_allowed) {
    refuse(result, place_input_store(request, thread, input_store_message(unit, stores)));
    return std::nullopt;
  }
  for (const InputStore& store : stores) {
    parameters[store.parameter].is_writable_input = true;
    result.written_inputs.push_back(parameters[store.parameter].argument);
  }
  std::ranges::sort(result.written_inputs);
  auto repeated = std::ranges::unique(result.written_inputs);
  result.written_inputs.erase(repeated.begin(), repeated.end());
  return parameters;
}

}  // namespace

std::unique_ptr<llvm::Module> make_thread_code(Pipeline& pipeline, const ThreadTarget& thread,
                                               llvm::LLVMContext& context) {
  const CompileRequest& request = pipeline.request();
  CompileResult& result = pipeline.result();
  const KernelUnit& unit = request.unit;
  // Values' names are for who reads the stages; making them takes a fiftieth of the time.
  context.setDiscardValueNames(!request.keep_stages);
  FrontendResult frontend = run_clang(unit, kFrontendTriple, thread.cpu, context,
                                      request.keep_remarks ? LineTables::kMade : LineTables::kNone);
  if (request.keep_remarks) collect_remarks(context, unit, result.remarks);
  result.status = frontend.status;
  result.report.diagnostics = std::move(frontend.diagnostics);
  result.report.log = std::move(frontend.log);
  if (!frontend.module) return nullptr;

  llvm::Module& module = *frontend.module;
  const FunctionsFreedWhenAbandoned freed(module);
  pipeline.keep_stage("clang", module);
  if (!make_one_function(pipeline, module, thread)) {
    refuse(result, std::move(frontend.indirect_call));
    return nullptr;
  }
  llvm::Function& body = *module.getFunction(kBodyFunction);
  if (!thread.reports_unsupported)
    if (std::optional<Diagnostic> unsupported = find_unsupported(module, unit)) {
      refuse(result, std::move(*unsupported));
      return nullptr;
    }
  if (uint64_t bytes = bytes_of_variables(body); bytes > kMostVariableBytes) {
    refuse(result, concat("all private variables together take ", bytes, " bytes, which is too much for a thread"));
    return nullptr;
  }
  expose_addresses(pipeline, body);
  // Before shapes are constants: whether a body is refused does not depend on them.
  std::optional<std::vector<KernelParameter>> parameters = find_written(request, thread, body, result);
  if (!parameters) return nullptr;
  guard_accesses(pipeline, body, *parameters);
  pipeline.keep_stage("guarded", module);
  return std::move(frontend.module);
}

void refuse(CompileResult& result, Diagnostic diagnostic) {
  if (result.status == CompileStatus::kOk) result.report.diagnostics.clear();  // warnings
  result.status = CompileStatus::kUnsupported;
  result.report.diagnostics.push_back(std::move(diagnostic));
}

void refuse(CompileResult& result, std::string message) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  refuse(result, std::move(diagnostic));
}

bool check_variables(const llvm::Module& module, CompileResult& result) {
  const llvm::GlobalVariable* variable = find_mutable_variable(module);
  if (!variable) return true;
  refuse(result,
         "variable '" + llvm::demangle(variable->getName()) + "' is neither constant nor in threadgroup memory");
  return false;
}

}  // namespace kiln
