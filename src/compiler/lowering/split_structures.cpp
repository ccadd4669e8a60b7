#include "compiler/lowering/split_structures.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <optional>

#include "compiler/lowering/promote_variables.h"

namespace kiln {
namespace {

using namespace llvm;

bool holds_pointer(Type* type) {
  if (type->isPointerTy()) return true;
  if (auto* array = dyn_cast<ArrayType>(type)) return holds_pointer(array->getElementType());
  auto* structure = dyn_cast<StructType>(type);
  return structure && any_of(structure->elements(), holds_pointer);
}

class Splitter {
 public:
  explicit Splitter(AllocaInst& variable)
      : variable_(variable), layout_(variable.getModule()->getDataLayout()), bytes_(0) {}

  // False, and nothing is changed, if a use of the structure could reach from one member into another.
  bool run() {
    auto* type = dyn_cast<StructType>(variable_.getAllocatedType());
    if (!type || !variable_.isStaticAlloca() || variable_.isArrayAllocation() || !holds_pointer(type)) return false;
    bytes_ = layout_.getTypeAllocSize(type);
    add_members(type, 0);
    if (members_.size() < 2 || !collect(variable_, 0)) return false;
    for (Member& member : members_) {
      IRBuilder<> builder(&variable_);
      member.variable = builder.CreateAlloca(member.type);
      member.variable->setAlignment(commonAlignment(variable_.getAlign(), member.begin));
    }
    for (const Access& access : accesses_) rewrite(access);
    for (Instruction* mark : marks_) mark->eraseFromParent();
    for (Instruction* address : reverse(addresses_)) address->eraseFromParent();
    variable_.eraseFromParent();
    return true;
  }

 private:
  struct Member {
    uint64_t begin, end;
    Type* type;
    AllocaInst* variable = nullptr;
  };
  struct Access {
    Use* use;  // of an address in the structure
    uint64_t offset;
    Member* member;  // null: a copy or fill of several members
  };

  void add_members(Type* type, uint64_t begin) {
    if (auto* structure = dyn_cast<StructType>(type)) {
      const StructLayout* members = layout_.getStructLayout(structure);
      for (unsigned i = 0; i < structure->getNumElements(); ++i)
        add_members(structure->getElementType(i), begin + members->getElementOffset(i));
    } else if (uint64_t bytes = layout_.getTypeAllocSize(type)) {
      members_.push_back({begin, begin + bytes, type});
    }
  }

  Member* member_of(uint64_t begin, uint64_t bytes) {
    for (Member& member : members_)
      if (begin >= member.begin && begin < member.end) return bytes <= member.end - begin ? &member : nullptr;
    return nullptr;
  }

  bool collect(Instruction& address, uint64_t offset) {
    for (Use& use : address.uses()) {
      if (auto* gep = dyn_cast<GetElementPtrInst>(use.getUser())) {
        std::optional<uint64_t> constant = constant_part(*gep, offset);
        if (!constant) return false;
        if (gep->hasAllConstantIndices()) {
          addresses_.push_back(gep);
          if (!collect(*gep, *constant)) return false;
          continue;
        }
        Member* member = member_of(*constant, 1);
        if (!member || !member->type->isArrayTy()) return false;
        accesses_.push_back({&use, offset, member});
      } else if (auto* mark = dyn_cast<LifetimeIntrinsic>(use.getUser())) {
        marks_.push_back(mark);
      } else if (auto* intrinsic = dyn_cast<MemIntrinsic>(use.getUser())) {
        if (!is_splittable(*intrinsic, offset)) return false;
        accesses_.push_back({&use, offset, nullptr});
      } else {
        Type* type = accessed_type(use);
        Member* member = type ? member_of(offset, layout_.getTypeStoreSize(type)) : nullptr;
        if (!member) return false;
        accesses_.push_back({&use, offset, member});
      }
    }
    return true;
  }

  // The offset given by the indices before the first one that is not constant.
  std::optional<uint64_t> constant_part(GetElementPtrInst& gep, uint64_t offset) const {
    for (auto index = gep_type_begin(gep); index != gep_type_end(gep); ++index) {
      auto* value = dyn_cast<ConstantInt>(index.getOperand());
      if (!value) break;
      if (StructType* structure = index.getStructTypeOrNull())
        offset += layout_.getStructLayout(structure)->getElementOffset(static_cast<unsigned>(value->getZExtValue()));
      else
        offset += static_cast<uint64_t>(value->getSExtValue()) * index.getSequentialElementStride(layout_);
    }
    return offset < bytes_ ? std::optional(offset) : std::nullopt;
  }

  static Type* accessed_type(const Use& use) {
    if (auto* load = dyn_cast<LoadInst>(use.getUser())) return load->isSimple() ? load->getType() : nullptr;
    auto* store = dyn_cast<StoreInst>(use.getUser());
    bool is_address = store && use.getOperandNo() == StoreInst::getPointerOperandIndex();
    return is_address && store->isSimple() ? store->getValueOperand()->getType() : nullptr;
  }

  // Copies between variables only: each part of a copy to or from an argument would need a guard of its own.
  bool is_splittable(const MemIntrinsic& intrinsic, uint64_t offset) const {
    auto* length = dyn_cast<ConstantInt>(intrinsic.getLength());
    if (!length || intrinsic.isVolatile() || length->getZExtValue() > bytes_ - offset) return false;
    auto* transfer = dyn_cast<MemTransferInst>(&intrinsic);
    if (!transfer) return true;
    Value *target = variable_at(transfer->getDest()), *source = variable_at(transfer->getSource());
    return target != source && isa<AllocaInst>(target) && isa<AllocaInst, GlobalVariable>(source);
  }

  Value* variable_at(Value* address) const {
    APInt offset(64, 0);
    return address->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true);
  }

  static Value* at(IRBuilder<>& builder, Value* base, uint64_t offset) {
    return offset ? builder.CreateGEP(builder.getInt8Ty(), base, builder.getInt64(offset)) : base;
  }

  void rewrite(const Access& access) {
    auto* user = cast<Instruction>(access.use->getUser());
    IRBuilder<> builder(user);
    if (access.member) {
      // The address may be before the member, if the remaining indices lead into it.
      if (auto* gep = dyn_cast<GetElementPtrInst>(user)) gep->setIsInBounds(false);
      access.use->set(at(builder, access.member->variable, access.offset - access.member->begin));
      return;
    }
    auto* intrinsic = cast<MemIntrinsic>(user);
    uint64_t end = access.offset + cast<ConstantInt>(intrinsic->getLength())->getZExtValue();
    for (const Member& member : members_) {
      uint64_t first = std::max(access.offset, member.begin), last = std::min(end, member.end);
      if (first >= last) continue;
      auto* part = cast<MemIntrinsic>(builder.Insert(intrinsic->clone()));
      builder.SetInsertPoint(part);
      for (Use& operand : part->args()) {
        if (!operand->getType()->isPointerTy()) continue;
        bool is_ours = operand.getOperandNo() == access.use->getOperandNo();
        operand.set(is_ours ? at(builder, member.variable, first - member.begin)
                            : at(builder, operand.get(), first - access.offset));
      }
      builder.SetInsertPoint(user);
      part->setLength(ConstantInt::get(intrinsic->getLength()->getType(), last - first));
      part->setDestAlignment(Align(1));
      if (auto* transfer = dyn_cast<MemTransferInst>(part)) transfer->setSourceAlignment(Align(1));
    }
    intrinsic->eraseFromParent();
  }

  AllocaInst& variable_;
  const DataLayout& layout_;
  uint64_t bytes_;
  SmallVector<Member> members_;
  SmallVector<Access> accesses_;
  SmallVector<Instruction*> marks_;
  SmallVector<Instruction*> addresses_;  // each after the addresses that it is computed from
};

}  // namespace

void split_structures(Function& body) {
  SmallVector<AllocaInst*> variables;
  for (Instruction& instruction : body.getEntryBlock())
    if (auto* variable = dyn_cast<AllocaInst>(&instruction)) variables.push_back(variable);
  bool changed = false;
  for (AllocaInst* variable : variables) changed |= Splitter(*variable).run();
  if (changed) promote_variables(*body.getParent());
}

}  // namespace kiln
