#include "compiler/x86/bit_counts.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Transforms/Utils/Local.h>

namespace kiln {

using namespace llvm;

namespace {

// Counts of 8 at most that a byte can sum.
constexpr size_t kMostInByte = 255 / 8;
constexpr unsigned kMostTerms = 256;

struct Sum {
  SmallVector<IntrinsicInst*> counts;
  SmallVector<Value*> others;
  SmallVector<Instruction*> additions;
};

class BitCounts {
 public:
  BitCounts(Function& function, const VectorIsa& isa) : function_(function), isa_(isa) {}

  bool run() {
    SmallVector<IntrinsicInst*> all;
    for (Instruction& instruction : instructions(function_))
      if (auto* count = count_of(&instruction)) all.push_back(count);
    SmallPtrSet<Instruction*, 16> seen;
    SmallVector<WeakTrackingVH> dead;
    for (IntrinsicInst* count : all) {
      Instruction* root = count;
      bool is_new = true;
      for (Instruction* sum = count; sum && is_new; sum = sum_with(*sum)) {
        root = sum;
        is_new = seen.insert(sum).second;
      }
      // Another count belongs to the same sum.
      if (!is_new) continue;
      Sum sum;
      collect(*root, sum);
      // LLVM's own code for one count of 64 bits.
      if (sum.counts.size() == 1 && count->getType()->getScalarSizeInBits() == 64) continue;
      IRBuilder<> builder(root);
      root->replaceAllUsesWith(rewritten(sum, builder));
      dead.push_back(root);
    }
    for (const WeakTrackingVH& instruction : dead) RecursivelyDeleteTriviallyDeadInstructions(instruction);
    return !dead.empty();
  }

 private:
  // A count of numbers that fill registers.
  IntrinsicInst* count_of(Value* value) const {
    auto* call = dyn_cast<IntrinsicInst>(value);
    if (!call || call->getIntrinsicID() != Intrinsic::ctpop) return nullptr;
    auto* type = dyn_cast<FixedVectorType>(call->getType());
    if (!type || (type->getScalarSizeInBits() != 32 && type->getScalarSizeInBits() != 64)) return nullptr;
    return type->getPrimitiveSizeInBits().getFixedValue() / 8 % isa_.register_bytes == 0 ? call : nullptr;
  }

  // The addition in the same block that alone uses the value.
  static Instruction* sum_with(Instruction& value) {
    if (!value.hasOneUse()) return nullptr;
    auto* user = cast<Instruction>(*value.user_begin());
    return user->getOpcode() == Instruction::Add && user->getParent() == value.getParent() ? user : nullptr;
  }

  void collect(Instruction& value, Sum& sum) const {
    SmallVector<Value*> left{&value};
    while (!left.empty()) {
      Value* next = left.pop_back_val();
      auto* instruction = dyn_cast<Instruction>(next);
      const bool is_inner =
          next == &value || (instruction && instruction->hasOneUse() && instruction->getParent() == value.getParent());
      if (is_inner && instruction->getOpcode() == Instruction::Add &&
          sum.counts.size() + sum.others.size() < kMostTerms) {
        left.push_back(instruction->getOperand(1));
        left.push_back(instruction->getOperand(0));
      } else if (auto* count = is_inner ? count_of(next) : nullptr) {
        sum.counts.push_back(count);
      } else {
        sum.others.push_back(next);
      }
    }
  }

  Value* rewritten(const Sum& sum, IRBuilder<>& builder) const {
    Type* type = sum.counts[0]->getType();
    auto* bytes = FixedVectorType::get(builder.getInt8Ty(),
                                       static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue() / 8));
    Value* result = nullptr;
    auto add = [&](Value*& to, Value* value) { to = to ? builder.CreateAdd(to, value) : value; };
    for (Value* other : sum.others) add(result, other);
    for (size_t first = 0; first < sum.counts.size(); first += kMostInByte) {
      Value* in_bytes = nullptr;
      for (IntrinsicInst* count : ArrayRef(sum.counts).slice(first).take_front(kMostInByte))
        add(in_bytes,
            builder.CreateUnaryIntrinsic(Intrinsic::ctpop, builder.CreateBitCast(count->getArgOperand(0), bytes)));
      add(result, bytes_added(in_bytes, type, builder));
    }
    return result;
  }

  // The sums of the bytes of each number.
  Value* bytes_added(Value* bytes, Type* type, IRBuilder<>& builder) const {
    const unsigned width = isa_.register_bytes;
    const bool is_wide = width == 64;
    auto splat = [&](Type* element, uint64_t value, unsigned count) {
      return ConstantVector::getSplat(ElementCount::getFixed(count), ConstantInt::get(element, value));
    };
    SmallVector<Value*> parts;
    for (unsigned first = 0; first < cast<FixedVectorType>(bytes->getType())->getNumElements(); first += width) {
      Value* part = builder.CreateShuffleVector(bytes, createSequentialMask(first, width, 0));
      if (type->getScalarSizeInBits() == 64) {
        part = builder.CreateIntrinsic(is_wide ? Intrinsic::x86_avx512_psad_bw_512 : Intrinsic::x86_avx2_psad_bw, {},
                                       {part, Constant::getNullValue(part->getType())});
      } else {
        part = builder.CreateIntrinsic(is_wide ? Intrinsic::x86_avx512_pmaddubs_w_512 : Intrinsic::x86_avx2_pmadd_ub_sw,
                                       {}, {part, splat(builder.getInt8Ty(), 1, width)});
        part = builder.CreateIntrinsic(is_wide ? Intrinsic::x86_avx512_pmaddw_d_512 : Intrinsic::x86_avx2_pmadd_wd, {},
                                       {part, splat(builder.getInt16Ty(), 1, width / 2)});
      }
      parts.push_back(part);
    }
    return concatenateVectors(builder, parts);
  }

  Function& function_;
  const VectorIsa& isa_;
};

}  // namespace

bool count_bits_in_bytes(Function& function, const VectorIsa& vector_isa) {
  return vector_isa.register_bytes >= 32 && BitCounts(function, vector_isa).run();
}

}  // namespace kiln
