#include "compiler/nvptx/tensor_products.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <string>

#include "compiler/ir/code_motion.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"

namespace kiln {
namespace {

using namespace llvm;

class TensorProducts {
 public:
  TensorProducts(Function& body, ArrayRef<ConvergencePoint> points, const Masks& masks, MatrixMap map)
      : points_(points), masks_(masks), builder_(body.getContext()) {
    if (map == MatrixMap::kTensor) return;
    builder_.SetInsertPoint(&*body.getEntryBlock().getFirstInsertionPt());
    Value* lane = builder_.CreateCall(&lane_function(*body.getParent()));
    // Apple's lane for an instruction's lane (l4 l1 l3 l2 l0), and the inverse (l4 l2 l1 l3 l0).
    auto bits = [&](uint32_t mask, int left) {
      Value* some = builder_.CreateAnd(lane, mask);
      return left > 0 ? builder_.CreateShl(some, static_cast<uint64_t>(left))
                      : builder_.CreateLShr(some, static_cast<uint64_t>(-left));
    };
    Value* stays = builder_.CreateAnd(lane, 0x11);
    to_tensor_ = builder_.CreateOr(builder_.CreateOr(stays, bits(2, 2)), bits(0xc, -1));
    to_apple_ = builder_.CreateOr(builder_.CreateOr(stays, bits(6, 1)), bits(8, -2));
  }

  void run(BasicBlock& block) {
    SmallVector<CallInst*> products;
    for (Instruction& instruction : block)
      if (can_multiply(instruction)) products.push_back(cast<CallInst>(&instruction));
    left_.clear();
    right_.clear();
    for (size_t i = 0; i < products.size(); ++i) {
      if (!products[i]) continue;
      CallInst* second = nullptr;
      for (size_t j = i + 1; j < products.size() && !second; ++j)
        if (products[j] && can_combine(*products[i], *products[j])) std::swap(second, products[j]);
      multiply(*products[i], second);
    }
  }

 private:
  bool can_multiply(const Instruction& instruction) const {
    std::optional<unsigned> point = convergence_point_at(instruction);
    if (!point || !points_[*point].is_product) return false;
    const auto& product = cast<CallInst>(instruction);
    auto [a, b] = types_of(product);
    const auto* named = dyn_cast<ConstantInt>(masks_.at.at(const_cast<CallInst*>(&product)).named);
    auto fail = [&](const char* why) {
      remark("tensor-products", instruction, "no tensor cores: ", why);
      return false;
    };
    if (a == MatrixType::kFloat || b == MatrixType::kFloat) return fail("they have no products of matrices of floats");
    if (a != b) return fail("the matrices have elements of two types");
    if (!named || !named->isMinusOne()) return fail("not all threads of the simdgroup are known to be there");
    return true;
  }

  // Whether the second product can be computed at the first one.
  static bool can_combine(CallInst& first, CallInst& second) {
    MatrixElements one = elements_of(first), other = elements_of(second);
    if (types_of(first) != types_of(second) || one.b[0] != other.b[0] || one.b[1] != other.b[1]) return false;
    return all_of(ArrayRef<Value*>{other.a[0], other.a[1], other.c[0], other.c[1]},
                  [&](Value* value) { return value != &first && kiln::move_before(value, first); });
  }

  void multiply(CallInst& first, CallInst* second) {
    builder_.SetInsertPoint(&first);
    MatrixType type = types_of(first).first;
    MatrixElements elements = elements_of(first), others = second ? elements_of(*second) : MatrixElements{};
    Type* real = builder_.getFloatTy();
    Value* zero = ConstantFP::get(real, 0);
    SmallVector<Value*> arguments{left(elements.a, type), second ? left(others.a, type) : builder_.getInt32(0),
                                  right(elements.b, type)};
    for (Value* sum : elements.c) arguments.push_back(moved(sum, to_tensor_));
    for (Value* sum : others.c) arguments.push_back(second ? moved(sum, to_tensor_) : zero);
    SmallVector<Type*> types;
    for (Value* argument : arguments) types.push_back(argument->getType());
    const char* name = type == MatrixType::kHalf ? "f16" : "bf16";
    std::string text = (Twine("mma.sync.aligned.m16n8k8.row.col.f32.") + name + "." + name +
                        ".f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};")
                           .str();
    Value* sums =
        convergent_asm(StructType::get(real, real, real, real), types, text, "=f,=f,=f,=f,r,r,r,f,f,f,f", arguments);
    SmallVector<std::pair<CallInst*, unsigned>, 2> products{{&first, 0}};
    if (second) products.push_back({second, 2});
    for (auto [product, index] : products) {
      Value* one = moved(builder_.CreateExtractValue(sums, index), to_apple_);
      Value* two = moved(builder_.CreateExtractValue(sums, index + 1), to_apple_);
      product->replaceAllUsesWith(packed(one, two, builder_));
    }
    for (auto [product, index] : products) product->eraseFromParent();
  }

  // An instruction that the whole simdgroup executes together.
  Value* convergent_asm(Type* result, ArrayRef<Type*> types, StringRef text, StringRef constraints,
                        ArrayRef<Value*> arguments) {
    FunctionType* type = FunctionType::get(result, types, false);
    CallInst* call =
        builder_.CreateCall(type, InlineAsm::get(type, text, constraints, /*hasSideEffects=*/false), arguments);
    call->setConvergent();
    call->setDoesNotAccessMemory();
    call->setDoesNotThrow();
    return call;
  }

  Value* left(Value* const (&elements)[2], MatrixType type) {
    Value*& made = left_[{elements[0], elements[1]}];
    if (!made) made = moved(pair_of(elements, type), to_tensor_);
    return made;
  }

  Value* right(Value* const (&elements)[2], MatrixType type) {
    Value*& made = right_[{elements[0], elements[1]}];
    if (!made) {
      Type* word = builder_.getInt32Ty();
      made = convergent_asm(word, {word}, "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
                            {moved(pair_of(elements, type), to_tensor_)});
    }
    return made;
  }

  // Both elements as one word, in the type that they had before they became floats.
  Value* pair_of(Value* const (&elements)[2], MatrixType type) {
    Type* word = builder_.getInt32Ty();
    if (type == MatrixType::kHalf) {
      Value* pair = PoisonValue::get(FixedVectorType::get(builder_.getHalfTy(), 2));
      for (unsigned i = 0; i < 2; ++i) pair = builder_.CreateInsertElement(pair, half_of(elements[i]), i);
      return builder_.CreateBitCast(pair, word);
    }
    Value* low = builder_.CreateLShr(builder_.CreateBitCast(elements[0], word), 16);
    return builder_.CreateOr(low, builder_.CreateAnd(builder_.CreateBitCast(elements[1], word), 0xffff0000u));
  }

  Value* half_of(Value* value) {
    Type* half = builder_.getHalfTy();
    if (auto* extended = dyn_cast<FPExtInst>(value); extended && extended->getSrcTy() == half)
      return extended->getOperand(0);
    if (auto* element = dyn_cast<ExtractElementInst>(value))
      if (auto* extended = dyn_cast<FPExtInst>(element->getVectorOperand()))
        return builder_.CreateExtractElement(extended->getOperand(0), element->getIndexOperand());
    return builder_.CreateFPTrunc(value, half);
  }

  Value* moved(Value* value, Value* source) {
    if (!source) return value;
    Type* word = builder_.getInt32Ty();
    Value* bits = builder_.CreateBitCast(value, word);
    Value* result = builder_.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_idx_i32, {},
                                             {builder_.getInt32(~0u), bits, source, builder_.getInt32(31)});
    return builder_.CreateBitCast(result, value->getType());
  }

  using Fragments = DenseMap<std::pair<Value*, Value*>, Value*>;

  const ArrayRef<ConvergencePoint> points_;
  const Masks& masks_;
  IRBuilder<> builder_;
  Value *to_tensor_ = nullptr, *to_apple_ = nullptr;  // the lane whose elements a lane takes; null: its own
  Fragments left_, right_;                            // of one block
};

}  // namespace

void multiply_by_tensor_cores(Function& body, ArrayRef<ConvergencePoint> points, const Masks& masks, MatrixMap map) {
  if (none_of(points, [](const ConvergencePoint& point) { return point.is_product; })) return;
  TensorProducts products(body, points, masks, map);
  for (BasicBlock& block : body) products.run(block);
}

}  // namespace kiln
