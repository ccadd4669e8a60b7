#include "compiler/lowering/matrix_products.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include "compiler/ir/convergence_point.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "core/cpu_image.h"
#include "kiln/error.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr unsigned kFirstElement = 3;  // index of the call's argument, after the line and the types

Value* lane_of_thread(IRBuilder<>& builder) {
  Type* word = builder.getInt32Ty();
  Module& module = *builder.GetInsertBlock()->getModule();
  Function& value = pseudo_intrinsic(module, kValueFunction, FunctionType::get(word, {word}, false));
  return builder.CreateAnd(builder.CreateCall(&value, {builder.getInt32(kIndexInThreadgroup)}), 31);
}

void expand(CallInst& product) {
  IRBuilder<> builder(&product);
  Module& module = *product.getModule();
  Type *word = builder.getInt32Ty(), *whole = builder.getInt64Ty(), *address = builder.getPtrTy();
  Function& collective = pseudo_intrinsic(
      module, kCollectiveFunction, FunctionType::get(whole, {word, word, word, address, whole, whole, whole}, false));
  auto shuffle = [&](Value* of, Value* from) -> Value* {
    Value* bits = builder.CreateZExt(builder.CreateBitCast(of, word), whole);
    CallInst* call = builder.CreateCall(
        &collective,
        {product.getArgOperand(0), builder.getInt32(static_cast<uint32_t>(CpuExchange::kShuffle)), builder.getInt32(32),
         ConstantPointerNull::get(builder.getPtrTy()), builder.getInt64(0), bits, builder.CreateZExt(from, whole)});
    call->setConvergent();
    return builder.CreateBitCast(builder.CreateTrunc(call, word), of->getType());
  };
  auto [first, second] = multiply_by_lanes(
      elements_of(product), matrix_sources(lane_of_thread(builder), MatrixMap::kApple, builder), builder, shuffle);
  product.replaceAllUsesWith(packed(first, second, builder));
  product.eraseFromParent();
}

}  // namespace

bool is_matrix_product(const Instruction& instruction) { return calls(instruction, kMatrixProductFunction); }

MatrixElements elements_of(const CallInst& product) {
  auto element = [&](unsigned i) { return product.getArgOperand(kFirstElement + i); };
  return {{element(0), element(1)}, {element(2), element(3)}, {element(4), element(5)}};
}

std::pair<MatrixType, MatrixType> types_of(const CallInst& product) {
  auto type = [&](unsigned argument) {
    auto* number = dyn_cast<ConstantInt>(product.getArgOperand(argument));
    if (!number) throw InternalError("the type of a matrix is no constant");
    return static_cast<MatrixType>(number->getZExtValue());
  };
  return {type(1), type(2)};
}

void assign_matrix_elements(Module& module, MatrixMap map) {
  Function* matrix_lane = module.getFunction(kMatrixLaneFunction);
  if (!matrix_lane) return;
  for (User* user : make_early_inc_range(matrix_lane->users())) {
    auto* call = cast<CallInst>(user);
    IRBuilder<> builder(call);
    Value* lane = lane_of_thread(builder);
    // The lane that has the same elements in Apple's map.
    if (map == MatrixMap::kTensor) {
      Value* stays = builder.CreateAnd(lane, 0x11);
      Value* up = builder.CreateShl(builder.CreateAnd(lane, 2), 2);
      Value* down = builder.CreateLShr(builder.CreateAnd(lane, 0xc), 1);
      lane = builder.CreateOr(builder.CreateOr(stays, up), down);
    }
    call->replaceAllUsesWith(lane);
    call->eraseFromParent();
  }
}

MatrixSources matrix_sources(Value* lane, MatrixMap map, IRBuilder<>& builder) {
  bool is_apple = map == MatrixMap::kApple;
  // The bits that stay of a lane; k gives the others.
  Value* row = builder.CreateAnd(lane, is_apple ? lane_in_row(31, 0) : 0x1c);
  Value* columns = builder.CreateAnd(lane, is_apple ? lane_in_column(31, 0) : 3);
  MatrixSources sources;
  for (unsigned k = 0; k < kMatrixSize; ++k) {
    sources.row[k] = builder.CreateOr(row, is_apple ? lane_in_row(0, k) : k / 2);
    sources.columns[k] = builder.CreateOr(columns, is_apple ? lane_in_column(0, k) : k << 2);
  }
  return sources;
}

std::pair<Value*, Value*> multiply_by_lanes(const MatrixElements& elements, const MatrixSources& sources,
                                            IRBuilder<>& builder,
                                            function_ref<Value*(Value* value, Value* source)> shuffle) {
  Value *first = elements.c[0], *second = elements.c[1];
  for (unsigned k = 0; k < kMatrixSize; ++k) {
    Value* factor = shuffle(elements.a[k % 2], sources.row[k]);
    auto add = [&](Value* element, Value* sum) {
      return builder.CreateIntrinsic(Intrinsic::fma, {sum->getType()},
                                     {factor, shuffle(element, sources.columns[k]), sum});
    };
    first = add(elements.b[0], first);
    second = add(elements.b[1], second);
  }
  return {first, second};
}

Value* packed(Value* first, Value* second, IRBuilder<>& builder) {
  auto bits = [&](Value* value) {
    return builder.CreateZExt(builder.CreateBitCast(value, builder.getInt32Ty()), builder.getInt64Ty());
  };
  // One after the other: the order of the instructions must not depend on the compiler that Kiln is built with.
  Value* low = bits(first);
  return builder.CreateOr(low, builder.CreateShl(bits(second), 32));
}

void expand_matrix_products(Function& function) {
  SmallVector<CallInst*> products;
  for (Instruction& instruction : instructions(function))
    if (is_matrix_product(instruction)) products.push_back(cast<CallInst>(&instruction));
  for (CallInst* product : products) expand(*product);
}

}  // namespace kiln
