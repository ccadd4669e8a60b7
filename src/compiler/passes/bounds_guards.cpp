#include "compiler/passes/bounds_guards.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <optional>
#include <set>

namespace kiln {
namespace {

using namespace llvm;

// What an access through some pointer may reach: `bytes` bytes from `start` on; `writable` of them by stores (all or
// none).
struct Bounds {
  Value* base = nullptr;   // a pointer; offsets count from here
  Value* first = nullptr;  // i64, offset of the first byte
  Value* bytes = nullptr;  // i64
  Value* writable = nullptr;

  bool operator==(const Bounds&) const = default;
};

class Guards {
 public:
  Guards(Function& body, const KernelUnit& unit)
      : body_(body), module_(*body.getParent()), context_(body.getContext()), layout_(module_.getDataLayout()) {
    IRBuilder<> builder(&*body.getEntryBlock().getFirstInsertionPt());
    int64_ = builder.getInt64Ty();
    unlimited_ = {ConstantPointerNull::get(builder.getPtrTy()), builder.getInt64(0), builder.getInt64(-1),
                  builder.getInt64(-1)};
    for (size_t i = 0; i < unit.parameters.size(); ++i) {
      auto* argument = body.getArg(static_cast<unsigned>(3 * i));
      Value* first = unit.parameters[i].from_zero ? static_cast<Value*>(builder.getInt64(0))
                                                  : body.getArg(static_cast<unsigned>(3 * i + 1));
      Value* bytes = builder.CreateSub(body.getArg(static_cast<unsigned>(3 * i + 2)), first);
      arguments_[argument] = {argument, first, bytes,
                              unit.parameters[i].is_written() ? bytes : static_cast<Value*>(builder.getInt64(0))};
      if (unit.parameters[i].is_written()) written_.insert(argument);
      guaranteed_[argument] = unit.parameters[i].guaranteed_bytes();
      alignments_[argument] = Align(std::max(1u, unit.parameters[i].alignment));
    }
  }

  void describe_accesses() {
    for (Instruction& instruction : instructions(body_)) {
      if (auto* load = dyn_cast<LoadInst>(&instruction)) {
        Origins origins = origins_of(load->getPointerOperand());
        load->setAlignment(std::min(load->getAlign(), origins.alignment));
        if (origins.are_constant && load->isSimple())
          load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(context_, {}));
      } else if (auto* store = dyn_cast<StoreInst>(&instruction)) {
        store->setAlignment(std::min(store->getAlign(), alignment_of(store->getPointerOperand())));
      } else if (auto* intrinsic = dyn_cast<MemIntrinsic>(&instruction)) {
        intrinsic->setDestAlignment(
            std::min(intrinsic->getDestAlign().valueOrOne(), alignment_of(intrinsic->getDest())));
        if (auto* transfer = dyn_cast<MemTransferInst>(intrinsic))
          transfer->setSourceAlignment(
              std::min(transfer->getSourceAlign().valueOrOne(), alignment_of(transfer->getSource())));
      }
    }
  }

  void run() {
    SmallVector<Instruction*> accesses;
    for (Instruction& instruction : instructions(body_))
      if (isa<LoadInst, StoreInst, AtomicRMWInst, AtomicCmpXchgInst, MemIntrinsic>(instruction))
        accesses.push_back(&instruction);
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
  // ---- Where a pointer comes from

  // Null: the pointer does not come from an argument, or it cannot be told.
  std::optional<Bounds> bounds_of(Value* pointer) {
    SmallVector<Value*> seen;
    if (!reaches_argument(pointer, seen)) return std::nullopt;
    return trace(pointer);
  }

  // Whether some argument is among the origins of the pointer.
  bool reaches_argument(Value* pointer, SmallVectorImpl<Value*>& seen) {
    for (;;) {
      if (arguments_.contains(pointer)) return true;
      if (std::find(seen.begin(), seen.end(), pointer) != seen.end()) return false;
      Value* source = source_of(pointer);
      if (!source) break;
      pointer = source;
    }
    seen.push_back(pointer);
    if (auto* phi = dyn_cast<PHINode>(pointer)) {
      return any_of(phi->incoming_values(), [&](Value* incoming) { return reaches_argument(incoming, seen); });
    }
    if (auto* select = dyn_cast<SelectInst>(pointer))
      return reaches_argument(select->getTrueValue(), seen) || reaches_argument(select->getFalseValue(), seen);
    return false;
  }

  struct Origins {
    Align alignment;            // the smallest of the arguments that the pointer may come from; large if from none
    bool are_constant = false;  // all of them are arguments that nobody writes while a launch runs
  };

  Align alignment_of(Value* pointer) { return origins_of(pointer).alignment; }

  Origins origins_of(Value* start) {
    Origins origins{Align(Align::Constant<(1u << 31)>()), true};
    SmallVector<Value*> work{start};
    std::set<Value*> seen;
    while (!work.empty()) {
      Value* pointer = work.pop_back_val();
      while (Value* source = source_of(pointer)) pointer = source;
      if (!seen.insert(pointer).second) continue;
      if (auto* phi = dyn_cast<PHINode>(pointer)) {
        work.append(phi->op_begin(), phi->op_end());
      } else if (auto* select = dyn_cast<SelectInst>(pointer)) {
        work.push_back(select->getTrueValue());
        work.push_back(select->getFalseValue());
      } else if (auto found = alignments_.find(pointer); found != alignments_.end()) {
        origins.alignment = std::min(origins.alignment, found->second);
        origins.are_constant = origins.are_constant && !written_.contains(pointer);
      } else {
        origins.are_constant = false;
      }
    }
    return origins;
  }

  // What the pointer is computed from, where that is a single pointer.
  static Value* source_of(Value* pointer) {
    if (auto* gep = dyn_cast<GEPOperator>(pointer)) return gep->getPointerOperand();
    if (auto* freeze = dyn_cast<FreezeInst>(pointer)) return freeze->getOperand(0);
    if (Operator::getOpcode(pointer) == Instruction::BitCast ||
        Operator::getOpcode(pointer) == Instruction::AddrSpaceCast)
      return cast<Operator>(pointer)->getOperand(0);
    return nullptr;
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
                                 choose(a.writable, b.writable)};
    }
    if (auto* phi = dyn_cast<PHINode>(pointer)) return trace(*phi);
    return unlimited_;
  }

  Bounds trace(PHINode& phi) {
    // All from one argument, as in a loop that advances a pointer: its bounds as they are.
    if (Value* origin = single_origin(phi)) return merged_[&phi] = arguments_.find(origin)->second;
    IRBuilder<> builder(&phi);
    unsigned count = phi.getNumIncomingValues();
    auto* base = builder.CreatePHI(builder.getPtrTy(), count);
    auto* first = builder.CreatePHI(int64_, count);
    auto* bytes = builder.CreatePHI(int64_, count);
    auto* writable = builder.CreatePHI(int64_, count);
    Bounds merged = merged_[&phi] = {base, first, bytes, writable};  // known before cycles come back to it
    for (unsigned i = 0; i < count; ++i) {
      Bounds incoming = trace(phi.getIncomingValue(i));
      BasicBlock* block = phi.getIncomingBlock(i);
      base->addIncoming(incoming.base, block);
      first->addIncoming(incoming.first, block);
      bytes->addIncoming(incoming.bytes, block);
      writable->addIncoming(incoming.writable, block);
    }
    return merged;
  }

  // The one argument that all of a phi's origins are, or null.
  Value* single_origin(PHINode& start) {
    SmallVector<Value*> work{&start};
    std::set<Value*> seen;
    Value* origin = nullptr;
    while (!work.empty()) {
      Value* pointer = work.pop_back_val();
      while (Value* source = source_of(pointer)) pointer = source;
      if (!seen.insert(pointer).second) continue;
      if (auto* phi = dyn_cast<PHINode>(pointer)) {
        work.append(phi->op_begin(), phi->op_end());
      } else if (auto* select = dyn_cast<SelectInst>(pointer)) {
        work.push_back(select->getTrueValue());
        work.push_back(select->getFalseValue());
      } else if (!arguments_.contains(pointer) || (origin && origin != pointer)) {
        return nullptr;
      } else {
        origin = pointer;
      }
    }
    return origin;
  }

  // ---- The comparison

  // Whether `size` bytes at `pointer` are inside: offset - first < bytes - (size - 1), unsigned, where the right side
  // is 0 when there are fewer bytes than that.
  Value* is_inside(IRBuilder<>& builder, Value* pointer, const Bounds& bounds, Value* limit_bytes, Value* size) {
    Value* offset =
        builder.CreateSub(builder.CreatePtrToInt(pointer, int64_), builder.CreatePtrToInt(bounds.base, int64_));
    Value* last = builder.CreateSub(size, builder.getInt64(1));
    Value* starts = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, limit_bytes, last);
    return builder.CreateICmpULT(builder.CreateSub(offset, bounds.first), starts);
  }

  // Whether the access is at a constant offset where there is always something.
  bool is_guaranteed(Value* pointer, uint64_t size) {
    APInt offset(64, 0);
    Value* base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true);
    auto found = guaranteed_.find(base);
    return found != guaranteed_.end() && size <= found->second && offset.ule(found->second - size);
  }

  // Zeros to load from instead. Their number is the largest access so far.
  GlobalVariable* zeros(uint64_t size) {
    auto* type = ArrayType::get(Type::getInt8Ty(context_), PowerOf2Ceil(std::max<uint64_t>(64, size)));
    std::string name = ("__kiln_zeros." + Twine(type->getNumElements())).str();
    if (auto* existing = module_.getGlobalVariable(name, true)) return existing;
    auto* variable = new GlobalVariable(module_, type, /*isConstant=*/true, GlobalValue::InternalLinkage,
                                        ConstantAggregateZero::get(type), name);
    variable->setAlignment(Align(64));
    return variable;
  }

  // Memory to store to instead; each thread's own.
  AllocaInst* trash(uint64_t size) {
    uint64_t bytes = PowerOf2Ceil(std::max<uint64_t>(64, size));
    if (!trash_ || trash_bytes_ < bytes) {
      IRBuilder<> builder(&*body_.getEntryBlock().begin());
      trash_ = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), bytes));
      trash_->setAlignment(Align(16));
      trash_bytes_ = bytes;
    }
    return trash_;
  }

  // ---- Accesses

  void guard_load(LoadInst& load) {
    Value* pointer = load.getPointerOperand();
    uint64_t size = layout_.getTypeStoreSize(load.getType());
    if (is_guaranteed(pointer, size)) return;
    std::optional<Bounds> bounds = bounds_of(pointer);
    if (!bounds) return;
    IRBuilder<> builder(&load);
    Value* inside = is_inside(builder, pointer, *bounds, bounds->bytes, builder.getInt64(size));
    load.setOperand(LoadInst::getPointerOperandIndex(), builder.CreateSelect(inside, pointer, zeros(size)));
  }

  void guard_store(StoreInst& store) {
    Value* pointer = store.getPointerOperand();
    std::optional<Bounds> bounds = bounds_of(pointer);
    if (!bounds) return;
    uint64_t size = layout_.getTypeStoreSize(store.getValueOperand()->getType());
    IRBuilder<> builder(&store);
    Value* inside = is_inside(builder, pointer, *bounds, bounds->writable, builder.getInt64(size));
    store.setOperand(StoreInst::getPointerOperandIndex(), builder.CreateSelect(inside, pointer, trash(size)));
  }

  void guard_atomic(Instruction& atomic, Value* pointer, Type* type) {
    std::optional<Bounds> bounds = bounds_of(pointer);
    if (!bounds) return;
    IRBuilder<> builder(&atomic);
    Value* inside =
        is_inside(builder, pointer, *bounds, bounds->writable, builder.getInt64(layout_.getTypeStoreSize(type)));
    BasicBlock* before = atomic.getParent();
    Instruction* then = SplitBlockAndInsertIfThen(inside, &atomic, /*Unreachable=*/false);
    BasicBlock* after = atomic.getParent();
    atomic.moveBefore(then);
    if (atomic.use_empty()) return;
    builder.SetInsertPoint(&after->front());
    PHINode* result = builder.CreatePHI(atomic.getType(), 2);
    atomic.replaceAllUsesWith(result);
    result->addIncoming(&atomic, then->getParent());
    result->addIncoming(Constant::getNullValue(atomic.getType()), before);
  }

  // Whole or not at all: a copy from outside gives zeros, one to outside does nothing.
  void guard_memory_intrinsic(MemIntrinsic& intrinsic) {
    std::optional<Bounds> target = bounds_of(intrinsic.getDest());
    auto* transfer = dyn_cast<MemTransferInst>(&intrinsic);
    std::optional<Bounds> source = transfer ? bounds_of(transfer->getSource()) : std::nullopt;
    if (!target && !source) return;
    IRBuilder<> builder(&intrinsic);
    Value* size = builder.CreateZExtOrTrunc(intrinsic.getLength(), int64_);
    if (target) {
      Value* inside = is_inside(builder, intrinsic.getDest(), *target, target->writable, size);
      Instruction* then = SplitBlockAndInsertIfThen(inside, &intrinsic, /*Unreachable=*/false);
      intrinsic.moveBefore(then);
      builder.SetInsertPoint(&intrinsic);
    }
    if (!source) return;
    Value* inside = is_inside(builder, transfer->getSource(), *source, source->bytes, size);
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
  Type* int64_ = nullptr;
  Bounds unlimited_;
  DenseMap<Value*, Bounds> arguments_;
  DenseMap<Value*, uint64_t> guaranteed_;  // bytes of each argument that are always there
  DenseMap<Value*, Align> alignments_;
  std::set<Value*> written_;  // arguments that are outputs
  DenseMap<Value*, Bounds> merged_;
  AllocaInst* trash_ = nullptr;
  uint64_t trash_bytes_ = 0;
};

}  // namespace

void insert_bounds_guards(Function& body, const KernelUnit& unit) { Guards(body, unit).run(); }

void describe_accesses(Function& body, const KernelUnit& unit) { Guards(body, unit).describe_accesses(); }

}  // namespace kiln
