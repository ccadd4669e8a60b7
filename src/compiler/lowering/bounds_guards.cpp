#include "compiler/lowering/bounds_guards.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/Utils/Local.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "compiler/analysis/offset_zeros.h"
#include "compiler/analysis/value_ranges.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/sections.h"
#include "compiler/ir/thread_ranges.h"

namespace kiln {
namespace {

using namespace llvm;

// Low bits of an offset that are looked for: no access is wider than 64 bytes.
constexpr unsigned kMostZeros = 6;

// The memory that an access through a pointer may reach: `bytes` bytes from `first` on. Stores may reach `writable` of
// them (all or none).
struct Bounds {
  Value* base = nullptr;   // a pointer; offsets count from here
  Value* first = nullptr;  // i64, offset of the first byte
  Value* bytes = nullptr;  // i64
  Value* writable = nullptr;
  Value* unknown = nullptr;  // i1: the origin is unknown, and any origin that is possible is allowed

  bool operator==(const Bounds&) const = default;
};

class Guards {
 public:
  Guards(Function& body, const KernelUnit& unit, std::span<const KernelParameter> parameters,
         bool compares_with_launch = false)
      : body_(body),
        module_(*body.getParent()),
        context_(body.getContext()),
        layout_(module_.getDataLayout()),
        limits_(unit) {
    IRBuilder<> builder(&*body.getEntryBlock().getFirstInsertionPt());
    int64_ = builder.getInt64Ty();
    Value* null = ConstantPointerNull::get(builder.getPtrTy());
    Value* zero = builder.getInt64(0);
    Value* known = builder.getFalse();
    unlimited_ = {null, zero, builder.getInt64(-1), builder.getInt64(-1), known};
    nothing_ = {null, zero, zero, zero, known};
    unknown_ = {null, zero, zero, zero, builder.getTrue()};
    for (size_t i = 0; i < parameters.size(); ++i) {
      auto* argument = body.getArg(static_cast<unsigned>(3 * i));
      Value *first = zero, *bytes = body.getArg(static_cast<unsigned>(3 * i + 2));
      if (const uint64_t known_bytes = parameters[i].known_bytes) {
        if (!compares_with_launch) bytes = builder.getInt64(known_bytes);
        known_bytes_[argument] = known_bytes;
      }
      if (!parameters[i].from_zero) {
        first = body.getArg(static_cast<unsigned>(3 * i + 1));
        bytes = builder.CreateSub(bytes, first);
      }
      known_from_start_.insert(bytes);
      arguments_[argument] = {argument, first, bytes, parameters[i].is_written() ? bytes : zero, known};
      if (parameters[i].is_written()) written_.insert(argument);
      guaranteed_[argument] = std::max<uint64_t>(parameters[i].guaranteed_bytes(), parameters[i].known_bytes);
      alignments_[argument] = Align(std::max(parameters[i].alignment, unit.assumed_alignment(parameters[i])));
      if (parameters[i].is_batch) describe_elements(*argument);
    }
  }

  // Atomics keep their alignment: with less, LLVM would call functions for them.
  void describe_accesses() {
    for (Instruction& instruction : instructions(body_)) {
      if (auto* load = dyn_cast<LoadInst>(&instruction)) {
        Origins origins = origins_of(load->getPointerOperand());
        if (!load->isAtomic())
          load->setAlignment(
              alignment_in_variables(load->getPointerOperand(), std::min(load->getAlign(), origins.alignment)));
        if (origins.are_constant && load->isSimple())
          load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(context_, {}));
      } else if (auto* store = dyn_cast<StoreInst>(&instruction)) {
        if (!store->isAtomic()) store->setAlignment(alignment_of(store->getPointerOperand(), store->getAlign()));
      } else if (auto* intrinsic = dyn_cast<MemIntrinsic>(&instruction)) {
        intrinsic->setDestAlignment(alignment_of(intrinsic->getDest(), intrinsic->getDestAlign().valueOrOne()));
        if (auto* transfer = dyn_cast<MemTransferInst>(intrinsic))
          transfer->setSourceAlignment(alignment_of(transfer->getSource(), transfer->getSourceAlign().valueOrOne()));
      }
    }
  }

  void run() {
    materialize_addresses();
    find_sharable();
    SmallVector<Instruction*> accesses;
    for (Instruction& instruction : instructions(body_))
      if (isa<LoadInst, StoreInst, AtomicRMWInst, AtomicCmpXchgInst, MemIntrinsic>(instruction))
        accesses.push_back(&instruction);
    // Runs before the first guard changes the control flow.
    for (Instruction* access : accesses) prove(*access);
    for (Instruction* access : accesses) {
      if (auto* load = dyn_cast<LoadInst>(access))
        guard_load(*load);
      else if (auto* store = dyn_cast<StoreInst>(access))
        guard_store(*store);
      else if (auto* update = dyn_cast<AtomicRMWInst>(access))
        guard_atomic(*update, update->getPointerOperand(), update->getValOperand()->getType());
      else if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(access))
        guard_atomic(*exchange, exchange->getPointerOperand(), exchange->getCompareOperand()->getType());
      else
        guard_memory_intrinsic(*cast<MemIntrinsic>(access));
    }
  }

 private:
  // The arrays of a batch, each of which has the extent of the first.
  void describe_elements(Argument& batch) {
    for (User* user : batch.users()) {
      auto* element = dyn_cast<CallInst>(user);
      if (!element || !calls(*element, kElementFunction)) continue;
      Bounds bounds = arguments_[&batch];
      bounds.base = element;
      arguments_[element] = bounds;
      if (written_.contains(&batch)) written_.insert(element);
      alignments_[element] = alignments_[&batch];
    }
  }

  // ---- Origins of a pointer

  // Null: no check is needed.
  std::optional<Bounds> bounds_of(Instruction& access, Value* pointer) {
    if (proved_.contains({&access, pointer})) return std::nullopt;
    SmallVector<Value*> origins = origins_from(pointer);
    if (all_of(origins, [&](Value* origin) { return is_own(origin); })) return std::nullopt;
    // Such a pointer is checked by its offset.
    if (stays_in_variables(pointer)) return nothing_;
    return trace(pointer);
  }

  // The origins of the pointer, none of which is computed from another pointer.
  static SmallVector<Value*> origins_from(Value* start) {
    SmallVector<Value*> origins, work{start};
    SmallPtrSet<Value*, 8> seen;
    while (!work.empty()) {
      Value* pointer = work.pop_back_val();
      while (Value* source = source_of(pointer)) pointer = source;
      if (!seen.insert(pointer).second) continue;
      if (auto* phi = dyn_cast<PHINode>(pointer)) {
        work.append(phi->op_begin(), phi->op_end());
      } else if (auto* select = dyn_cast<SelectInst>(pointer)) {
        work.push_back(select->getTrueValue());
        work.push_back(select->getFalseValue());
      } else {
        origins.push_back(pointer);
      }
    }
    return origins;
  }

  // Memory that Kiln's own code accesses.
  bool is_own(Value* origin) const {
    if (arguments_.contains(origin) || bytes_of_variable(origin)) return false;
    if (auto* variable = dyn_cast<GlobalVariable>(origin)) return !is_table(*variable);
    return isa<AllocaInst, Argument, Function>(origin);
  }

  // The size of a private or threadgroup variable, if it is known.
  std::optional<uint64_t> bytes_of_variable(Value* origin) const {
    if (auto* variable = dyn_cast<AllocaInst>(origin)) {
      std::optional<TypeSize> bytes = variable->getAllocationSize(layout_);
      return bytes ? std::optional<uint64_t>(bytes->getFixedValue()) : std::nullopt;
    }
    auto* variable = dyn_cast<GlobalVariable>(origin);
    if (!variable || variable->getSection() != kThreadgroupSection) return std::nullopt;
    return layout_.getTypeAllocSize(variable->getValueType());
  }

  // A constant of the kernel. Accesses of the device library to its own constants are in bounds.
  static bool is_table(const GlobalVariable& variable) {
    return variable.isConstant() && variable.hasInitializer() && !variable.getName().contains("6__kiln");
  }

  struct Origins {
    Align alignment;            // the smallest of the arguments among the origins; large if there is none
    bool are_constant = false;  // all origins are arguments that are not written during a launch
  };

  Align alignment_of(Value* pointer, Align claimed) {
    return alignment_in_variables(pointer, std::min(claimed, origins_of(pointer).alignment));
  }

  // The part of the claimed alignment that can be proved of addresses in variables: a body may have cast them.
  Align alignment_in_variables(Value* pointer, Align claimed) {
    SmallVector<Value*> work{pointer};
    SmallPtrSet<Value*, 8> seen;
    while (!work.empty() && claimed > 1) {
      Value* address = work.pop_back_val();
      if (!seen.insert(address).second) continue;
      if (auto* variable = dyn_cast<AllocaInst>(address)) {
        claimed = std::min(claimed, variable->getAlign());
      } else if (auto* global = dyn_cast<GlobalVariable>(address)) {
        if (global->getSection() == kThreadgroupSection)
          claimed = std::min(claimed, std::max(Align(16), global->getAlign().valueOrOne()));
      } else if (auto* gep = dyn_cast<GEPOperator>(address)) {
        claimed = alignment_of_offset(*gep, claimed);
        work.push_back(gep->getPointerOperand());
      } else if (auto* phi = dyn_cast<PHINode>(address)) {
        work.append(phi->op_begin(), phi->op_end());
      } else if (auto* select = dyn_cast<SelectInst>(address)) {
        work.push_back(select->getTrueValue());
        work.push_back(select->getFalseValue());
      } else if (Operator::getOpcode(address) == Instruction::IntToPtr) {
        KnownBits bits = computeKnownBits(cast<Operator>(address)->getOperand(0), layout_);
        claimed = std::min(claimed, Align(uint64_t{1} << std::min(bits.countMinTrailingZeros(), 12u)));
      } else if (Value* source = source_of(address)) {
        work.push_back(source);
      }
    }
    return claimed;
  }

  Align alignment_of_offset(GEPOperator& gep, Align claimed) {
    for (auto index = gep_type_begin(gep); index != gep_type_end(gep); ++index) {
      if (StructType* structure = index.getStructTypeOrNull()) {
        auto member = static_cast<unsigned>(cast<ConstantInt>(index.getOperand())->getZExtValue());
        claimed = commonAlignment(claimed, layout_.getStructLayout(structure)->getElementOffset(member));
        continue;
      }
      uint64_t stride = index.getSequentialElementStride(layout_);
      if (isAligned(claimed, stride)) continue;
      unsigned zeros = computeKnownBits(index.getOperand(), layout_).countMinTrailingZeros();
      if (zeros >= 12) continue;
      claimed = commonAlignment(claimed, stride << zeros);
    }
    return claimed;
  }

  Origins origins_of(Value* pointer) {
    Origins result{Align(Align::Constant<(1u << 31)>()), true};
    for (Value* origin : origins_from(pointer)) {
      auto found = alignments_.find(origin);
      result.are_constant = result.are_constant && found != alignments_.end() && !written_.contains(origin);
      if (found != alignments_.end())
        result.alignment = std::min(result.alignment, found->second);
      else if (!isa<AllocaInst, Argument, GlobalVariable>(origin))
        result.alignment = Align(1);
    }
    return result;
  }

  // The single pointer that this one is computed from, or null.
  static Value* source_of(Value* pointer) {
    if (auto* gep = dyn_cast<GEPOperator>(pointer)) return gep->getPointerOperand();
    if (auto* freeze = dyn_cast<FreezeInst>(pointer)) return freeze->getOperand(0);
    if (Operator::getOpcode(pointer) == Instruction::BitCast ||
        Operator::getOpcode(pointer) == Instruction::AddrSpaceCast)
      return cast<Operator>(pointer)->getOperand(0);
    if (Operator::getOpcode(pointer) == Instruction::IntToPtr)
      return pointer_in(cast<Operator>(pointer)->getOperand(0));
    return nullptr;
  }

  // The only pointer that an address was computed from; null if there are several, or the search gives up.
  static Value* pointer_in(Value* address) {
    Value* pointer = nullptr;
    SmallVector<Value*> work{address};
    for (unsigned steps = 0; !work.empty(); ++steps) {
      if (steps == 32) return nullptr;
      Value* value = work.pop_back_val();
      switch (Operator::getOpcode(value)) {
        case Instruction::PtrToInt:
          if (pointer) return nullptr;
          pointer = cast<Operator>(value)->getOperand(0);
          break;
        case Instruction::Add:
        case Instruction::Sub:
        case Instruction::And:
        case Instruction::Or:
          work.push_back(cast<Operator>(value)->getOperand(0));
          work.push_back(cast<Operator>(value)->getOperand(1));
          break;
        case Instruction::Freeze:
        case Instruction::ZExt:
        case Instruction::SExt:
        case Instruction::Trunc:
        case Instruction::Mul:
        case Instruction::Shl: work.append(cast<Operator>(value)->op_begin(), cast<Operator>(value)->op_end()); break;
        default: break;
      }
    }
    return pointer;
  }

  Bounds trace(Value* pointer) {
    while (Value* source = source_of(pointer)) pointer = source;
    if (auto found = arguments_.find(pointer); found != arguments_.end()) return found->second;
    if (auto found = merged_.find(pointer); found != merged_.end()) return found->second;
    if (auto* select = dyn_cast<SelectInst>(pointer)) {
      Bounds a = trace(select->getTrueValue()), b = trace(select->getFalseValue());
      if (a == b) return merged_[pointer] = a;
      IRBuilder<> builder(select);
      auto choose = [&](Value* x, Value* y) { return builder.CreateSelect(select->getCondition(), x, y); };
      return merged_[pointer] = {choose(a.base, b.base), choose(a.first, b.first), choose(a.bytes, b.bytes),
                                 choose(a.writable, b.writable), choose(a.unknown, b.unknown)};
    }
    if (auto* phi = dyn_cast<PHINode>(pointer)) return trace(*phi);
    if (is_own(pointer)) return unlimited_;
    if (auto* variable = dyn_cast<AllocaInst>(pointer)) return bounds_of(*variable);
    if (auto* variable = dyn_cast<GlobalVariable>(pointer)) return bounds_of(*variable);
    // UndefValue includes poison.
    return isa<ConstantPointerNull, UndefValue>(pointer) ? nothing_ : unknown_;
  }

  // All bytes of a variable of the kernel.
  Bounds bounds_of(GlobalVariable& variable) {
    Value* bytes = ConstantInt::get(int64_, layout_.getTypeAllocSize(variable.getValueType()));
    return {&variable, nothing_.bytes, bytes, variable.isConstant() ? nothing_.bytes : bytes, nothing_.unknown};
  }
  Bounds bounds_of(AllocaInst& variable) {
    Value* bytes = ConstantInt::get(int64_, variable.getAllocationSize(layout_)->getFixedValue());
    return {&variable, nothing_.bytes, bytes, bytes, nothing_.unknown};
  }

  Bounds trace(PHINode& phi) {
    // A single origin, as in a loop that advances a pointer: its bounds hold unchanged.
    SmallVector<Value*> origins = origins_from(&phi);
    if (origins.size() == 1) return merged_[&phi] = trace(origins[0]);
    IRBuilder<> builder(&phi);
    unsigned count = phi.getNumIncomingValues();
    auto* base = builder.CreatePHI(builder.getPtrTy(), count);
    auto* first = builder.CreatePHI(int64_, count);
    auto* bytes = builder.CreatePHI(int64_, count);
    auto* writable = builder.CreatePHI(int64_, count);
    PHINode* unknown = nullptr;
    if (!all_of(origins, [&](Value* origin) { return trace(origin).unknown == nothing_.unknown; }))
      unknown = builder.CreatePHI(builder.getInt1Ty(), count);
    // Known before cycles come back to it.
    Bounds merged = merged_[&phi] = {base, first, bytes, writable, unknown ? unknown : nothing_.unknown};
    for (unsigned i = 0; i < count; ++i) {
      Bounds incoming = trace(phi.getIncomingValue(i));
      BasicBlock* block = phi.getIncomingBlock(i);
      base->addIncoming(incoming.base, block);
      first->addIncoming(incoming.first, block);
      bytes->addIncoming(incoming.bytes, block);
      writable->addIncoming(incoming.writable, block);
      if (unknown) unknown->addIncoming(incoming.unknown, block);
    }
    return merged;
  }

  // ---- Offsets in variables

  // A pointer's offset from the start of its variable, and the size of the variable. No address becomes an integer, so
  // variables can still be promoted.
  struct Within {
    Value* offset = nullptr;
    Value* bytes = nullptr;
  };

  // Whether all origins are variables or null, followed through pointer arithmetic alone.
  bool stays_in_variables(Value* start) {
    SmallVector<Value*> work{start};
    SmallPtrSet<Value*, 8> seen;
    while (!work.empty()) {
      Value* pointer = work.pop_back_val();
      if (!seen.insert(pointer).second) continue;
      if (auto* phi = dyn_cast<PHINode>(pointer)) {
        work.append(phi->op_begin(), phi->op_end());
      } else if (auto* select = dyn_cast<SelectInst>(pointer)) {
        work.push_back(select->getTrueValue());
        work.push_back(select->getFalseValue());
      } else if (auto* gep = dyn_cast<GEPOperator>(pointer)) {
        work.push_back(gep->getPointerOperand());
      } else if (auto* freeze = dyn_cast<FreezeInst>(pointer)) {
        work.push_back(freeze->getOperand(0));
      } else if (!bytes_of_variable(pointer) && !isa<ConstantPointerNull>(pointer)) {
        return false;
      }
    }
    return true;
  }

  // The size that all variables among the origins have in common.
  std::optional<uint64_t> common_bytes(Value* pointer) {
    std::optional<uint64_t> common;
    for (Value* origin : origins_from(pointer)) {
      uint64_t bytes = bytes_of_variable(origin).value_or(0);
      if (common && *common != bytes) return std::nullopt;
      common = bytes;
    }
    return common;
  }

  Within within(Value* pointer) {
    if (auto bytes = bytes_of_variable(pointer)) return {nothing_.bytes, ConstantInt::get(int64_, *bytes)};
    if (isa<ConstantPointerNull>(pointer)) return {nothing_.bytes, nothing_.bytes};
    if (auto found = within_.find(pointer); found != within_.end()) return found->second;
    if (auto* freeze = dyn_cast<FreezeInst>(pointer)) return within(freeze->getOperand(0));
    if (auto* gep = dyn_cast<GEPOperator>(pointer)) {
      Within base = within(gep->getPointerOperand());
      auto* instruction = dyn_cast<GetElementPtrInst>(pointer);
      IRBuilder<> builder(instruction ? instruction : &*body_.getEntryBlock().getFirstInsertionPt());
      Value* distance = emitGEPOffset(&builder, layout_, gep, /*NoAssumptions=*/true);
      base.offset = builder.CreateAdd(base.offset, distance);
      return within_[pointer] = base;
    }
    std::optional<uint64_t> common = common_bytes(pointer);
    Value* bytes = common ? ConstantInt::get(int64_, *common) : nullptr;
    if (auto* select = dyn_cast<SelectInst>(pointer)) {
      Within one = within(select->getTrueValue()), other = within(select->getFalseValue());
      IRBuilder<> builder(select);
      auto choose = [&](Value* x, Value* y) { return x == y ? x : builder.CreateSelect(select->getCondition(), x, y); };
      return within_[pointer] = {choose(one.offset, other.offset), bytes ? bytes : choose(one.bytes, other.bytes)};
    }
    auto& phi = *cast<PHINode>(pointer);
    IRBuilder<> builder(&phi);
    unsigned count = phi.getNumIncomingValues();
    PHINode *offset = builder.CreatePHI(int64_, count), *sizes = bytes ? nullptr : builder.CreatePHI(int64_, count);
    // Known before cycles come back to it.
    Within result = within_[pointer] = {offset, bytes ? bytes : sizes};
    for (unsigned i = 0; i < count; ++i) {
      Within incoming = within(phi.getIncomingValue(i));
      offset->addIncoming(incoming.offset, phi.getIncomingBlock(i));
      if (sizes) sizes->addIncoming(incoming.bytes, phi.getIncomingBlock(i));
    }
    return result;
  }

  // ---- Accesses that are proved in bounds

  void prove(Instruction& access) {
    auto size = [&](Type* type) { return layout_.getTypeStoreSize(type).getFixedValue(); };
    if (auto* load = dyn_cast<LoadInst>(&access))
      prove(access, load->getPointerOperand(), size(load->getType()), /*writes=*/false);
    else if (auto* store = dyn_cast<StoreInst>(&access))
      prove(access, store->getPointerOperand(), size(store->getValueOperand()->getType()), /*writes=*/true);
    else if (auto* update = dyn_cast<AtomicRMWInst>(&access))
      prove(access, update->getPointerOperand(), size(update->getValOperand()->getType()), /*writes=*/true);
    else if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&access))
      prove(access, exchange->getPointerOperand(), size(exchange->getCompareOperand()->getType()), /*writes=*/true);
    else if (auto* intrinsic = dyn_cast<MemIntrinsic>(&access)) {
      auto* length = dyn_cast<ConstantInt>(intrinsic->getLength());
      if (!length) return;
      prove(access, intrinsic->getDest(), length->getZExtValue(), /*writes=*/true);
      if (auto* transfer = dyn_cast<MemTransferInst>(intrinsic))
        prove(access, transfer->getSource(), length->getZExtValue(), /*writes=*/false);
    }
  }

  void prove(Instruction& access, Value* pointer, uint64_t size, bool writes) {
    std::optional<uint64_t> bytes;
    for (Value* origin : origins_from(pointer)) {
      std::optional<uint64_t> origin_bytes = bytes_of_variable(origin);
      // A store to an input that is not writable stays refused.
      if (auto known = known_bytes_.find(origin); known != known_bytes_.end() && (!writes || written_.contains(origin)))
        origin_bytes = known->second;
      if (!origin_bytes) return;
      bytes = std::min(bytes.value_or(*origin_bytes), *origin_bytes);
    }
    if (!bytes || size > *bytes) return;
    APInt offset(64, 0);
    Value* base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true);
    const bool is_start = bytes_of_variable(base) || known_bytes_.contains(base);
    bool is_inside = is_start && offset.ule(*bytes - size);
    if (!is_inside && !is_start) {
      if (!ranges_) ranges_.emplace(body_, limits_);
      ConstantRange range = ranges_->range_at(pointer, access.getParent());
      // The range of `4 * k` ends at a multiple of four.
      APInt last = range.getUnsignedMax();
      last.clearLowBits(known_zeros_of_offset(*pointer, layout_, kMostZeros));
      is_inside = range.isEmptySet() || last.ule(*bytes - size);
    }
    if (is_inside) proved_.insert({&access, pointer});
  }

  // Constant expressions of addresses in threadgroup memory claim to be in bounds. They become instructions without
  // that claim.
  void materialize_addresses() {
    SmallVector<Constant*> variables;
    for (GlobalVariable& variable : module_.globals())
      if (variable.getSection() == kThreadgroupSection) variables.push_back(&variable);
    if (variables.empty()) return;
    convertUsersOfConstantsToInstructions(variables);
    for (Constant* variable : variables)
      for (User* user : variable->users())
        if (auto* gep = dyn_cast<GetElementPtrInst>(user)) gep->setNoWrapFlags(GEPNoWrapFlags::none());
  }

  // ---- Pointers that went through memory

  // Finds the memory that a pointer of unknown origin may point into: objects whose address was stored, converted to an
  // integer, or put into a table. The address of no other object could get there.
  void find_sharable() {
    SetVector<Value*> shared;
    auto share = [&](Value* pointer) {
      for (Value* origin : origins_from(pointer)) shared.insert(origin);
    };
    for (Instruction& instruction : instructions(body_)) {
      if (isa<GetElementPtrInst, PHINode, SelectInst, ICmpInst, FreezeInst, LoadInst, MemIntrinsic, LifetimeIntrinsic>(
              instruction) ||
          calls(instruction, kElementFunction))
        continue;
      for (Use& use : instruction.operands()) {
        bool is_address = use.getOperandNo() == address_operand(instruction);
        if (use->getType()->isPtrOrPtrVectorTy() && !is_address) share(use);
        // The address of a program-scope variable, as an integer.
        if (isa<ConstantExpr>(use) && use->getType()->isIntegerTy()) share_constants(*cast<Constant>(use), shared);
      }
    }
    for (GlobalVariable& table : module_.globals())
      if (table.hasInitializer() && !table.getName().starts_with("llvm."))
        share_constants(*table.getInitializer(), shared);
    for (Value* origin : shared) {
      if (auto found = arguments_.find(origin); found != arguments_.end())
        sharable_.push_back(found->second);
      else if (auto* global = dyn_cast<GlobalVariable>(origin))
        sharable_.push_back(bounds_of(*global));
      else if (auto* variable = dyn_cast<AllocaInst>(origin); variable && variable->isStaticAlloca())
        sharable_.push_back(bounds_of(*variable));
    }
  }

  static unsigned address_operand(const Instruction& instruction) {
    if (isa<StoreInst>(instruction)) return StoreInst::getPointerOperandIndex();
    if (isa<AtomicRMWInst>(instruction)) return AtomicRMWInst::getPointerOperandIndex();
    if (isa<AtomicCmpXchgInst>(instruction)) return AtomicCmpXchgInst::getPointerOperandIndex();
    return ~0u;
  }

  static void share_constants(Constant& constant, SetVector<Value*>& shared) {
    if (isa<GlobalVariable>(constant)) {
      shared.insert(&constant);
      return;
    }
    if (isa<ConstantAggregate, ConstantExpr>(constant))
      for (Use& use : constant.operands()) share_constants(*cast<Constant>(use), shared);
  }

  // ---- The comparison

  // Whether `size` bytes at `pointer` are in bounds.
  Value* is_inside(IRBuilder<>& builder, Value* pointer, const Bounds& bounds, bool writes, Value* size) {
    if (stays_in_variables(pointer)) {
      Within position = within(pointer);
      return builder.CreateICmpULT(position.offset, starts_within(builder, position.bytes, size));
    }
    Value* inside = fits(builder, pointer, bounds, writes, size);
    if (bounds.unknown == nothing_.unknown) return inside;
    Value* inside_any = builder.getFalse();
    for (const Bounds& candidate : sharable_)
      inside_any = builder.CreateOr(inside_any, fits(builder, pointer, candidate, writes, size));
    return builder.CreateSelect(bounds.unknown, inside_any, inside);
  }

  // offset - first < bytes - (size - 1), unsigned, where the right side is 0 if there are fewer bytes.
  Value* fits(IRBuilder<>& builder, Value* pointer, const Bounds& bounds, bool writes, Value* size) {
    Value* offset =
        builder.CreateSub(builder.CreatePtrToInt(pointer, int64_), builder.CreatePtrToInt(bounds.base, int64_));
    Value* starts = starts_within(builder, writes ? bounds.writable : bounds.bytes, size);
    return builder.CreateICmpULT(builder.CreateSub(offset, bounds.first), starts);
  }

  // The number of offsets in `bytes` at which an object of `size` bytes can start. For an argument it is computed once,
  // at the start of the body, for all branches.
  Value* starts_within(IRBuilder<>& builder, Value* bytes, Value* size) {
    auto compute = [&](IRBuilder<>& insertion) {
      Value* last = insertion.CreateSub(size, insertion.getInt64(1));
      auto *all = dyn_cast<ConstantInt>(bytes), *number = dyn_cast<ConstantInt>(last);
      if (all && number) return static_cast<Value*>(insertion.getInt(all->getValue().usub_sat(number->getValue())));
      return static_cast<Value*>(insertion.CreateBinaryIntrinsic(Intrinsic::usub_sat, bytes, last));
    };
    auto* constant = dyn_cast<ConstantInt>(size);
    if (!constant || !known_from_start_.contains(bytes)) return compute(builder);
    Value*& starts = starts_[{bytes, constant->getZExtValue()}];
    if (!starts) {
      auto* difference = dyn_cast<Instruction>(bytes);
      IRBuilder<> beginning(difference ? difference->getNextNode() : &*body_.getEntryBlock().getFirstInsertionPt());
      starts = compute(beginning);
    }
    return starts;
  }

  // Whether the access is at a constant offset in memory that always exists.
  bool is_guaranteed(Value* pointer, uint64_t size) {
    APInt offset(64, 0);
    Value* base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true);
    uint64_t available = 0;
    if (auto* variable = dyn_cast<GlobalVariable>(base))
      available = layout_.getTypeAllocSize(variable->getValueType());
    else if (auto found = guaranteed_.find(base); found != guaranteed_.end())
      available = found->second;
    return size <= available && offset.ule(available - size);
  }

  // The target of rejected stores, private to each thread.
  AllocaInst* sink(uint64_t size) {
    uint64_t bytes = PowerOf2Ceil(std::max<uint64_t>(64, size));
    if (!sink_ || sink_bytes_ < bytes) {
      IRBuilder<> builder(&*body_.getEntryBlock().begin());
      sink_ = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), bytes));
      sink_->setAlignment(Align(16));
      sink_bytes_ = bytes;
    }
    return sink_;
  }

  // ---- Accesses

  static Value* choose(IRBuilder<>& builder, Value* inside, Value* pointer, Value* other) {
    if (auto* known = dyn_cast<ConstantInt>(inside)) return known->isOne() ? pointer : other;
    return builder.CreateSelect(inside, pointer, other);
  }

  void guard_load(LoadInst& load) {
    Value* pointer = load.getPointerOperand();
    uint64_t size = layout_.getTypeStoreSize(load.getType());
    if (is_guaranteed(pointer, size)) return;
    std::optional<Bounds> bounds = bounds_of(load, pointer);
    if (!bounds) return;
    IRBuilder<> builder(&load);
    Value* inside = is_inside(builder, pointer, *bounds, /*writes=*/false, builder.getInt64(size));
    load.setOperand(LoadInst::getPointerOperandIndex(), choose(builder, inside, pointer, zeros_of(module_, size)));
  }

  void guard_store(StoreInst& store) {
    Value* pointer = store.getPointerOperand();
    std::optional<Bounds> bounds = bounds_of(store, pointer);
    if (!bounds) return;
    uint64_t size = layout_.getTypeStoreSize(store.getValueOperand()->getType());
    IRBuilder<> builder(&store);
    Value* inside = is_inside(builder, pointer, *bounds, /*writes=*/true, builder.getInt64(size));
    if (auto* known = dyn_cast<ConstantInt>(inside); known && known->isZero()) {
      store.eraseFromParent();
      return;
    }
    store.setOperand(StoreInst::getPointerOperandIndex(), choose(builder, inside, pointer, sink(size)));
  }

  void guard_atomic(Instruction& atomic, Value* pointer, Type* type) {
    std::optional<Bounds> bounds = bounds_of(atomic, pointer);
    if (!bounds) return;
    IRBuilder<> builder(&atomic);
    Value* inside =
        is_inside(builder, pointer, *bounds, /*writes=*/true, builder.getInt64(layout_.getTypeStoreSize(type)));
    BasicBlock* before = atomic.getParent();
    Instruction* then = SplitBlockAndInsertIfThen(inside, &atomic, /*Unreachable=*/false);
    BasicBlock* after = atomic.getParent();
    atomic.moveBefore(then);
    if (atomic.use_empty()) return;
    builder.SetInsertPoint(&after->front());
    PHINode* result = builder.CreatePHI(atomic.getType(), 2);
    atomic.replaceAllUsesWith(result);
    result->addIncoming(&atomic, then->getParent());
    // As if the memory held zero. A loop around a compare-exchange that never succeeded would not end.
    Value* outside = Constant::getNullValue(atomic.getType());
    if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&atomic)) {
      builder.SetInsertPoint(before->getTerminator());
      outside = builder.CreateInsertValue(outside, builder.CreateIsNull(exchange->getCompareOperand()), 1);
    }
    result->addIncoming(outside, before);
  }

  // All or nothing: a copy from outside gives zeros, a copy to outside does nothing.
  void guard_memory_intrinsic(MemIntrinsic& intrinsic) {
    std::optional<Bounds> target = bounds_of(intrinsic, intrinsic.getDest());
    auto* transfer = dyn_cast<MemTransferInst>(&intrinsic);
    std::optional<Bounds> source;
    auto* length = dyn_cast<ConstantInt>(intrinsic.getLength());
    if (transfer && !(length && is_guaranteed(transfer->getSource(), length->getZExtValue())))
      source = bounds_of(intrinsic, transfer->getSource());
    if (!target && !source) return;
    IRBuilder<> builder(&intrinsic);
    Value* size = builder.CreateZExtOrTrunc(intrinsic.getLength(), int64_);
    if (target) {
      Value* inside = is_inside(builder, intrinsic.getDest(), *target, /*writes=*/true, size);
      Instruction* then = SplitBlockAndInsertIfThen(inside, &intrinsic, /*Unreachable=*/false);
      intrinsic.moveBefore(then);
      builder.SetInsertPoint(&intrinsic);
    }
    if (!source) return;
    Value* inside = is_inside(builder, transfer->getSource(), *source, /*writes=*/false, size);
    Instruction *then, *otherwise;
    SplitBlockAndInsertIfThenElse(inside, &intrinsic, &then, &otherwise);
    intrinsic.moveBefore(then);
    builder.SetInsertPoint(otherwise);
    builder.CreateMemSet(intrinsic.getDest(), builder.getInt8(0), intrinsic.getLength(), intrinsic.getDestAlign());
  }

  Function& body_;
  Module& module_;
  LLVMContext& context_;
  const DataLayout& layout_;
  const ThreadLimits limits_;
  Type* int64_ = nullptr;
  Bounds unlimited_, nothing_, unknown_;
  std::vector<Bounds> sharable_;  // the memory that a pointer of unknown origin may point into
  DenseMap<Value*, Bounds> arguments_;
  DenseMap<Value*, uint64_t> known_bytes_;  // of arguments that have the same at each launch
  DenseMap<Value*, uint64_t> guaranteed_;   // bytes of each argument that always exist
  DenseMap<Value*, Align> alignments_;
  std::set<Value*> written_;  // arguments that may change
  DenseMap<Value*, Bounds> merged_;
  DenseMap<Value*, Within> within_;
  std::optional<ValueRanges> ranges_;
  DenseSet<std::pair<Instruction*, Value*>> proved_;      // accesses, each with the pointer that is proved
  SmallPtrSet<Value*, 16> known_from_start_;              // bytes of the arguments
  DenseMap<std::pair<Value*, uint64_t>, Value*> starts_;  // starts_within of these and a size
  AllocaInst* sink_ = nullptr;
  uint64_t sink_bytes_ = 0;
};

}  // namespace

void insert_bounds_guards(Function& body, const KernelUnit& unit, std::span<const KernelParameter> parameters,
                          bool compares_with_launch) {
  Guards(body, unit, parameters, compares_with_launch).run();
}

void expand_elements(Module& module) {
  replace_calls(module, kElementFunction, [](CallInst& call) {
    IRBuilder<> builder(&call);
    return builder.CreateGEP(builder.getInt8Ty(), call.getArgOperand(0), call.getArgOperand(1));
  });
}

void describe_accesses(Function& body, const KernelUnit& unit, std::span<const KernelParameter> parameters) {
  Guards(body, unit, parameters).describe_accesses();
}

}  // namespace kiln
