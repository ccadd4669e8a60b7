// Remarks: why an optional pass did not fire where a reader of the kernel would expect it to, and which accesses became
// slow ones. As LLVM's -Rpass-missed, but about the user's text.
//
// A pass gives up in many places, and few compilations are asked for reasons. The context carries the collector as its
// diagnostic handler, as LLVM's own remarks have it: passes need no further parameter, several compilations at once
// share nothing, and without a collector a remark is one virtual call, before anything is formatted.
//
// LLVM's OptimizationRemarkEmitter was the alternative. Its remarks are of LLVM's passes too, which speak of LLVM's IR,
// and each needs the analysis of a function.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instruction.h>
#include <llvm/IR/LLVMContext.h>

#include <functional>
#include <vector>

#include "core/text.h"
#include "kiln/compilation.h"

namespace kiln {

/// Appends remarks to a vector, each of them once. To be set as a context's diagnostic handler.
class RemarkCollector final : public llvm::DiagnosticHandler {
 public:
  /// Sets a remark's position in the user's text; leaves it as it is where there is none.
  using Locate = std::function<void(const llvm::DILocation& at, CompileRemark& remark)>;

  /// `remarks` must outlive the collector.
  RemarkCollector(std::vector<CompileRemark>& remarks, Locate locate) : remarks_(remarks), locate_(std::move(locate)) {}

  /// The context's collector; null where remarks are not wanted.
  static RemarkCollector* of(llvm::LLVMContext& context) {
    // There is no RTTI. Another handler does not know the name.
    const llvm::DiagnosticHandler* handler = context.getDiagHandlerPtr();
    if (!handler || !handler->isMissedOptRemarkEnabled(kName)) return nullptr;
    return static_cast<RemarkCollector*>(const_cast<llvm::DiagnosticHandler*>(handler));
  }

  /// `at` may be null. A remark without a line says nothing new where there is the same one with a line.
  void add(const char* pass, const llvm::DILocation* at, std::string message);

  // LLVM's passes ask by their own names, and make no remarks.
  bool isMissedOptRemarkEnabled(llvm::StringRef pass) const override { return pass == kName; }

 private:
  static constexpr const char* kName = "kiln-remarks";
  std::vector<CompileRemark>& remarks_;
  const Locate locate_;
};

/// Whether remarks are collected, for what must be computed for a remark alone.
inline bool keeps_remarks(const llvm::Function& function) { return RemarkCollector::of(function.getContext()); }

/// A remark of the pass with this name in the pipeline, about an instruction. Its message begins in lower case, has no
/// full stop, and is made of the parts as concat() makes it.
template <class... Parts>
void remark(const char* pass, const llvm::Instruction& at, const Parts&... message) {
  if (RemarkCollector* collector = RemarkCollector::of(at.getContext()))
    collector->add(pass, at.getDebugLoc().get(), concat(message...));
}

/// About a loop.
template <class... Parts>
void remark(const char* pass, const llvm::Loop& loop, const Parts&... message) {
  if (RemarkCollector* collector = RemarkCollector::of(loop.getHeader()->getContext()))
    collector->add(pass, loop.getStartLoc().get(), concat(message...));
}

/// About a function as a whole.
template <class... Parts>
void remark(const char* pass, const llvm::Function& function, const Parts&... message) {
  if (RemarkCollector* collector = RemarkCollector::of(function.getContext()))
    collector->add(pass, nullptr, concat(message...));
}

}  // namespace kiln
