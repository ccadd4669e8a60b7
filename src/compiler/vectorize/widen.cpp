#include "compiler/vectorize/widen.h"

#include "compiler/ir/remarks.h"
#include "compiler/vectorize/widener.h"

namespace kiln {

using namespace llvm;

std::string widen(Function& function, FunctionAnalysisManager& analyses, const WidenOptions& options) {
  Function* wide = Function::Create(function.getFunctionType(), function.getLinkage(), "", function.getParent());
  wide->copyAttributesFrom(&function);
  std::string reason;
  try {
    widening::Widener(function, *wide, analyses, options).run();
  } catch (const widening::Refusal& refusal) {
    reason = refusal.reason;
    if (refusal.at)
      remark("widen", *refusal.at, kSimdRefusal, reason);
    else
      remark("widen", function, kSimdRefusal, reason);
  }
  function.deleteBody();
  if (!reason.empty()) {
    wide->dropAllReferences();
    wide->eraseFromParent();
    return reason;
  }
  function.splice(function.begin(), wide);
  for (auto [to, from] : zip(function.args(), wide->args())) from.replaceAllUsesWith(&to);
  wide->eraseFromParent();
  return "";
}

}  // namespace kiln
