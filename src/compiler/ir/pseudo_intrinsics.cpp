#include "compiler/ir/pseudo_intrinsics.h"

#include <llvm/ADT/StringExtras.h>

#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

void set_effects(Function& function, PseudoIntrinsic::Effects effects) {
  using enum PseudoIntrinsic::Effects;
  if (effects == kUnknown) return;
  function.setDoesNotThrow();
  if (effects == kPure || effects == kSpeculatable) {
    function.setDoesNotAccessMemory();
    function.setWillReturn();
  }
  if (effects == kSpeculatable) function.setSpeculatable();
  if (effects == kConvergent || effects == kConvergentReturning || effects == kConvergentOrdered ||
      effects == kConvergentOrderedReturning)
    function.setConvergent();
  if (effects == kOrdered || effects == kConvergentOrdered || effects == kConvergentOrderedReturning)
    function.setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
  if (effects == kConvergentReturning || effects == kOrdered || effects == kConvergentOrderedReturning)
    function.setWillReturn();
}

ArrayRef<PseudoIntrinsic> rows() {
  using enum PseudoIntrinsic::Matches;
  using enum PseudoIntrinsic::Effects;
  using enum PseudoIntrinsic::Origin;
  constexpr const char *kLoaded = PseudoIntrinsic::kLoaded, *kNever = PseudoIntrinsic::kNever;
  static constexpr PseudoIntrinsic kRows[] = {
#define KILN_PSEUDO_INTRINSIC(constant, name, matches, effects, origin, scalar, simd, gpu) \
  {StringLiteral(name), matches, effects, origin, scalar, simd, gpu},
#include "compiler/ir/pseudo_intrinsics.def"
#undef KILN_PSEUDO_INTRINSIC
  };
  return kRows;
}

}  // namespace

const PseudoIntrinsic* find_pseudo_intrinsic(StringRef name) {
  for (const PseudoIntrinsic& row : rows()) {
    StringRef rest = name;
    if (!rest.consume_front(row.name)) continue;
    const bool is_number = !rest.empty() && all_of(rest, [](char c) { return isDigit(c); });
    if (row.matches == PseudoIntrinsic::kNumbered ? is_number : rest.empty()) return &row;
  }
  return nullptr;
}

Function& pseudo_intrinsic(Module& module, StringRef name, FunctionType* type) {
  const PseudoIntrinsic* row = find_pseudo_intrinsic(name);
  if (!row) throw InternalError(concat(name.str(), " is no pseudo-intrinsic"));
  auto& function = *cast<Function>(module.getOrInsertFunction(name, type).getCallee());
  set_effects(function, row->effects);
  return function;
}

void set_attributes(Module& module) {
  for (const PseudoIntrinsic& row : rows())
    if (row.origin == PseudoIntrinsic::kDevice)
      if (Function* function = module.getFunction(row.name)) set_effects(*function, row.effects);
}

void refuse_pseudo_intrinsics(const Module& module, const char* PseudoIntrinsic::* engine) {
  for (const Function& function : module) {
    if (!function.isDeclaration() || function.use_empty()) continue;
    const PseudoIntrinsic* row = find_pseudo_intrinsic(function.getName());
    if (!row || (row->*engine && !*(row->*engine))) continue;
    throw InternalError(row->*engine
                            ? concat("`", row->*engine, "` has left calls of ", row->name.str())
                            : concat("there are calls of ", row->name.str(), ", which this engine has none of"));
  }
}

}  // namespace kiln
