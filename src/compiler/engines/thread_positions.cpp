#include "compiler/engines/thread_positions.h"

#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <optional>

#include "compiler/engines/engine_support.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/workgroup/thread_coarsening.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {

using namespace llvm;

namespace {

// Of a threadgroup.
constexpr unsigned kMostSimdgroups = 32;

// Writes the values of one function's threads. Three kinds of code ask for them: part of a row of threads, which needs
// no convergence; a simdgroup of a threadgroup whose rows have a known power of two of threads; and any other
// simdgroup.
class ThreadPositions {
 public:
  ThreadPositions(Function& group, const LaunchForm& form, bool is_by_simdgroups, bool is_signed)
      : form_(form),
        is_by_simdgroups_(is_by_simdgroups),
        is_signed_(is_signed),
        simdgroups_(is_by_simdgroups ? form.simdgroups : 0),
        // Rows that are whole simdgroups, of any number, are recorded with each simdgroup.
        row_threads_(is_by_simdgroups && !(form.rows_are_simdgroups && form.simdgroups == 0) ? form.row_threads : 0),
        group_(group),
        lane_(lane_function(*group.getParent())),
        builder_(group.getContext()) {
    lane_.setSpeculatable();
    lane_.addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, kLanes)));
  }

  void lower() {
    for (Instruction& instruction : instructions(group_))
      if (const std::optional<uint64_t> which = thread_value(&instruction))
        if (*which <= kPositionInThreadgroupLast)
          set_no_wrap_of_grid_position(instruction, *which - kPositionInThreadgroup);
    for (Instruction& instruction : make_early_inc_range(instructions(group_))) {
      const std::optional<uint64_t> which = thread_value(&instruction);
      if (!which) continue;
      builder_.SetInsertPoint(&instruction);
      instruction.replaceAllUsesWith(value_of(*which));
      instruction.eraseFromParent();
    }
  }

 private:
  // A grid has less than 2^31 threads along each axis, so the position in it, of lanes without a thread too, is a sum
  // and a product that do not wrap: `threadgroup_position * full_threads_per_threadgroup + position_in_threadgroup`.
  static void set_no_wrap_of_grid_position(Instruction& position, uint64_t axis) {
    for (User* user : position.users()) {
      auto* sum = dyn_cast<BinaryOperator>(user);
      if (!sum || sum->getOpcode() != Instruction::Add) continue;
      auto* product = dyn_cast<BinaryOperator>(sum->getOperand(sum->getOperand(0) == &position ? 1 : 0));
      if (!product || product->getOpcode() != Instruction::Mul ||
          thread_value(product->getOperand(0)) != kThreadgroupPosition + axis ||
          thread_value(product->getOperand(1)) != kFullThreadsPerThreadgroup + axis)
        continue;
      product->setHasNoUnsignedWrap();
      sum->setHasNoUnsignedWrap();
    }
  }

  // Each value of a thread that is not in the record of a simdgroup.
  static_assert(numbers_of(ThreadValueScope::kThread) == 4, "compute each value of a thread from its lane");

  Value* value_of(uint64_t which) {
    if (!is_by_simdgroups_) return value_in_part_of_row(which);
    if (const uint32_t size = known_size(which)) return builder_.getInt32(size);
    if (row_threads_)
      if (Value* value = value_in_known_rows(which)) return value;
    return value_in_simdgroup(which);
  }

  // The threads of threadgroups of a known number of simdgroups, so that loops over them have known trip counts. 0: not
  // known, as at the edges of a grid whose threadgroups are not all full.
  uint32_t known_size(uint64_t which) const {
    const ThreadValueRow* row = thread_value_row(which);
    if (!simdgroups_ || !row) return 0;
    if (row->value != kThreadsPerThreadgroup && row->value != kFullThreadsPerThreadgroup) return 0;
    const uint32_t size = form_.full_threads()[which - row->value];
    const bool is_full = row->value == kFullThreadsPerThreadgroup || form_.threadgroups_are_even || size == 1;
    return is_full ? size : 0;
  }

  Value* value_in_part_of_row(uint64_t which) {
    switch (which) {
      case kPositionInThreadgroup: return beside_lane(multiple(group_.getArg(kRowX)));
      case kPositionInThreadgroup + 1: return builder_.CreateAdd(recorded(which), group_.getArg(kRowOfCall));
      case kIndexInThreadgroup: {
        Value* first = builder_.CreateAdd(recorded(which), group_.getArg(kRowX));
        Value* rows = builder_.CreateMul(group_.getArg(kRowOfCall), recorded(kThreadsPerThreadgroup));
        return builder_.CreateAdd(builder_.CreateAdd(first, rows), lane());
      }
      case kFullThreadsPerThreadgroup:
        if (form_.row_threads > 0) return builder_.getInt32(form_.row_threads);
        if (!form_.rows_are_simdgroups) break;
        return multiple(recorded(which), form_.rows_are_simdgroup_pairs ? kCoarsenedThreads : kLanes);
      default: break;
    }
    return recorded(which);
  }

  // Rows of so many threads: a simdgroup's first one is that of a row, and its rows are of one plane. The number of
  // that row is a multiple of the simdgroup's number of rows, as is the plane's. Null for what does not follow from it.
  Value* value_in_known_rows(uint64_t which) {
    const unsigned rows = kLanes / std::min(row_threads_, kLanes);
    auto first_row = [&] {
      return builder_.CreateUDiv(place(recorded(kIndexInThreadgroup)), builder_.getInt32(row_threads_));
    };
    switch (which) {
      case kPositionInThreadgroup:
        if (row_threads_ <= kLanes) return builder_.CreateAnd(lane(), builder_.getInt32(row_threads_ - 1));
        // Rows of several simdgroups.
        return beside_lane(
            builder_.CreateAnd(place(recorded(kIndexInThreadgroup)), builder_.getInt32(row_threads_ - kLanes)));
      case kPositionInThreadgroup + 1: {
        Value* first = first_row();
        if (row_threads_ > kLanes) return first;
        if (!simdgroups_) first = builder_.CreateURem(first, recorded(kThreadsPerThreadgroup + 1));
        Value* row_of_lane = builder_.CreateUDiv(lane(), builder_.getInt32(row_threads_));
        return disjoint(multiple(first, rows), row_of_lane);
      }
      case kPositionInThreadgroup + 2:
        if (simdgroups_) return builder_.getInt32(0);
        return builder_.CreateUDiv(first_row(), recorded(kThreadsPerThreadgroup + 1));
      case kThreadsPerThreadgroup:
      case kFullThreadsPerThreadgroup: return builder_.getInt32(row_threads_);
      default: return nullptr;
    }
  }

  Value* value_in_simdgroup(uint64_t which) {
    switch (which) {
      case kIndexInThreadgroup: return index();
      case kPositionInThreadgroup:
        if (form_.rows_are_simdgroups) return beside_lane(place(simdgroup_x()));
        return remainder(index(), recorded(kThreadsPerThreadgroup));
      case kPositionInThreadgroup + 1:
        if (simdgroups_) return builder_.getInt32(0);
        if (form_.rows_are_simdgroups) break;
        return remainder(quotient(index(), recorded(kThreadsPerThreadgroup)), recorded(kThreadsPerThreadgroup + 1));
      case kPositionInThreadgroup + 2:
        if (simdgroups_) return builder_.getInt32(0);
        if (form_.rows_are_simdgroups) break;
        return quotient(quotient(index(), recorded(kThreadsPerThreadgroup)), recorded(kThreadsPerThreadgroup + 1));
      case kFullThreadsPerThreadgroup:
        if (!form_.rows_are_simdgroups) break;
        return multiple(recorded(which));
      default: break;
    }
    return recorded(which);
  }

  Value* simdgroup_x() { return group_.getArg(kCpuX); }
  Value* lane() { return builder_.CreateCall(&lane_); }

  Value* recorded(uint64_t value) {
    Value* address = builder_.CreateInBoundsGEP(builder_.getInt32Ty(), group_.getArg(kCpuRecord),
                                                builder_.getInt32(static_cast<uint32_t>(value)));
    LoadInst* load = builder_.CreateLoad(builder_.getInt32Ty(), address);
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load->getContext(), {}));
    set_range_of_size(*load, value);
    return load;
  }

  Value* disjoint(Value* high, Value* low) {
    return builder_.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, high, low));
  }
  Value* beside_lane(Value* first) { return disjoint(first, lane()); }

  // What is known to be a multiple of 32 lets the optimiser divide the simdgroup's place from the lane's: x / 64 is the
  // same in all lanes then. Where it must be less than a known number of threads, comparisons with lengths fall away.
  Value* multiple(Value* number, unsigned of = kLanes) {
    return builder_.CreateAnd(number, builder_.getInt32(~(of - 1)));
  }
  Value* place(Value* number) {
    const unsigned most = simdgroups_ ? simdgroups_ : is_signed_ ? kMostSimdgroups : 0;
    return most ? builder_.CreateAnd(number, builder_.getInt32((most - 1) * kLanes)) : multiple(number);
  }
  Value* index() { return beside_lane(place(recorded(kIndexInThreadgroup))); }

  // Exact for a threadgroup's at most 1024 threads: what is rounded is at least 1/2048 away from a whole number.
  // Vectors have no division of integers.
  Value* quotient(Value* number, Value* divisor) {
    Type* real = builder_.getFloatTy();
    Value* middle = builder_.CreateFAdd(builder_.CreateUIToFP(number, real), ConstantFP::get(real, 0.5));
    Value* inverse = builder_.CreateFDiv(ConstantFP::get(real, 1), builder_.CreateUIToFP(divisor, real));
    return builder_.CreateFPToUI(builder_.CreateFMul(middle, inverse), builder_.getInt32Ty());
  }
  Value* remainder(Value* number, Value* divisor) {
    return builder_.CreateSub(number, builder_.CreateMul(quotient(number, divisor), divisor));
  }

  const LaunchForm& form_;
  const bool is_by_simdgroups_, is_signed_;
  const unsigned simdgroups_;   // of a threadgroup; 0: any number
  const unsigned row_threads_;  // 0: any number
  Function &group_, &lane_;
  IRBuilder<> builder_;
};

}  // namespace

void lower_positions(Function& group, const LaunchForm& form, bool is_by_simdgroups, bool is_signed) {
  ThreadPositions(group, form, is_by_simdgroups, is_signed).lower();
}

}  // namespace kiln
