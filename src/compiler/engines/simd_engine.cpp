// The SIMD engine: the threads of a simdgroup at once, as vectors of 32 (`vectorize/widen.h`).
//
// A row of threads is cut into pieces of 32; the last one runs under a mask. What the engine cannot take, the scalar
// one does, and EngineOutput says why.
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/codegen/lane_loop_splitting.h"
#include "compiler/codegen/split_vectors.h"
#include "compiler/engines/engine.h"
#include "compiler/engines/engine_support.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/entry.h"
#include "compiler/ir/likely.h"
#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/pass_runner.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "compiler/ir/vector_isa.h"
#include "compiler/lowering/approximations.h"
#include "compiler/lowering/convergence_points.h"
#include "compiler/lowering/ldexp.h"
#include "compiler/lowering/small_floats.h"
#include "compiler/lowering/spin_loops.h"
#include "compiler/memory/address_order.h"
#include "compiler/memory/constant_offsets.h"
#include "compiler/memory/indirect_prefetch.h"
#include "compiler/memory/invariant_cache.h"
#include "compiler/memory/prefetch.h"
#include "compiler/memory/store_forwarding.h"
#include "compiler/vectorize/widen.h"
#include "compiler/versioning/function_versioning.h"
#include "compiler/versioning/loop_versioning.h"
#include "compiler/workgroup/coarsened_addresses.h"
#include "compiler/workgroup/deferred_reductions.h"
#include "compiler/workgroup/first_stores.h"
#include "compiler/workgroup/reuse_barriers.h"
#include "compiler/workgroup/simdgroup_loops.h"
#include "compiler/workgroup/suspend_points.h"
#include "compiler/workgroup/thread_coarsening.h"
#include "compiler/workgroup/tile_multibuffering.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kGroupFunction = "__kiln_simdgroup";
constexpr const char* kThreadgroupFunction = "__kiln_threadgroup";
constexpr const char* kRowFunction = "__kiln_simd_row";

class SimdEngine : public CpuEngine {
 public:
  explicit SimdEngine(bool takes_long_bodies) : takes_long_bodies_(takes_long_bodies) {}

  EngineOutput lower(Module& module, const KernelUnit& unit, TargetMachine& machine, StageKeeper keep_stage) override {
    std::string reason = refusal(machine);
    std::vector<ConvergencePoint> sites;
    bool halves_share = false, has_avx512 = machine.getTargetCPU() == "x86-64-v4";
    // Metal has no such promise (docs/language.md 2.5).
    if (reason.empty() && unit.dialect == Dialect::kCuda && has_spin_loops(*module.getFunction(kBodyFunction)))
      reason = kSpinLoop;
    if (reason.empty()) reason = widen_group(module, unit, has_avx512, sites, halves_share, keep_stage);
    expand_scaling(module);
    expand_approximations(module);
    if (reason.empty() && stack_of(*module.getFunction(kGroupFunction)) > kCpuPrivateMemoryLimit)
      reason = "the private variables of 32 threads take too much memory";
    if (!reason.empty()) {
      for (const char* name : {kGroupFunction, kLaneFunction})
        if (Function* function = module.getFunction(name)) function->eraseFromParent();
      EngineOutput output = scalar_->lower(module, unit, machine, keep_stage);
      output.reason = concat("the SIMD engine does not take it: ", reason);
      return output;
    }
    module.getFunction(kBodyFunction)->eraseFromParent();
    EngineOutput output;
    output.engine = "simd";
    output.reason = takes_long_bodies_ ? "KILN_CPU_ENGINE asks for it" : "the default";
    Function& group = *module.getFunction(kGroupFunction);
    // Nothing else is in the frame's place yet.
    bool knows_row = !group.getArg(2)->use_empty();
    if (unit.rows_are_runs && sites.empty()) {
      IRBuilder<> builder(&*group.getEntryBlock().getFirstInsertionPt());
      // As numbers of the same widths as in calls of the function, so that casts cancel out.
      lower_half_offset(group, builder.CreateTrunc(builder.CreatePtrToInt(group.getArg(2), builder.getInt64Ty()),
                                                   builder.getInt32Ty()));
    }
    output.threadgroup_memory_bytes =
        lower_threadgroup_memory(module, group, group.getArg(1), CpuImageKind::kSimdgroups);
    output.may_spin = may_spin(group);
    output.wants_row_locks = any_of(instructions(group), wants_row_locks);
    bool has_atomics =
        any_of(instructions(group), [](const Instruction& i) { return i.isAtomic() || striped_range(i); });
    // Otherwise registers for which there is no room go to places that cross cache lines.
    group.addFnAttr("stackrealign");
    group.setDoesNotFreeMemory();
    if (sites.empty()) {
      output.run_function = kRowFunction;
      Function& row = add_row(group);
      if (!has_atomics) row.setNoSync();
      Function* whole = halves_share ? nullptr : version_function(group, machine);
      if (whole) {
        output.takes_rows = knows_row;
        run_rows(row, *whole, group, unit.rows_are_runs, knows_row);
        inline_into_callers(module, {whole});
        if (knows_row) read_launch_first(row);
      } else if (halves_share) {
        ValueToValueMapTy map;
        Function* full = CloneFunction(&group, map);
        run_coarsened(row, *full, group);
        inline_into_callers(module, {full});
      } else {
        run_in_groups(row, group, unit.rows_are_runs);
        inline_into_callers(module, {&group});
      }
      // What is left is a function of its own.
      if (whole || halves_share) {
        group.setLinkage(GlobalValue::InternalLinkage);
        group.addFnAttr(Attribute::NoInline);
        if (!has_atomics) group.setNoSync();
      }
      optimize(module, machine);
      PassRunner runner(&machine);
      if (halves_share) {
        runner.run_pass(IndirectPrefetchPass(), row);
        runner.run_pass(CoarsenedAddressesPass(), row);
        hoist_checks(CoarsenedLoopVersioningPass(group), row, runner);
        runner.run("loop-mssa(licm)", row);
      }
      split_lane_loops(row, has_avx512, /*may_have_collectives=*/false, runner);
      if (whole) split_lane_loops(group, has_avx512, /*may_have_collectives=*/false, runner);
      order_stores(row, has_avx512 ? 64 : 32);
    } else {
      output.kind = CpuImageKind::kSimdgroups;
      output.run_function = kGroupFunction;
      bool has_barriers = any_of(sites, [](const ConvergencePoint& site) { return site.is_barrier; });
      Function* full = has_barriers ? full_simdgroup(group, unit.simdgroups) : nullptr;
      optimize(module, machine);
      const VectorRegisters registers = has_avx512 ? VectorRegisters{32, 64} : VectorRegisters{16, 32};
      if (!has_barriers) {
        PassRunner runner(&machine);
        hoist_checks(LoopVersioningPass(kFewestRows), group, runner);
        runner.run_pass(InvariantCachePass(output.table_bytes), group);
        // Otherwise `x` is known to be within a threadgroup.
        if (unit.simdgroups == 0) runner.run_pass(AtomicPrefetchPass(), group);
        if (output.table_bytes > 0) {
          split_lane_loops(group, has_avx512, /*may_have_collectives=*/true, runner);
          runner.run_pass(PrefetchPass(/*ahead=*/1, registers.bytes), group);
        }
      } else {
        // What waits keeps its number; what is exchanged has become instructions.
        for (ConvergencePoint& site : sites) site.combine = nullptr, site.exchange = CpuExchange::kNone;
        output.combine_functions.resize(sites.size());
        output.sites = std::move(sites);
        // Taken before what waits is cut.
        auto is_barrier = [](const Instruction& i) { return convergence_point_at(i).has_value(); };
        PassRunner runner(&machine);
        TileMultibuffering batches;
        // One simdgroup keeps its sums in registers as it is.
        if (unit.simdgroups != 1)
          batches = multibuffer_tiles(*full, output.threadgroup_memory_bytes, registers, is_barrier);
        if (batches.changed) runner.run("instsimplify,adce,simplifycfg", *full);
        std::optional<uint64_t> frame = loop_over_simdgroups(*full, kThreadgroupFunction, unit.simdgroups, is_barrier);
        if (batches.tiles) put_on_stack(*batches.tiles, frame ? module.getFunction(kThreadgroupFunction) : nullptr);
        output.frame_bytes = std::max(split_at_suspend_points(group), frame.value_or(0));
        runner.run("early-cse,simplifycfg", group);
        if (frame) {
          output.threadgroup_function = kThreadgroupFunction;
          output.threadgroup_simdgroups = unit.simdgroups;
          Function& threadgroup = *module.getFunction(kThreadgroupFunction);
          runner.run(kInvariantsPipeline, threadgroup);
          hoist_checks(ThreadgroupVersioningPass(), threadgroup, runner);
          Function* apart = module.getFunction((Twine(kThreadgroupFunction) + kSlowSuffix).str());
          for (Function* function : {&threadgroup, apart}) {
            if (!function) continue;
            runner.run(kSimpleLoops, *function);
            runner.run_pass(FirstStoresPass(), *function);
            runner.run("simplifycfg", *function);
            runner.run(kLoopsPipeline, *function);
            runner.run(kSimpleLoops, *function);
            bool has_sums = false;
            runner.run_pass(DeferredReductionsPass(registers.bytes / sizeof(float), has_sums), *function);
            if (has_sums) runner.run(kSumsPipeline, *function);
            if (unit.simdgroups != 0) runner.run_pass(StoreForwardingPass(has_avx512 ? 64 : 32), *function);
            runner.run_pass(ConstantOffsetsPass(), *function);
            runner.run(kLastPipeline, *function);
            split_lane_loops(*function, has_avx512, /*may_have_collectives=*/true, runner);
          }
          runner.run_pass(AddressOrderPass(registers.count, registers.bytes), threadgroup);
          runner.run_pass(PrefetchPass(kThreadgroupsAhead, registers.bytes), threadgroup);
        }
      }
    }
    output.private_bytes = (output.frame_bytes + largest_stack(module)) / kLanes;
    return output;
  }

 private:
  // Values that loops over simdgroups have in common leave them; loops that are left without anything to do go.
  static constexpr const char* kInvariantsPipeline = "early-cse<memssa>,simplifycfg,loop-mssa(licm),instsimplify";
  static constexpr const char* kLoopsPipeline =
      "loop(loop-deletion,loop-unroll-full),sroa,simplifycfg,gvn<no-pre>,"
      "instcombine<no-verify-fixpoint>";
  // Loops with a block before and one behind.
  static constexpr const char* kSimpleLoops = "loop-simplify";
  // What sums have been stored to becomes registers.
  static constexpr const char* kSumsPipeline = "sroa,simplifycfg,adce,gvn<no-pre>,instcombine<no-verify-fixpoint>";
  static constexpr const char* kLastPipeline = "early-cse,dse,adce,simplifycfg";

  // Of a threadgroup.
  static constexpr unsigned kMostSimdgroups = 32;

  // Of accesses in a loop, where it is worth to have it twice.
  static constexpr unsigned kFewestRows = 3;

  // In the frame's place, above the piece of a run: how far a row is from the first one of a call, in y.
  static constexpr unsigned kRowShift = 6;
  static_assert(kCoarsenedThreads <= 1u << kRowShift);

  // Of what is asked for. What the next threadgroup reads first would come too late where it is asked for last.
  static constexpr uint32_t kThreadgroupsAhead = 2;

  template <class Pass>
  static void hoist_checks(Pass pass, Function& function, PassRunner& runner) {
    runner.run_pass(std::move(pass), function);
    // What is no longer asked.
    runner.run("simplifycfg,early-cse,adce,simplifycfg", function);
  }

  static void split_lane_loops(Function& function, bool has_avx512, bool may_have_collectives, PassRunner& runner) {
    runner.run_pass(LaneLoopSplittingPass(has_avx512 ? 32 : 16, has_avx512 ? 64 : 32, may_have_collectives), function);
  }

  static Function* version_function(Function& group, TargetMachine& machine) {
    Function* whole = nullptr;
    PassRunner(&machine).run_pass(FunctionVersioningPass(kFewestRows, whole), group);
    return whole;
  }

  // CpuRowFunction, still empty.
  static Function& add_row(Function& group) {
    Type *pointer = PointerType::getUnqual(group.getContext()), *number = Type::getInt32Ty(group.getContext());
    return add_function(group, kRowFunction, {pointer, pointer, number, number});
  }

  // Which half of its run the simdgroup at `x` is (workgroup/thread_coarsening.h): it goes where a frame would.
  static Value* half_at(Value* x, IRBuilder<>& builder) {
    return builder.CreateZExt(builder.CreateAnd(x, builder.getInt32(kLanes)), builder.getInt64Ty());
  }

  // The row in whole simdgroups, which need no masks, and what is left.
  static void run_in_groups(Function& row, Function& group, bool in_runs) {
    LLVMContext& context = row.getContext();
    auto block = [&](const char* name) { return BasicBlock::Create(context, name, &row); };
    BasicBlock *entry = &row.getEntryBlock(), *next = block("next"), *whole = block("whole"), *rest = block("rest"),
               *part = block("part"), *end = block("end");
    IRBuilder<> builder(entry);
    Value *count = row.getArg(2), *lanes = builder.getInt32(kLanes);
    builder.CreateBr(next);
    builder.SetInsertPoint(next);
    PHINode* x = builder.CreatePHI(builder.getInt32Ty(), 2);
    builder.CreateCondBr(builder.CreateICmpULE(builder.CreateAdd(x, lanes), count), whole, rest);
    auto call = [&](Value* threads) {
      Value* frame = ConstantPointerNull::get(builder.getPtrTy());
      if (in_runs) frame = builder.CreateIntToPtr(half_at(x, builder), builder.getPtrTy());
      builder.CreateCall(&group, {row.getArg(0), row.getArg(1), frame, x, threads});
    };
    builder.SetInsertPoint(whole);
    call(lanes);
    x->addIncoming(builder.getInt32(0), entry);
    x->addIncoming(builder.CreateAdd(x, lanes), whole);
    builder.CreateBr(next);
    builder.SetInsertPoint(rest);
    builder.CreateCondBr(builder.CreateICmpULT(x, count), part, end);
    builder.SetInsertPoint(part);
    call(builder.CreateSub(count, x));
    builder.CreateBr(end);
    builder.SetInsertPoint(end);
    builder.CreateRetVoid();
  }

  // Rows of threads, as many as the last argument says or one, by simdgroups of which all accesses are rows; of others
  // `group` runs one at a time. It is called, and outside of the loop that mostly runs, in which no register is kept
  // for it then.
  static void run_rows(Function& row, Function& whole, Function& group, bool in_runs, bool takes_rows) {
    LLVMContext& context = row.getContext();
    auto block = [&](const char* name) { return BasicBlock::Create(context, name, &row); };
    BasicBlock *entry = &row.getEntryBlock(), *rows = block("rows"), *first = block("first"), *full = block("full"),
               *next = block("next"), *behind = block("behind"), *other = block("other"), *next_row = block("next_row"),
               *end = block("end");
    IRBuilder<> builder(entry);
    Value *count = row.getArg(2), *zero = builder.getInt32(0), *lanes = builder.getInt32(kLanes);
    auto begin = [&](BasicBlock* block, unsigned values) {
      builder.SetInsertPoint(block);
      return builder.CreatePHI(builder.getInt32Ty(), values);
    };
    builder.CreateBr(rows);
    PHINode* y = begin(rows, 2);
    builder.CreateBr(first);
    auto call = [&](Function& function, Value* x, Value* threads) {
      Value* frame = in_runs ? half_at(x, builder) : builder.getInt64(0);
      if (takes_rows)
        frame = builder.CreateOr(frame, builder.CreateShl(builder.CreateZExt(y, builder.getInt64Ty()), kRowShift));
      frame = builder.CreateIntToPtr(frame, builder.getPtrTy());
      return builder.CreateCall(&function, {row.getArg(0), row.getArg(1), frame, x, threads});
    };
    auto go_on = [&](Value* x) {
      builder.CreateCondBr(builder.CreateICmpUGE(builder.CreateSub(count, x), lanes), full, behind);
    };
    PHINode* first_x = begin(first, 2);
    go_on(first_x);
    PHINode* x = begin(full, 2);
    builder.CreateCondBr(call(whole, x, lanes), next, behind, likely_first(context));
    builder.SetInsertPoint(next);
    Value* next_x = builder.CreateAdd(x, lanes);
    go_on(next_x);

    PHINode* rest = begin(behind, 3);
    Value* left = builder.CreateSub(count, rest);
    builder.CreateCondBr(builder.CreateIsNotNull(left), other, next_row);
    builder.SetInsertPoint(other);
    Value* threads = builder.CreateBinaryIntrinsic(Intrinsic::umin, left, lanes);
    call(group, rest, threads);
    first_x->addIncoming(zero, rows);
    first_x->addIncoming(builder.CreateAdd(rest, threads), other);
    builder.CreateBr(first);
    x->addIncoming(first_x, first);
    x->addIncoming(next_x, next);
    rest->addIncoming(first_x, first);
    rest->addIncoming(x, full);
    rest->addIncoming(next_x, next);
    builder.SetInsertPoint(next_row);
    Value* next_y = builder.CreateAdd(y, builder.getInt32(1));
    y->addIncoming(zero, entry);
    if (takes_rows) {
      y->addIncoming(next_y, next_row);
      builder.CreateCondBr(builder.CreateICmpULT(next_y, row.getArg(3)), rows, end);
    } else {
      builder.CreateBr(end);
    }
    builder.SetInsertPoint(end);
    builder.CreateRetVoid();
  }

  // What the launch and the record of its first thread say is always there: so it can leave loops that may not run.
  static void read_launch_first(Function& row) {
    BasicBlock& entry = row.getEntryBlock();
    auto base_of = [](LoadInst& load, APInt& offset) -> Value* {
      return load.getPointerOperand()->stripAndAccumulateConstantOffsets(load.getDataLayout(), offset, true);
    };
    auto is_there = [&](Value* base) {
      if (base == row.getArg(0) || base == row.getArg(1)) return true;
      auto* arguments = dyn_cast<LoadInst>(base);
      APInt offset(64, 0);
      return arguments && arguments->getParent() == &entry && base_of(*arguments, offset) == row.getArg(0) &&
             offset == offsetof(CpuLaunch, arguments);
    };
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&row))
      for (Instruction& instruction : make_early_inc_range(*block)) {
        auto* load = dyn_cast<LoadInst>(&instruction);
        if (!load || block == &entry || !load->hasMetadata(LLVMContext::MD_invariant_load)) continue;
        APInt offset(64, 0);
        Value* base = base_of(*load, offset);
        if (!is_there(base)) continue;
        IRBuilder<> builder(entry.getTerminator());
        load->setOperand(0, builder.CreatePtrAdd(base, builder.getInt(offset)));
        load->moveBefore(entry.getTerminator());
      }
  }

  // What a threadgroup has for itself, where there is a function for one.
  static void put_on_stack(GlobalVariable& variable, Function* threadgroup) {
    if (threadgroup) {
      convertUsersOfConstantsToInstructions({&variable});
      IRBuilder<> builder(&*threadgroup->getEntryBlock().begin());
      AllocaInst* place = builder.CreateAlloca(variable.getValueType());
      place->setAlignment(variable.getAlign().valueOrOne());
      variable.replaceAllUsesWith(place);
    }
    variable.removeDeadConstantUsers();
    variable.eraseFromParent();
  }

  // The row in runs of 64 threads: for each, a loop over its pieces, two but in the last one. What is left runs under
  // masks.
  static void run_coarsened(Function& row, Function& full, Function& group) {
    LLVMContext& context = row.getContext();
    auto block = [&](const char* name) { return BasicBlock::Create(context, name, &row); };
    BasicBlock *entry = &row.getEntryBlock(), *runs = block("runs"), *pieces = block("pieces"), *next = block("next"),
               *rest = block("rest"), *masked = block("masked"), *end = block("end");
    IRBuilder<> builder(entry);
    Value* count = row.getArg(2);
    auto number = [&](unsigned value) { return builder.getInt32(value); };
    auto call = [&](Function& function, Value* piece, Value* x, Value* lanes) {
      Value* frame = builder.CreateIntToPtr(builder.CreateZExt(piece, builder.getInt64Ty()), builder.getPtrTy());
      builder.CreateCall(&function, {row.getArg(0), row.getArg(1), frame, x, lanes});
    };
    Value* whole = builder.CreateAnd(count, number(~(kLanes - 1)));
    builder.CreateCondBr(builder.CreateICmpNE(whole, number(0)), runs, rest);

    builder.SetInsertPoint(runs);
    PHINode* x = builder.CreatePHI(builder.getInt32Ty(), 2);
    Value* left = builder.CreateSub(whole, x);
    // Of this one bit LLVM knows that there are one piece or two.
    Value* last_piece =
        builder.CreateSelect(builder.CreateICmpULT(left, number(kCoarsenedThreads)), number(0), number(kLanes));
    builder.CreateBr(pieces);
    builder.SetInsertPoint(pieces);
    PHINode* piece = builder.CreatePHI(builder.getInt32Ty(), 2);
    call(full, piece, x, number(kLanes));
    Value* next_piece = builder.CreateAdd(piece, number(kLanes));
    BranchInst* again = builder.CreateCondBr(builder.CreateICmpNE(piece, last_piece), pieces, next);
    piece->addIncoming(number(0), runs);
    piece->addIncoming(next_piece, pieces);
    // Twice the code would be twice as long to compile.
    never_unroll(*again);
    builder.SetInsertPoint(next);
    Value* next_x = builder.CreateAdd(x, number(kCoarsenedThreads));
    builder.CreateCondBr(builder.CreateICmpULT(next_x, whole), runs, rest);
    x->addIncoming(number(0), entry);
    x->addIncoming(next_x, next);

    builder.SetInsertPoint(rest);
    builder.CreateCondBr(builder.CreateICmpNE(whole, count), masked, end);
    builder.SetInsertPoint(masked);
    call(group, builder.CreateAnd(whole, number(kLanes)), whole, builder.CreateSub(count, whole));
    builder.CreateBr(end);
    builder.SetInsertPoint(end);
    builder.CreateRetVoid();
  }

  // The same for simdgroups without threads that are missing: no masks are needed where all threads go.
  // Of a threadgroup that is a row of `count` simdgroups, where that is not 0.
  static Function* full_simdgroup(Function& group, unsigned count) {
    ValueToValueMapTy map;
    Function* full = CloneFunction(&group, map);
    Argument* lanes = full->getArg(full->arg_size() - 1);
    lanes->replaceAllUsesWith(ConstantInt::get(lanes->getType(), kLanes));
    if (count == 0) return full;
    for (Instruction& instruction : make_early_inc_range(instructions(*full))) {
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || !load->getType()->isIntegerTy(32)) continue;
      APInt offset(64, 0);
      Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(load->getDataLayout(), offset, true);
      if (base != full->getArg(1)) continue;
      uint64_t field = offset.getZExtValue() / sizeof(uint32_t);
      std::optional<uint32_t> value;
      if (field == kPositionInThreadgroup + 1 || field == kPositionInThreadgroup + 2) value = 0;
      if (field == kThreadsPerThreadgroup) value = count * kLanes;
      if (field == kThreadsPerThreadgroup + 1 || field == kThreadsPerThreadgroup + 2) value = 1;
      if (!value) continue;
      load->replaceAllUsesWith(ConstantInt::get(load->getType(), *value));
      load->eraseFromParent();
    }
    return full;
  }

  static std::string refusal(const TargetMachine& machine) {
    if (machine.getTargetCPU() != "x86-64-v3" && machine.getTargetCPU() != "x86-64-v4") return "it needs AVX2";
    return "";
  }

  std::string widen_group(Module& module, const KernelUnit& unit, bool has_avx512, std::vector<ConvergencePoint>& sites,
                          bool& halves_share, StageKeeper keep_stage) const {
    Function& body = *module.getFunction(kBodyFunction);
    ValueToValueMapTy map;
    Function* copy = CloneFunction(&body, map);
    add_reuse_barriers(*copy);
    sites = number_convergence_points(*copy, LoopEnds::kKept);
    // CpuSimdgroupFunction.
    Type *pointer = PointerType::getUnqual(module.getContext()), *number = Type::getInt32Ty(module.getContext());
    Function& group = add_caller(*copy, kGroupFunction, {pointer, number, number}, unit);
    inline_into_callers(module, {copy});
    // The inliner has removed the copy.
    // Where nobody waits a row is not one threadgroup's: neighbours' rows may be run as one.
    bool has_convergence_points = !sites.empty();
    bool in_runs = unit.rows_are_runs && !has_convergence_points;
    lower_positions(group, has_convergence_points, unit.rows_are_simdgroups, in_runs,
                    has_convergence_points ? unit.simdgroups : 0, unit.dialect == Dialect::kCuda);
    // A vector of bfloats, too, would become calls of a function for each.
    remove_bfloat(group);
    auto is_output = [&](uint64_t argument) {
      return argument < unit.parameters.size() && unit.parameters[argument].role == ParameterRole::kOutput;
    };
    return widen(group, {has_avx512, unit.simdgroups_are_full && has_convergence_points, takes_long_bodies_, sites,
                         offsetof(CpuLaunch, is_alone), is_output, in_runs ? &halves_share : nullptr, keep_stage});
  }

  // A thread's place in its row is the first one's and its lane. Where threads wait, `group` is one simdgroup, which
  // may go over several rows.
  // `simdgroups` are those of a threadgroup that is one row of them, where it is not 0: a power of two.
  // `is_signed`: bodies divide positions as signed numbers, so that it must be known that they are none.
  static void lower_positions(Function& group, bool has_convergence_points, bool rows_are_simdgroups, bool in_runs,
                              unsigned simdgroups, bool is_signed) {
    Value *record = group.getArg(1), *x = group.getArg(3);
    Function& lane = lane_function(*group.getParent());
    set_speculatable(lane);
    lane.addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, kLanes)));
    for (Instruction& instruction : make_early_inc_range(instructions(group))) {
      const std::optional<uint64_t> value_number = thread_value(&instruction);
      if (!value_number) continue;
      auto* call = cast<CallInst>(&instruction);
      IRBuilder<> builder(call);
      const uint64_t which = *value_number;
      auto recorded = [&](uint64_t value) {
        LoadInst* load = builder.CreateLoad(
            builder.getInt32Ty(),
            builder.CreateInBoundsGEP(builder.getInt32Ty(), record, builder.getInt32(static_cast<uint32_t>(value))));
        load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load->getContext(), {}));
        return load;
      };
      auto in_record = [&] { return recorded(which); };
      // What is known to be a multiple of 32 lets the optimiser divide the simdgroup's place from the lane's: x / 64 is
      // the same in all lanes then. Where it must be less than a known number of threads, comparisons with lengths fall
      // away.
      auto multiple = [&](Value* number, unsigned of = kLanes) {
        return builder.CreateAnd(number, builder.getInt32(~(of - 1)));
      };
      auto place = [&](Value* number) {
        const unsigned most = simdgroups ? simdgroups : has_convergence_points && is_signed ? kMostSimdgroups : 0;
        return most ? builder.CreateAnd(number, builder.getInt32((most - 1) * kLanes)) : multiple(number);
      };
      auto index_in_simdgroups = [&] {
        return builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, place(recorded(kIndexInThreadgroup)),
                                                             builder.CreateCall(&lane)));
      };
      // Exact for a threadgroup's at most 1024 threads: what is rounded is at least 1/2048 away from a whole number.
      // Vectors have no division of integers.
      auto quotient = [&](Value* number, Value* divisor) {
        Type* real = builder.getFloatTy();
        Value* middle = builder.CreateFAdd(builder.CreateUIToFP(number, real), ConstantFP::get(real, 0.5));
        Value* inverse = builder.CreateFDiv(ConstantFP::get(real, 1), builder.CreateUIToFP(divisor, real));
        return builder.CreateFPToUI(builder.CreateFMul(middle, inverse), builder.getInt32Ty());
      };
      auto remainder = [&](Value* number, Value* divisor) {
        return builder.CreateSub(number, builder.CreateMul(quotient(number, divisor), divisor));
      };
      // Of the row, in those of one call.
      auto row = [&] {
        Value* frame = builder.CreatePtrToInt(group.getArg(2), builder.getInt64Ty());
        return builder.CreateTrunc(builder.CreateLShr(frame, kRowShift), builder.getInt32Ty());
      };
      Value* value;
      if (has_convergence_points && which == kIndexInThreadgroup)
        value = index_in_simdgroups();
      else if (simdgroups && (which == kPositionInThreadgroup + 1 || which == kPositionInThreadgroup + 2))
        value = builder.getInt32(0);
      else if (has_convergence_points && !rows_are_simdgroups && which == kPositionInThreadgroup)
        value = remainder(index_in_simdgroups(), recorded(kThreadsPerThreadgroup));
      else if (has_convergence_points && !rows_are_simdgroups && which == kPositionInThreadgroup + 1)
        value = remainder(quotient(index_in_simdgroups(), recorded(kThreadsPerThreadgroup)),
                          recorded(kThreadsPerThreadgroup + 1));
      else if (has_convergence_points && !rows_are_simdgroups && which == kPositionInThreadgroup + 2)
        value = quotient(quotient(index_in_simdgroups(), recorded(kThreadsPerThreadgroup)),
                         recorded(kThreadsPerThreadgroup + 1));
      else if (which == kPositionInThreadgroup)
        value = builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, place(x), builder.CreateCall(&lane)));
      else if (which == kPositionInThreadgroup + 1 && !has_convergence_points)
        value = builder.CreateAdd(in_record(), row());
      else if (which == kIndexInThreadgroup) {
        Value* index = builder.CreateAdd(in_record(), x);
        if (!has_convergence_points)
          index = builder.CreateAdd(index, builder.CreateMul(row(), recorded(kThreadsPerThreadgroup)));
        value = builder.CreateAdd(index, builder.CreateCall(&lane));
      } else if (which == kFullThreadsPerThreadgroup && rows_are_simdgroups)
        value = multiple(in_record(), in_runs ? kCoarsenedThreads : kLanes);
      else
        value = in_record();
      call->replaceAllUsesWith(value);
      call->eraseFromParent();
    }
  }

  const bool takes_long_bodies_;
  std::unique_ptr<CpuEngine> scalar_ = make_scalar_engine();
};

}  // namespace

std::unique_ptr<CpuEngine> make_simd_engine(bool takes_long_bodies) {
  return std::make_unique<SimdEngine>(takes_long_bodies);
}

}  // namespace kiln
