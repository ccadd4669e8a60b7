#include "compiler/nvptx/predicated_accesses.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <optional>
#include <string>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/nvptx/ptx_generator.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

std::string space_of(const Value* pointer) {
  switch (pointer->getType()->getPointerAddressSpace()) {
    case kGlobalSpace: return ".global";
    case kSharedSpace: return ".shared";
    default: return "";
  }
}

// An address was cast to a generic one for the select between it and the zeros.
Value* in_own_space(Value* pointer) {
  auto* cast = dyn_cast<AddrSpaceCastOperator>(pointer);
  return cast && (cast->getSrcAddressSpace() == kSharedSpace || cast->getSrcAddressSpace() == kGlobalSpace)
             ? cast->getPointerOperand()
             : pointer;
}

// The registers in which PTX moves a value: `count` of type `part`.
struct AccessRegisters {
  Type* part;
  unsigned count;

  unsigned bits() const { return part->getScalarSizeInBits(); }
  std::string vector() const { return count == 1 ? "" : concat(".v", count); }
  // Bytes and halves are moved in a register of 32 bits: `ptxas` makes a permutation of each zero of 16 bits.
  bool is_widened() const { return bits() < 32; }
  std::string type() const { return is_widened() ? concat(".u", bits()) : concat(".b", bits()); }
  std::string constraint() const {
    if (part->isFloatTy()) return "f";
    if (part->isDoubleTy()) return "d";
    return bits() == 64 ? "l" : "r";
  }
  Type* register_type() const { return is_widened() ? Type::getInt32Ty(part->getContext()) : part; }
};

// nullopt if PTX cannot move the value in one instruction.
std::optional<AccessRegisters> access_registers_of(Type* type, Align alignment, const DataLayout& layout) {
  uint64_t bytes = layout.getTypeStoreSize(type);
  LLVMContext& context = type->getContext();
  if (alignment.value() < bytes) return std::nullopt;
  if (type->isFloatTy() || type->isDoubleTy()) return AccessRegisters{type, 1};
  if (type->isPointerTy()) return AccessRegisters{Type::getInt64Ty(context), 1};
  if (layout.getTypeSizeInBits(type) != 8 * bytes) return std::nullopt;
  auto* vector = dyn_cast<FixedVectorType>(type);
  if (!vector && !type->isIntegerTy() && !type->isHalfTy() && !type->isBFloatTy()) return std::nullopt;
  if (vector && (vector->getElementType()->isFloatTy() || vector->getElementType()->isDoubleTy()) && bytes <= 16 &&
      (bytes == 8 || bytes == 16))
    return AccessRegisters{vector->getElementType(), vector->getNumElements()};
  if (vector && vector->getElementType()->isPointerTy()) return std::nullopt;
  switch (bytes) {
    case 1:
    case 2:
    case 4: return AccessRegisters{Type::getIntNTy(context, static_cast<unsigned>(8 * bytes)), 1};
    case 8:
      if (!vector || vector->getScalarSizeInBits() == 64) return AccessRegisters{Type::getInt64Ty(context), 1};
      return AccessRegisters{Type::getInt32Ty(context), 2};
    case 16:
      if (vector && vector->getScalarSizeInBits() == 64) return AccessRegisters{Type::getInt64Ty(context), 2};
      return AccessRegisters{Type::getInt32Ty(context), 4};
    default: return std::nullopt;
  }
}

std::string registers(const AccessRegisters& access, unsigned first) {
  std::string list;
  for (unsigned i = 0; i < access.count; ++i) list += concat(i == 0 ? "" : ", ", "$", first + i);
  return access.count == 1 ? list : concat("{", list, "}");
}

CallInst* assemble(IRBuilderBase& builder, const std::string& text, const std::string& constraints, Type* result,
                   ArrayRef<Value*> arguments, bool has_effect) {
  SmallVector<Type*> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  auto* type = FunctionType::get(result, types, false);
  CallInst* call = builder.CreateCall(InlineAsm::get(type, text, constraints, has_effect), arguments);
  call->setDoesNotThrow();
  if (!has_effect) call->setDoesNotAccessMemory();
  return call;
}

// "add.f32"; empty if there is no such instruction.
std::string operation_of(const AtomicRMWInst& update) {
  Type* type = update.getType();
  auto bits = static_cast<unsigned>(type->getPrimitiveSizeInBits());
  if (bits != 32 && bits != 64) return "";
  switch (update.getOperation()) {
    case AtomicRMWInst::FAdd: return concat("add.f", bits);
    case AtomicRMWInst::Add: return concat("add.u", bits);
    case AtomicRMWInst::And: return concat("and.b", bits);
    case AtomicRMWInst::Or: return concat("or.b", bits);
    case AtomicRMWInst::Xor: return concat("xor.b", bits);
    case AtomicRMWInst::Max: return concat("max.s", bits);
    case AtomicRMWInst::Min: return concat("min.s", bits);
    case AtomicRMWInst::UMax: return concat("max.u", bits);
    case AtomicRMWInst::UMin: return concat("min.u", bits);
    default: return "";
  }
}

class Predicator {
 public:
  explicit Predicator(Function& function) : layout_(function.getDataLayout()), builder_(function.getContext()) {}

  void run(Function& function) {
    for (Instruction& instruction : make_early_inc_range(instructions(function))) {
      if (auto* load = dyn_cast<LoadInst>(&instruction))
        predicate(*load);
      else if (auto* store = dyn_cast<StoreInst>(&instruction))
        predicate(*store);
    }
    for (Instruction* guard : guards_)
      if (guard->use_empty()) guard->eraseFromParent();
  }

 private:
  void predicate(LoadInst& load) {
    auto* guard = dyn_cast<SelectInst>(load.getPointerOperand());
    if (!guard || !load.isSimple() || !is_zeros(guard->getFalseValue())) return;
    Value *pointer = in_own_space(guard->getTrueValue()), *condition = guard->getCondition();
    builder_.SetInsertPoint(&load);
    bool is_constant = load.hasMetadata(LLVMContext::MD_invariant_load);
    Value* value = load_value(load.getType(), pointer, load.getAlign(), condition, is_constant);
    if (!value) return;
    load.replaceAllUsesWith(value);
    load.eraseFromParent();
    guards_.insert(guard);
  }

  void predicate(StoreInst& store) {
    auto* guard = dyn_cast<SelectInst>(store.getPointerOperand());
    if (!guard || !store.isSimple() || !is_sink(guard->getFalseValue())) return;
    builder_.SetInsertPoint(&store);
    Value* pointer = in_own_space(guard->getTrueValue());
    if (!store_value(store.getValueOperand(), pointer, store.getAlign(), guard->getCondition())) return;
    store.eraseFromParent();
    guards_.insert(guard);
  }

  // The type of a vector whose components are accessed one by one, since they are aligned and the whole is not.
  FixedVectorType* components(Type* type, Align alignment) const {
    auto* vector = dyn_cast<FixedVectorType>(type);
    bool fits = vector && vector->getNumElements() <= 8 && component_bits(vector) % 8 == 0 &&
                access_registers_of(vector->getElementType(), alignment, layout_);
    return fits ? vector : nullptr;
  }
  Value* component_address(FixedVectorType* vector, Value* pointer, unsigned i) {
    return builder_.CreateConstGEP1_64(builder_.getInt8Ty(), pointer, i * component_bits(vector) / 8);
  }
  Align component_alignment(FixedVectorType* vector, Align alignment, unsigned i) const {
    return commonAlignment(alignment, i * component_bits(vector) / 8);
  }
  // Of pointers, too, whose size the type does not know.
  uint64_t component_bits(FixedVectorType* vector) const { return layout_.getTypeSizeInBits(vector->getElementType()); }

  Value* load_value(Type* type, Value* pointer, Align alignment, Value* condition, bool is_constant) {
    std::optional<AccessRegisters> access = access_registers_of(type, alignment, layout_);
    if (!access) {
      FixedVectorType* vector = components(type, alignment);
      if (!vector) return nullptr;
      Value* result = PoisonValue::get(vector);
      for (unsigned i = 0; i < vector->getNumElements(); ++i)
        result =
            builder_.CreateInsertElement(result,
                                         load_value(vector->getElementType(), component_address(vector, pointer, i),
                                                    component_alignment(vector, alignment, i), condition, is_constant),
                                         i);
      return result;
    }
    is_constant = is_constant && pointer->getType()->getPointerAddressSpace() == kGlobalSpace;
    std::string text = "{ ", constraints;
    for (unsigned i = 0; i < access->count; ++i) {
      text += concat("mov.b", std::max(access->bits(), 32u), " $", i, ", 0; ");
      constraints += concat("=&", access->constraint(), ",");
    }
    text += concat("@$", access->count, " ld", space_of(pointer), is_constant ? ".nc" : "", access->vector(),
                   access->type(), " ", registers(*access, 0), ", [$", access->count + 1, "]; }");
    constraints += concat("b,l", is_constant ? "" : ",~{memory}");
    SmallVector<Type*> results(access->count, access->register_type());
    Type* result = access->count == 1 ? results[0] : StructType::get(builder_.getContext(), results);
    CallInst* call = assemble(builder_, text, constraints, result, {condition, pointer}, /*has_effect=*/!is_constant);
    return joined(*access, call, type);
  }

  Value* joined(const AccessRegisters& access, Value* loaded, Type* type) {
    if (access.count == 1) {
      if (access.is_widened()) loaded = builder_.CreateTrunc(loaded, access.part);
      return type->isPointerTy() ? builder_.CreateIntToPtr(loaded, type) : builder_.CreateBitCast(loaded, type);
    }
    Value* all = PoisonValue::get(FixedVectorType::get(access.part, access.count));
    for (unsigned i = 0; i < access.count; ++i)
      all = builder_.CreateInsertElement(all, builder_.CreateExtractValue(loaded, i), i);
    return builder_.CreateBitCast(all, type);
  }

  bool store_value(Value* value, Value* pointer, Align alignment, Value* condition) {
    std::optional<AccessRegisters> access = access_registers_of(value->getType(), alignment, layout_);
    if (!access) {
      FixedVectorType* vector = components(value->getType(), alignment);
      if (!vector) return false;
      for (unsigned i = 0; i < vector->getNumElements(); ++i)
        store_value(builder_.CreateExtractElement(value, i), component_address(vector, pointer, i),
                    component_alignment(vector, alignment, i), condition);
      return true;
    }
    SmallVector<Value*> arguments{condition, pointer};
    std::string constraints = "b,l";
    if (value->getType()->isPointerTy()) value = builder_.CreatePtrToInt(value, builder_.getInt64Ty());
    Type* whole = access->count == 1 ? access->part : FixedVectorType::get(access->part, access->count);
    value = builder_.CreateBitCast(value, whole);
    for (unsigned i = 0; i < access->count; ++i) {
      Value* part = access->count == 1 ? value : builder_.CreateExtractElement(value, i);
      if (access->is_widened()) part = builder_.CreateZExt(part, access->register_type());
      arguments.push_back(part);
      constraints += concat(",", access->constraint());
    }
    std::string text =
        concat("@$0 st", space_of(pointer), access->vector(), access->type(), " [$1], ", registers(*access, 2), ";");
    assemble(builder_, text, concat(constraints, ",~{memory}"), builder_.getVoidTy(), arguments, /*has_effect=*/true);
    return true;
  }

  const DataLayout& layout_;
  IRBuilder<> builder_;
  SmallPtrSet<Instruction*, 16> guards_;
};

}  // namespace

void predicate_accesses(Function& function) { Predicator(function).run(function); }

bool is_own_memory(const Value* pointer) { return is_zeros(pointer) || is_sink(pointer); }

bool can_be_predicated(const AtomicRMWInst& update) {
  return update.use_empty() && !update.isVolatile() && update.getOrdering() == AtomicOrdering::Monotonic &&
         !operation_of(update).empty();
}

bool can_be_predicated(const LoadInst& load) {
  return access_registers_of(load.getType(), load.getAlign(), load.getDataLayout()).has_value();
}

CallInst* predicate_update(AtomicRMWInst& update, Value* condition) {
  IRBuilder<> builder(&update);
  Value* value = update.getValOperand();
  const char* constraint = value->getType()->isFloatTy()                      ? "f"
                           : value->getType()->isDoubleTy()                   ? "d"
                           : value->getType()->getPrimitiveSizeInBits() == 64 ? "l"
                                                                              : "r";
  std::string text = concat("@$0 red", space_of(update.getPointerOperand()), ".", operation_of(update), " [$1], $2;");
  CallInst* call = assemble(builder, text, concat("b,l,", constraint, ",~{memory}"), builder.getVoidTy(),
                            {condition, update.getPointerOperand(), value}, /*has_effect=*/true);
  update.eraseFromParent();
  return call;
}

}  // namespace kiln
