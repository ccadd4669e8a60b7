#include "compiler/nvptx/kernel_entry.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "compiler/ir/entry.h"
#include "compiler/ir/pass_runner.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/nvptx/ptx_generator.h"
#include "core/cpu_image.h"
#include "core/gpu_image.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

using Three = std::array<Value*, 3>;

// Of a multiprocessor, for all threads of a threadgroup together.
constexpr uint32_t kRegisters = 65536;

// Profilers show this name.
std::string entry_name(const KernelUnit& unit) {
  std::string name = "kiln_";
  for (char c : unit.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

std::string parameter_symbol(const Function& kernel) { return concat(kernel.getName().str(), "_param_0"); }

CallInst* find_call(Instruction& instruction, StringRef name) {
  return calls(instruction, name) ? cast<CallInst>(&instruction) : nullptr;
}

class EntryMaker {
 public:
  EntryMaker(Module& module, const KernelUnit& unit)
      : module_(module), unit_(unit), layout_(gpu_block_layout(unit)), builder_(module.getContext()) {}

  Function& run() {
    Type* block = ArrayType::get(builder_.getInt8Ty(), layout_.bytes);
    kernel_ = Function::Create(FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy()}, false),
                               GlobalValue::ExternalLinkage, entry_name(unit_), module_);
    kernel_->addParamAttr(0, Attribute::getWithByValType(module_.getContext(), block));
    kernel_->addParamAttr(0, Attribute::getWithAlignment(module_.getContext(), Align(8)));
    kernel_->setDoesNotThrow();
    mark_as_kernel();
    builder_.SetInsertPoint(BasicBlock::Create(module_.getContext(), "entry", kernel_));
    block_ = builder_.CreateAddrSpaceCast(kernel_->getArg(0), builder_.getPtrTy(kParameterSpace), "block");
    make_positions();
    call_body();
    replace_values();
    return *kernel_;
  }

 private:
  void mark_as_kernel() {
    LLVMContext& context = module_.getContext();
    auto number = [&](uint32_t value) { return ConstantAsMetadata::get(builder_.getInt32(value)); };
    SmallVector<Metadata*> properties{ValueAsMetadata::get(kernel_), MDString::get(context, "kernel"), number(1),
                                      MDString::get(context, "grid_constant"), MDNode::get(context, {number(1)})};
    // Threads of so large a threadgroup may have fewer than the 255 registers that an instruction can name.
    if (const uint32_t threads = known_threads(); threads > kRegisters / 255)
      properties.append({MDString::get(context, "maxntidx"), number(threads)});
    module_.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(MDNode::get(context, properties));
  }

  LoadInst* in_block(Type* type, uint64_t offset) {
    Value* address = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), block_, offset);
    LoadInst* load = builder_.CreateLoad(type, address);
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(module_.getContext(), {}));
    return load;
  }
  Value* number(uint64_t offset) { return in_block(builder_.getInt32Ty(), offset); }
  Three numbers(uint64_t offset) { return {number(offset), number(offset + 4), number(offset + 8)}; }

  // The threads of a threadgroup, if the code is made for one of that many; else 0.
  uint32_t known_threads() const {
    const auto& [x, y, z] = unit_.form.threads;
    return uint32_t{x} * y * z;
  }

  // How many threads there are along an axis in hardware's threadgroups, at most, where those are the body's.
  uint64_t most_threads(unsigned i, uint64_t most) const {
    return unit_.form.has_known_threads() ? unit_.form.threads[i] : most;
  }

  // A special register whose value is below `limit`.
  Value* hardware(Intrinsic::ID id, uint64_t limit) {
    CallInst* call = builder_.CreateIntrinsic(id, {}, {});
    call->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, limit)));
    return call;
  }

  // ---- The thread's position

  struct ThreadPosition {
    Three in_threadgroup, threadgroup, extents;
    Value *index, *surplus;
  };

  void make_positions() {
    threads_per_grid_ = numbers(offsetof(GpuGeometry, threads_per_grid));
    if (unit_.has_known_sizes())
      for (unsigned i = 0; i < 3; ++i) threads_per_grid_[i] = builder_.getInt32(unit_.known_grid[i]);
    full_ = numbers(offsetof(GpuGeometry, threads_per_threadgroup));
    if (unit_.form.has_known_threads())
      for (unsigned i = 0; i < 3; ++i) full_[i] = builder_.getInt32(unit_.form.threads[i]);
    threadgroups_ = numbers(offsetof(GpuGeometry, threadgroups_per_grid));
    const bool has_hardwares_positions = unit_.form.is_one_row || unit_.form.threadgroups_are_even;
    x_ = hardware(Intrinsic::nvvm_read_ptx_sreg_tid_x, has_hardwares_positions ? most_threads(0, 1024) : 1024);
    Value* group = hardware(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0x7fffffff);
    if (unit_.form.is_one_row) {
      Value *zero = builder_.getInt32(0), *one = builder_.getInt32(1);
      position_ = {{x_, zero, zero}, {group, zero, zero}, {full_[0], one, one}, x_, nullptr};
      threads_per_grid_[1] = threads_per_grid_[2] = threadgroups_[1] = threadgroups_[2] = one;
      return;
    }
    if (unit_.form.threadgroups_are_even) {
      Three threads = {x_, hardware(Intrinsic::nvvm_read_ptx_sreg_tid_y, most_threads(1, 1024)),
                       hardware(Intrinsic::nvvm_read_ptx_sreg_tid_z, most_threads(2, 64))};
      Three groups = {group, hardware(Intrinsic::nvvm_read_ptx_sreg_ctaid_y, 0x10000),
                      hardware(Intrinsic::nvvm_read_ptx_sreg_ctaid_z, 0x10000)};
      Value* index = builder_.CreateAdd(
          x_, builder_.CreateMul(full_[0], builder_.CreateAdd(threads[1], builder_.CreateMul(full_[1], threads[2]))));
      position_ = {threads, groups, full_, index, nullptr};
      return;
    }
    BasicBlock *line = block("row"), *general_case = block("rows"), *full_plane = block("same"),
               *partial_plane = block("other");
    BasicBlock* ready = block("ready");
    Value* other_extents = builder_.CreateOr(threads_per_grid_[1], threads_per_grid_[2]);
    builder_.CreateCondBr(builder_.CreateICmpEQ(other_extents, builder_.getInt32(1)), line, general_case);

    Value *zero = builder_.getInt32(0), *one = builder_.getInt32(1);
    builder_.SetInsertPoint(line);
    ThreadPosition in_line;
    in_line.threadgroup = {group, zero, zero};
    in_line.extents = {extent(0, group), one, one};
    in_line.in_threadgroup = {x_, zero, zero};
    in_line.index = x_;
    in_line.surplus = builder_.CreateICmpUGE(x_, in_line.extents[0]);
    builder_.CreateBr(ready);

    builder_.SetInsertPoint(general_case);
    ThreadPosition general;
    general.threadgroup = threadgroup(group);
    for (unsigned i = 0; i < 3; ++i) general.extents[i] = extent(i, general.threadgroup[i]);
    Three threads = {x_, hardware(Intrinsic::nvvm_read_ptx_sreg_tid_y, 1024),
                     hardware(Intrinsic::nvvm_read_ptx_sreg_tid_z, 1024)};
    Value* started_x = hardware(Intrinsic::nvvm_read_ptx_sreg_ntid_x, 1025);
    Value* started_y = hardware(Intrinsic::nvvm_read_ptx_sreg_ntid_y, 1025);
    general.index = builder_.CreateAdd(
        x_, builder_.CreateMul(started_x, builder_.CreateAdd(threads[1], builder_.CreateMul(started_y, threads[2]))));
    // If a plane of the threadgroup has the extents that were started, the hardware's positions are the threads'
    // positions.
    Value* is_full_plane = builder_.CreateAnd(builder_.CreateICmpEQ(started_x, general.extents[0]),
                                              builder_.CreateICmpEQ(started_y, general.extents[1]));
    builder_.CreateCondBr(is_full_plane, full_plane, partial_plane);

    builder_.SetInsertPoint(full_plane);
    ThreadPosition as_started = general;
    as_started.in_threadgroup = threads;
    as_started.surplus = builder_.CreateICmpUGE(threads[2], general.extents[2]);
    builder_.CreateBr(ready);

    builder_.SetInsertPoint(partial_plane);
    ThreadPosition renumbered = general;
    Value* rest = builder_.CreateUDiv(general.index, general.extents[0]);
    renumbered.in_threadgroup = {builder_.CreateURem(general.index, general.extents[0]),
                                 builder_.CreateURem(rest, general.extents[1]),
                                 builder_.CreateUDiv(rest, general.extents[1])};
    renumbered.surplus = builder_.CreateICmpUGE(renumbered.in_threadgroup[2], general.extents[2]);
    builder_.CreateBr(ready);

    builder_.SetInsertPoint(ready);
    auto merge = [&](Value* a, Value* b, Value* c) -> Value* {
      PHINode* phi = builder_.CreatePHI(a->getType(), 3);
      phi->addIncoming(a, line);
      phi->addIncoming(b, full_plane);
      phi->addIncoming(c, partial_plane);
      return phi;
    };
    for (unsigned i = 0; i < 3; ++i) {
      position_.in_threadgroup[i] =
          merge(in_line.in_threadgroup[i], as_started.in_threadgroup[i], renumbered.in_threadgroup[i]);
      position_.threadgroup[i] = merge(in_line.threadgroup[i], general.threadgroup[i], general.threadgroup[i]);
      position_.extents[i] = merge(in_line.extents[i], general.extents[i], general.extents[i]);
    }
    position_.index = merge(in_line.index, general.index, general.index);
    position_.surplus = merge(in_line.surplus, as_started.surplus, renumbered.surplus);
    BasicBlock *begin = block("begin"), *end = block("end");
    builder_.CreateCondBr(position_.surplus, end, begin);
    builder_.SetInsertPoint(end);
    create_exit(builder_);  // before the other threads, which may wait for all that have not exited
    builder_.CreateRetVoid();
    builder_.SetInsertPoint(begin);
  }

  BasicBlock* block(const char* name) { return BasicBlock::Create(module_.getContext(), name, kernel_); }

  // The threadgroup's extent, which is smaller if it is the last one along the axis.
  Value* extent(unsigned i, Value* threadgroup) {
    Value* left = builder_.CreateSub(threads_per_grid_[i], builder_.CreateMul(threadgroup, full_[i]));
    return builder_.CreateBinaryIntrinsic(Intrinsic::umin, full_[i], left);
  }

  Three threadgroup(Value* x) {
    BasicBlock *before = builder_.GetInsertBlock(), *linear = block("linear"), *after = block("placed");
    Value* y = hardware(Intrinsic::nvvm_read_ptx_sreg_ctaid_y, 0x10000);
    Value* z = hardware(Intrinsic::nvvm_read_ptx_sreg_ctaid_z, 0x10000);
    Value* is_linear = builder_.CreateICmpNE(number(offsetof(GpuGeometry, is_linear)), builder_.getInt32(0));
    builder_.CreateCondBr(is_linear, linear, after);
    builder_.SetInsertPoint(linear);
    Value* rest = builder_.CreateUDiv(x, threadgroups_[0]);
    Three found = {builder_.CreateURem(x, threadgroups_[0]), builder_.CreateURem(rest, threadgroups_[1]),
                   builder_.CreateUDiv(rest, threadgroups_[1])};
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    Three given = {x, y, z}, result;
    for (unsigned i = 0; i < 3; ++i) {
      PHINode* phi = builder_.CreatePHI(builder_.getInt32Ty(), 2);
      phi->addIncoming(given[i], before);
      phi->addIncoming(found[i], linear);
      result[i] = phi;
    }
    return result;
  }

  // ---- The body's arguments

  void call_body() {
    std::vector<Value*> arguments;
    for (size_t i = 0; i < unit_.parameters.size(); ++i) {
      const KernelParameter& parameter = unit_.parameters[i];
      uint64_t offset = layout_.offsets[i];
      if (parameter.role == ParameterRole::kInput || parameter.role == ParameterRole::kOutput) {
        LoadInst* pointer = in_block(builder_.getPtrTy(kGlobalSpace), offset + offsetof(GpuArgument, address));
        auto* alignment = ConstantAsMetadata::get(
            builder_.getInt64(std::max(parameter.alignment, unit_.assumed_alignment(parameter))));
        pointer->setMetadata(LLVMContext::MD_align, MDNode::get(module_.getContext(), alignment));
        arguments.push_back(builder_.CreateAddrSpaceCast(pointer, builder_.getPtrTy()));
        arguments.push_back(in_block(builder_.getInt64Ty(), offset + offsetof(GpuArgument, first_byte)));
        // Its lower half, if there is nothing in the other.
        const uint64_t end = offset + offsetof(GpuArgument, end_byte);
        if (unit_.form.arrays_are_plain)
          arguments.push_back(builder_.CreateZExt(number(end), builder_.getInt64Ty()));
        else
          arguments.push_back(in_block(builder_.getInt64Ty(), end));
        continue;
      }
      arguments.push_back(parameter.values.empty()
                              ? builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), generic_block(), offset)
                              : table(parameter));
      arguments.push_back(builder_.getInt64(0));
      // Zeros follow the values.
      arguments.push_back(builder_.getInt64(parameter.guaranteed_bytes()));
    }
    arguments.push_back(ConstantPointerNull::get(builder_.getPtrTy()));
    Function& body = *module_.getFunction(kBodyFunction);
    builder_.CreateCall(&body, arguments);
    builder_.CreateRetVoid();
    body.setLinkage(GlobalValue::InternalLinkage);
    body.addFnAttr(Attribute::AlwaysInline);
    PassRunner(nullptr).run("always-inline", module_);
  }

  // The block's generic address. LLVM would copy a parameter whose address is used to local memory.
  Value* generic_block() {
    if (!generic_block_) {
      std::string text =
          concat("{ .reg .b64 %block; mov.b64 %block, ", parameter_symbol(*kernel_), "; cvta.param.u64 $0, %block; }");
      auto* type = FunctionType::get(builder_.getPtrTy(), false);
      CallInst* call = builder_.CreateCall(InlineAsm::get(type, text, "=l", /*hasSideEffects=*/false));
      call->setDoesNotAccessMemory();
      call->setDoesNotThrow();
      call->addRetAttr(Attribute::getWithDereferenceableBytes(module_.getContext(), layout_.bytes));
      call->addRetAttr(Attribute::getWithAlignment(module_.getContext(), Align(8)));
      generic_block_ = call;
    }
    return generic_block_;
  }

  // Values that the code is specialized for are not in the block. Accesses with variable indices read them from this
  // table.
  Value* table(const KernelParameter& parameter) {
    Type* element = builder_.getIntNTy(8 * parameter.element_bytes);
    std::vector<Constant*> values;
    for (size_t i = 0; i < parameter.guaranteed_bytes() / parameter.element_bytes; ++i)
      values.push_back(ConstantInt::getSigned(element, i < parameter.values.size() ? parameter.values[i] : 0));
    auto* type = ArrayType::get(element, values.size());
    auto* variable = new GlobalVariable(module_, type, /*isConstant=*/true, GlobalValue::InternalLinkage,
                                        ConstantArray::get(type, values), "__kiln_shape");
    variable->setAlignment(Align(8));
    return variable;
  }

  // ---- Values of the thread that the body reads

  void replace_values() {
    for (Instruction& instruction : make_early_inc_range(instructions(*kernel_))) {
      Value* value = nullptr;
      builder_.SetInsertPoint(&instruction);
      if (CallInst* call = find_call(instruction, kValueFunction))
        value = thread_value(cast<ConstantInt>(call->getArgOperand(0))->getZExtValue());
      else if (find_call(instruction, kSimdgroupFunction))
        value = builder_.CreateAnd(position_.index, builder_.getInt32(~31u));
      else if (find_call(instruction, kLaneFunction))
        value = builder_.CreateAnd(position_.index, builder_.getInt32(31));
      else if (find_call(instruction, kLaunchedFunction))
        value = launched();
      if (!value) continue;
      instruction.replaceAllUsesWith(value);
      instruction.eraseFromParent();
    }
  }

  Value* thread_value(uint64_t which) {
    static_assert(std::size(kThreadValues) == 7, "compute each value below, from what make_positions() gives");
    const ThreadValueRow* row = kiln::thread_value_row(which);
    if (!row) throw InternalError("an unknown value of a thread");
    const uint64_t component = which - row->value;
    switch (row->value) {
      case kPositionInThreadgroup: return position_.in_threadgroup[component];
      case kThreadgroupPosition: return position_.threadgroup[component];
      case kThreadsPerThreadgroup: return position_.extents[component];
      case kFullThreadsPerThreadgroup: return full_[component];
      case kThreadsPerGrid: return threads_per_grid_[component];
      case kThreadgroupsPerGrid: return threadgroups_[component];
      case kIndexInThreadgroup: return position_.index;
      default: throw InternalError("an unknown value of a thread");
    }
  }

  // The threadgroup's last simdgroup may have fewer than 32 lanes.
  Value* launched() {
    if (unit_.form.is_one_row || unit_.form.simdgroups_are_full) return builder_.getInt32(~0u);
    Value* count =
        builder_.CreateMul(builder_.CreateMul(position_.extents[0], position_.extents[1]), position_.extents[2]);
    Value* left = builder_.CreateSub(count, builder_.CreateAnd(position_.index, builder_.getInt32(~31u)));
    Value* lanes = builder_.CreateBinaryIntrinsic(Intrinsic::umin, left, builder_.getInt32(32));
    return builder_.CreateLShr(builder_.getInt32(~0u), builder_.CreateSub(builder_.getInt32(32), lanes));
  }

  Module& module_;
  const KernelUnit& unit_;
  GpuBlockLayout layout_;
  IRBuilder<> builder_;
  Function* kernel_ = nullptr;
  Value* block_ = nullptr;
  Value* generic_block_ = nullptr;
  Value* x_ = nullptr;
  Three threads_per_grid_{}, full_{}, threadgroups_{};
  ThreadPosition position_{};
};

}  // namespace

void split_thread_index(Function& body) {
  Module& module = *body.getParent();
  IRBuilder<> builder(body.getContext());
  for (Instruction& instruction : make_early_inc_range(instructions(body))) {
    if (thread_value(&instruction) != kIndexInThreadgroup) continue;
    auto* call = cast<CallInst>(&instruction);
    builder.SetInsertPoint(call);
    Function& simdgroup = pseudo_intrinsic(module, kSimdgroupFunction, FunctionType::get(builder.getInt32Ty(), false));
    Value* first = builder.CreateAnd(builder.CreateCall(&simdgroup), builder.getInt32(~31u));
    CallInst* lane = builder.CreateCall(&lane_function(module));
    lane->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, 32)));
    call->replaceAllUsesWith(builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, first, lane)));
    call->eraseFromParent();
  }
}

void create_exit(IRBuilderBase& builder) {
  auto* type = FunctionType::get(builder.getVoidTy(), false);
  builder.CreateCall(InlineAsm::get(type, "exit;", "", /*hasSideEffects=*/true));
}

Function& make_kernel_entry(Module& module, const KernelUnit& unit) { return EntryMaker(module, unit).run(); }

void read_parameters(Function& kernel) {
  const DataLayout& layout = kernel.getDataLayout();
  auto is_block = [](const Value* value) {
    const auto* call = dyn_cast<CallInst>(value);
    return call && call->isInlineAsm() &&
           StringRef(cast<InlineAsm>(call->getCalledOperand())->getAsmString()).contains("cvta.param");
  };
  Value* block = nullptr;
  for (Instruction& instruction : kernel.getEntryBlock())
    if (isa<AddrSpaceCastInst>(instruction) && instruction.getOperand(0) == kernel.getArg(0)) block = &instruction;
  for (Instruction& instruction : make_early_inc_range(instructions(kernel))) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load || !load->isSimple()) continue;
    APInt offset(64, 0);
    Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
    if (!is_block(base)) continue;
    IRBuilder<> builder(load);
    if (!block) {
      block = CastInst::CreatePointerCast(kernel.getArg(0), builder.getPtrTy(kParameterSpace), "block",
                                          kernel.getEntryBlock().begin());
    }
    load->setOperand(0, builder.CreateInBoundsGEP(builder.getInt8Ty(), block, builder.getInt(offset)));
  }
}

void compare_guards_with_ends(Function& kernel, const KernelUnit& unit) {
  const DataLayout& layout = kernel.getDataLayout();
  GpuBlockLayout block = gpu_block_layout(unit);
  // The element size of the argument whose end this is; 0 if it is none.
  auto element_bytes = [&](Value* value) -> uint64_t {
    if (auto* low = dyn_cast<ZExtInst>(value)) value = low->getOperand(0);
    auto* load = dyn_cast<LoadInst>(value);
    if (!load || load->getPointerAddressSpace() != kParameterSpace) return 0;
    APInt offset(64, 0);
    load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
    for (size_t i = 0; i < unit.parameters.size(); ++i) {
      const KernelParameter& parameter = unit.parameters[i];
      bool has_end = parameter.role == ParameterRole::kInput || parameter.role == ParameterRole::kOutput;
      if (has_end && offset == block.offsets[i] + offsetof(GpuArgument, end_byte)) return parameter.element_bytes;
    }
    return 0;
  };
  for (Instruction& instruction : make_early_inc_range(instructions(kernel))) {
    auto* starts = dyn_cast<IntrinsicInst>(&instruction);  // offsets where an access may start
    if (!starts || starts->getIntrinsicID() != Intrinsic::usub_sat) continue;
    auto* last = dyn_cast<ConstantInt>(starts->getArgOperand(1));
    Value* end = starts->getArgOperand(0);
    uint64_t element = element_bytes(end);
    if (!last || element == 0) continue;
    uint64_t size = last->getZExtValue() + 1;
    if (!isPowerOf2_64(size) || element % size != 0) continue;
    for (Use& use : make_early_inc_range(starts->uses())) {
      auto* comparison = dyn_cast<ICmpInst>(use.getUser());
      if (!comparison || comparison->getPredicate() != ICmpInst::ICMP_ULT || use.getOperandNo() != 1) continue;
      unsigned zeros = computeKnownBits(comparison->getOperand(0), layout).countMinTrailingZeros();
      if (zeros >= Log2_64(size)) use.set(end);
    }
    if (starts->use_empty()) starts->eraseFromParent();
  }
}

}  // namespace kiln
