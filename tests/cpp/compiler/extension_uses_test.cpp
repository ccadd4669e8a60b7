#include "compiler/codegen/extension_uses.h"

#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>

#include <memory>
#include <string>

namespace kiln {
namespace {

using namespace llvm;

// An index and its extension in the first block, then blocks that use the index twice each. The extension is used at
// the end.
std::string indexed(unsigned blocks, const std::string& type, const std::string& last) {
  std::string text = "define i64 @f(i32 %a, ptr %p) {\nentry:\n  %index = add i32 %a, 1\n  %wide = " + type +
                     " i32 %index to i64\n  br label %b0\n";
  for (unsigned i = 0; i < blocks; ++i) {
    // Without operator+ between a literal and a temporary, of which GCC 12 warns wrongly.
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    text.append("b").append(n).append(":\n  %s").append(n).append(" = add i32 %index, ").append(n);
    text.append("\n  %t").append(n).append(" = xor i32 %s").append(n).append(", %index\n  store volatile i32 %t");
    text.append(n).append(", ptr %p\n  br label %");
    if (i + 1 < blocks)
      text.append("b").append(next).append("\n");
    else
      text.append("end\n");
  }
  return text + "end:\n" + last + "}\n";
}

constexpr const char* kReturnWide = "  ret i64 %wide\n";

struct Result {
  unsigned truncations = 0, uses = 0;  // uses: of the index, outside of the first block
};

Result result_of(const std::string& text) {
  LLVMContext context;
  SMDiagnostic error;
  std::unique_ptr<Module> module = parseAssemblyString(text, error, context);
  if (!module) {
    ADD_FAILURE() << error.getMessage().str();
    return {};
  }
  Function& function = *module->getFunction("f");
  truncate_extended_values(function);
  EXPECT_FALSE(verifyFunction(function, &errs()));
  Result result;
  for (Instruction& instruction : instructions(function)) {
    if (isa<TruncInst>(instruction)) ++result.truncations;
    if (instruction.getParent()->isEntryBlock()) continue;
    for (Value* operand : instruction.operands()) result.uses += operand->getName() == "index";
  }
  return result;
}

TEST(ExtensionUses, AreTruncationsOneABlock) {
  for (const char* type : {"zext", "sext"}) {
    Result result = result_of(indexed(40, type, kReturnWide));
    EXPECT_EQ(result.truncations, 40u) << type;
    EXPECT_EQ(result.uses, 0u) << type;
  }
}

TEST(ExtensionUses, StayWhereThereAreFew) {
  // With that of the extension 63 and 65.
  EXPECT_EQ(result_of(indexed(31, "zext", kReturnWide)).truncations, 0u);
  EXPECT_EQ(result_of(indexed(32, "zext", kReturnWide)).truncations, 32u);
}

TEST(ExtensionUses, StayWhereTheExtensionIsNotLiveOut) {
  Result result = result_of(indexed(40, "zext", "  ret i64 0\n"));
  EXPECT_EQ(result.truncations, 0u);
  EXPECT_EQ(result.uses, 80u);
}

TEST(ExtensionUses, StayWhereTheIndexIsStoredOrMerged) {
  EXPECT_EQ(result_of(indexed(40, "zext", "  store i32 %index, ptr %p\n  ret i64 %wide\n")).truncations, 0u);
  const std::string merged =
      "  br i1 true, label %x, label %y\nx:\n  br label %y\ny:\n"
      "  %m = phi i32 [ %index, %end ], [ 0, %x ]\n  store i32 %m, ptr %p\n  ret i64 %wide\n";
  EXPECT_EQ(result_of(indexed(40, "zext", merged)).truncations, 0u);
}

}  // namespace
}  // namespace kiln
