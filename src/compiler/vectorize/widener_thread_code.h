// What is known of the thread's code that is widened. These analyses read it and change nothing; they know nothing of
// the function that is made. A part that needs one of them takes that one, a part that needs several takes this.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include "compiler/analysis/structured_flow.h"
#include "compiler/vectorize/widener_patterns.h"
#include "compiler/vectorize/widener_strides.h"
#include "compiler/vectorize/widener_wrapping.h"

namespace kiln::widening {

struct ThreadCode {
  ThreadCode(Function& code, FunctionAnalysisManager& analyses)
      : function(code),
        layout(code.getDataLayout()),
        loops(analyses.getResult<LoopAnalysis>(code)),
        dominators(analyses.getResult<DominatorTreeAnalysis>(code)),
        evolution(analyses.getResult<ScalarEvolutionAnalysis>(code)),
        flow(code, analyses),
        strides(flow, loops, layout),
        wrapping(flow, evolution, layout, strides),
        patterns(flow, layout, strides, wrapping) {}

  Function& function;
  const DataLayout& layout;
  LoopInfo& loops;
  DominatorTree& dominators;
  ScalarEvolution& evolution;
  const StructuredFlow flow;
  Strides strides;
  Wrapping wrapping;
  AddressPatterns patterns;
};

}  // namespace kiln::widening
