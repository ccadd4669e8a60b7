#include "compiler/analysis/divergence.h"

#include <gtest/gtest.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/CycleInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sanitizers.h"

namespace kiln {
namespace {

using namespace llvm;

// A function's first argument is the thread's number; the others are the same for all. A `freeze` stands for what
// threads agree on, as in a vote.
constexpr uint32_t kThreads = 6;
constexpr unsigned kMostBlocks = 160;  // a loop may have no end

Difference difference_of(const Value& value) {
  if (const auto* argument = dyn_cast<Argument>(&value); argument && argument->getArgNo() == 0)
    return Difference::kSource;
  return isa<FreezeInst>(value) ? Difference::kNone : Difference::kInherits;
}

using Number = std::optional<uint32_t>;  // none: undefined, which may be whatever others have

// Counts the iterations of the loops around what a thread runs. Threads are at the same place at the same time where
// they are in the same block and the same iterations.
class Place {
 public:
  explicit Place(const CycleInfo& cycles) : cycles_(cycles) {}

  // The block's instance: of a loop with one entry, how often its header was come to; of another, how often the part
  // was that the block belongs to.
  std::vector<unsigned> go_to(const BasicBlock& block) {
    SmallVector<const Cycle*> around;
    for (const Cycle* cycle = cycles_.getCycle(&block); cycle; cycle = cycle->getParentCycle()) around.push_back(cycle);
    std::reverse(around.begin(), around.end());
    while (!loops_.empty() && !loops_.back().cycle->contains(&block)) loops_.pop_back();
    if (!loops_.empty()) count(loops_.back(), around, block);
    while (loops_.size() < around.size()) {
      loops_.push_back({around[loops_.size()], {}});
      count(loops_.back(), around, block);
    }
    std::vector<unsigned> counts;
    for (unsigned i = 0; i < loops_.size(); ++i) counts.push_back(loops_[i].times[part(i, around, block)]);
    return counts;
  }

 private:
  struct Entered {
    const Cycle* cycle;
    std::map<const void*, unsigned> times;
  };

  const void* part(size_t depth, ArrayRef<const Cycle*> around, const BasicBlock& block) const {
    if (loops_[depth].cycle->isReducible()) return loops_[depth].cycle->getHeader();
    return depth + 1 < around.size() ? static_cast<const void*>(around[depth + 1]) : &block;
  }

  void count(Entered& loop, ArrayRef<const Cycle*> around, const BasicBlock& block) {
    if (!loop.cycle->isReducible() || loop.cycle->getHeader() == &block)
      ++loop.times[part(loops_.size() - 1, around, block)];
  }

  const CycleInfo& cycles_;
  std::vector<Entered> loops_;
};

// What differs between threads that are run one after another.
class Observation {
 public:
  Observation(Function& function, const CycleInfo& cycles) : function_(function), cycles_(cycles) {}

  void run(ArrayRef<uint32_t> same_arguments) {
    instances_.clear();
    for (uint32_t thread = 0; thread < kThreads; ++thread) run_thread(thread, same_arguments);
  }

  DenseSet<const Instruction*> values;
  DenseSet<const Use*> uses;
  DenseSet<const BasicBlock*> branches;
  DenseSet<const BasicBlock*> shared;  // two threads were in one instance

 private:
  struct Instance {
    bool has_run = false;
    std::map<const void*, Number> numbers;  // of instructions and uses
    const BasicBlock* next = nullptr;
  };

  template <typename Key, typename Differing>
  void compare(Instance& instance, const Key* key, Number number, Differing& differing) {
    if (!number) return;
    Number& known = instance.numbers[key];
    if (known && *known != *number) differing.insert(key);
    known = number;
  }

  void run_thread(uint32_t thread, ArrayRef<uint32_t> same_arguments) {
    DenseMap<const Value*, Number> numbers;
    numbers[function_.getArg(0)] = thread;
    for (unsigned i = 0; i < same_arguments.size(); ++i) numbers[function_.getArg(i + 1)] = same_arguments[i];
    Place place(cycles_);
    const BasicBlock *before = nullptr, *block = &function_.getEntryBlock();
    for (unsigned i = 0; i < kMostBlocks && block; ++i) {
      std::vector<unsigned> counts = place.go_to(*block);
      Instance& instance = instances_[{block, counts}];
      before = std::exchange(block, run_block(*block, before, counts, numbers, instance));
    }
  }

  // Where the thread goes on.
  const BasicBlock* run_block(const BasicBlock& block, const BasicBlock* before, ArrayRef<unsigned> counts,
                              DenseMap<const Value*, Number>& numbers, Instance& instance) {
    auto number_of = [&](const Value* value) -> Number {
      if (const auto* constant = dyn_cast<ConstantInt>(value)) return static_cast<uint32_t>(constant->getZExtValue());
      return numbers.lookup(value);
    };
    if (std::exchange(instance.has_run, true)) shared.insert(&block);
    std::vector<std::pair<const PHINode*, Number>> chosen;
    for (const PHINode& phi : block.phis()) {
      const Use& use = phi.getOperandUse(static_cast<unsigned>(phi.getBasicBlockIndex(before)));
      chosen.push_back({&phi, number_of(use.get())});
      compare(instance, &use, chosen.back().second, uses);
    }
    auto set = [&](const Instruction& instruction, Number number) {
      numbers[&instruction] = number;
      compare(instance, &instruction, number, values);
    };
    for (auto [phi, number] : chosen) set(*phi, number);
    for (const Instruction& instruction : block) {
      if (isa<PHINode>(instruction)) continue;
      for (const Use& use : instruction.operands())
        if (!isa<BasicBlock>(use.get())) compare(instance, &use, number_of(use.get()), uses);
      if (!instruction.isTerminator()) {
        set(instruction, isa<FreezeInst>(instruction) ? agreed(counts) : computed(instruction, number_of));
        continue;
      }
      const BasicBlock* next = way(instruction, number_of);
      if (next && instance.next && next != instance.next) branches.insert(&block);
      if (next) instance.next = next;
      return next;
    }
    return nullptr;
  }

  static Number agreed(ArrayRef<unsigned> counts) {
    uint32_t number = 7;
    for (unsigned count : counts) number = number * 31 + count;
    return number;
  }

  template <typename NumberOf>
  static Number computed(const Instruction& instruction, NumberOf number_of) {
    if (const auto* select = dyn_cast<SelectInst>(&instruction)) {
      Number condition = number_of(select->getCondition());
      return condition ? number_of(*condition ? select->getTrueValue() : select->getFalseValue()) : Number();
    }
    Number a = number_of(instruction.getOperand(0)), b = number_of(instruction.getOperand(1));
    if (!a || !b) return std::nullopt;
    if (const auto* compare = dyn_cast<ICmpInst>(&instruction))
      return ICmpInst::compare(APInt(32, *a), APInt(32, *b), compare->getPredicate());
    switch (instruction.getOpcode()) {
      case Instruction::Add: return *a + *b;
      case Instruction::Xor: return *a ^ *b;
      case Instruction::And: return *a & *b;
      default: report_fatal_error("an instruction that the test does not know");
    }
  }

  template <typename NumberOf>
  static const BasicBlock* way(const Instruction& terminator, NumberOf number_of) {
    if (terminator.getNumSuccessors() == 0) return nullptr;
    if (terminator.getNumSuccessors() == 1) return terminator.getSuccessor(0);
    Number number = number_of(terminator.getOperand(0));
    if (!number) return nullptr;  // undefined behaviour
    if (isa<BranchInst>(terminator)) return terminator.getSuccessor(*number ? 0 : 1);
    const auto& choice = cast<SwitchInst>(terminator);
    for (auto one : choice.cases())
      if (one.getCaseValue()->getZExtValue() == *number) return one.getCaseSuccessor();
    return choice.getDefaultDest();
  }

  Function& function_;
  const CycleInfo& cycles_;
  std::map<std::pair<const BasicBlock*, std::vector<unsigned>>, Instance> instances_;
};

struct Analyses {
  explicit Analyses(Function& function) : post_dominators(function) { cycles.compute(function); }
  CycleInfo cycles;
  PostDominatorTree post_dominators;
};

std::string text_of(const Value& value) {
  std::string text;
  raw_string_ostream(text) << value;
  return text;
}

// What threads were seen to have different that is said to be the same.
std::vector<std::string> missed(const Function& function, const Observation& observed, const Divergence& divergence) {
  std::vector<std::string> missed;
  for (const Instruction& instruction : instructions(function)) {
    if (observed.values.contains(&instruction) && !divergence.is_divergent(&instruction))
      missed.push_back("value" + text_of(instruction));
    for (const Use& use : instruction.operands())
      if (observed.uses.contains(&use) && !divergence.is_divergent_at(use))
        missed.push_back("use of" + text_of(*use) + " in" + text_of(instruction));
    const BasicBlock* block = instruction.getParent();
    if (instruction.isTerminator() && observed.branches.contains(block) && !divergence.is_divergent_branch(*block))
      missed.push_back("branch" + text_of(instruction));
  }
  return missed;
}

// ---- Random functions

// Ways between blocks; 0 is the first.
struct Graph {
  unsigned add() {
    ways.emplace_back();
    return static_cast<unsigned>(ways.size() - 1);
  }
  std::vector<std::vector<unsigned>> ways;
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  // Less than `count`. The standard's distributions differ between libraries.
  unsigned below(unsigned count) { return engine_() % count; }
  bool with_chance(unsigned percent) { return below(100) < percent; }

 private:
  std::mt19937 engine_;
};

// As a program's statements make it: loops that are left and gone on with from within, returns, long ways.
class Statements {
 public:
  explicit Statements(Random& random) : random_(random) {}

  Graph make() {
    unsigned at = graph_.add();
    at = long_way(at);
    add_sequence(at, 3);
    return std::move(graph_);
  }

 private:
  struct Loop {
    unsigned next, end;
  };

  unsigned go_on(unsigned at) {
    unsigned next = graph_.add();
    graph_.ways[at].push_back(next);
    return next;
  }

  unsigned long_way(unsigned at) {
    for (unsigned most = random_.below(5); most > 0; --most) at = go_on(at);
    return at;
  }

  // Where it ends.
  unsigned add_sequence(unsigned at, unsigned depth) {
    for (unsigned count = random_.below(3) + (depth == 3); count-- > 0;) at = add_statement(at, depth);
    return at;
  }

  unsigned add_statement(unsigned at, unsigned depth) {
    unsigned kind = random_.below(100);
    if (kind < 20 && !loops_.empty()) {
      const Loop loop = loops_[loops_.size() - 1 - random_.below(std::min<unsigned>(2, loops_.size()))];
      const unsigned to = random_.with_chance(60) ? loop.end : loop.next;
      unsigned next = go_on(at);
      if (random_.with_chance(50)) at = long_way(go_on(at));
      graph_.ways[at].push_back(to);
      return next;
    }
    if (kind < 25) {
      go_on(at);  // and returns there
      return go_on(at);
    }
    if (depth == 0 || kind < 35) return long_way(at);
    if (kind < 70) return add_branch(at, depth);
    return add_loop(at, depth);
  }

  unsigned add_branch(unsigned at, unsigned depth) {
    unsigned join = graph_.add();
    for (unsigned side = random_.with_chance(20) ? 3 : 2; side-- > 0;) {
      if (side == 0 && random_.with_chance(20)) {
        graph_.ways[at].push_back(join);
        continue;
      }
      unsigned end = add_sequence(long_way(go_on(at)), depth - 1);
      graph_.ways[end].push_back(join);
    }
    return join;
  }

  unsigned add_loop(unsigned at, unsigned depth) {
    unsigned head = go_on(at), end = graph_.add(), next = random_.with_chance(60) ? graph_.add() : head;
    if (next != head) graph_.ways[next].push_back(head);
    loops_.push_back({next, end});
    unsigned body = head;
    if (random_.with_chance(50)) {
      body = go_on(head);
      graph_.ways[head].push_back(end);
    }
    unsigned last = go_on(add_sequence(body, depth - 1));
    graph_.ways[last].push_back(next);
    if (random_.with_chance(70)) graph_.ways[last].push_back(end);
    loops_.pop_back();
    return end;
  }

  Random& random_;
  Graph graph_;
  std::vector<Loop> loops_;
};

// Any ways: most are short ones forwards.
Graph any_ways(Random& random) {
  Graph graph;
  const unsigned count = 4 + random.below(9);
  for (unsigned i = 0; i < count; ++i) graph.add();
  auto some_other = [&](unsigned from) {
    if (from > 0 && random.with_chance(25)) return 1 + random.below(from);
    return std::min(from + 1 + random.below(3), count - 1);
  };
  for (unsigned i = 0; i + 1 < count; ++i) {
    unsigned kind = random.below(100), ways = kind < 5 && i > 0 ? 0 : kind < 30 ? 1 : kind < 90 ? 2 : 3;
    for (unsigned j = 0; j < ways; ++j) graph.ways[i].push_back(some_other(i));
  }
  // Long ways in place of some.
  for (unsigned i = 0; i < count; ++i)
    for (unsigned j = 0; j < graph.ways[i].size(); ++j) {
      if (!random.with_chance(30)) continue;
      for (unsigned most = random.below(4); most > 0; --most) {
        unsigned between = graph.add();
        graph.ways[between].push_back(graph.ways[i][j]);
        graph.ways[i][j] = between;
      }
    }
  return graph;
}

// Takes away what leads from blocks to which nothing leads.
void leave_unreached(Graph& graph) {
  std::vector<bool> is_reached(graph.ways.size());
  std::vector<unsigned> waiting{0};
  while (!waiting.empty()) {
    unsigned block = waiting.back();
    waiting.pop_back();
    if (is_reached[block]) continue;
    is_reached[block] = true;
    waiting.insert(waiting.end(), graph.ways[block].begin(), graph.ways[block].end());
  }
  for (unsigned i = 0; i < graph.ways.size(); ++i)
    if (!is_reached[i]) graph.ways[i].clear();
}

// Blocks that compute a little with a few variables, in SSA form.
class BodyMaker {
 public:
  BodyMaker(Module& module, Random& random)
      : module_(module), random_(random), builder_(module.getContext()), number_(builder_.getInt32Ty()) {}

  Function& make(const Graph& graph) {
    auto* type = FunctionType::get(builder_.getVoidTy(), {number_, number_, number_}, false);
    function_ = Function::Create(type, Function::ExternalLinkage, "body", module_);
    std::vector<BasicBlock*> blocks;
    while (blocks.size() < graph.ways.size()) blocks.push_back(BasicBlock::Create(module_.getContext(), "", function_));
    for (unsigned i = 0; i < blocks.size(); ++i) add_ways(*blocks[i], graph.ways[i], blocks);
    ReversePostOrderTraversal<Function*> order(function_);
    for (BasicBlock* block : order) fill(*block);
    for (BasicBlock* block : blocks)
      if (!at_end_.contains(block)) fill(*block);  // nobody comes there
    for (auto& [phi, variable] : phis_)
      for (BasicBlock* before : predecessors(phi->getParent())) phi->addIncoming(at_end_[before][variable], before);
    if (random_.with_chance(80)) simplify();
    return *function_;
  }

 private:
  using Variables = std::array<Value*, 4>;

  // Conditions come with the rest of the block.
  void add_ways(BasicBlock& block, ArrayRef<unsigned> ways, ArrayRef<BasicBlock*> blocks) {
    builder_.SetInsertPoint(&block);
    if (ways.empty()) {
      builder_.CreateRetVoid();
    } else if (ways.size() == 1) {
      builder_.CreateBr(blocks[ways[0]]);
    } else if (ways.size() == 2) {
      builder_.CreateCondBr(builder_.getTrue(), blocks[ways[0]], blocks[ways[1]]);
    } else {
      SwitchInst* choice = builder_.CreateSwitch(builder_.getInt32(0), blocks[ways[0]]);
      for (unsigned i = 1; i < ways.size(); ++i) choice->addCase(builder_.getInt32(i), blocks[ways[i]]);
    }
  }

  Value* some_value(const Variables& variables) {
    switch (random_.below(12)) {
      case 0: return function_->getArg(1);
      case 1: return function_->getArg(2);
      case 2:
      case 3: return builder_.getInt32(random_.below(4));
      case 4: return random_.with_chance(30) ? function_->getArg(0) : static_cast<Value*>(builder_.getInt32(1));
      case 5: return random_.with_chance(30) ? builder_.CreateFreeze(builder_.getInt32(0)) : variables[0];
      default: return variables[random_.below(variables.size())];
    }
  }

  void fill(BasicBlock& block) {
    builder_.SetInsertPoint(&block, block.begin());
    Variables variables;
    if (BasicBlock* before = block.getUniquePredecessor(); before && at_end_.contains(before)) {
      variables = at_end_[before];
    } else if (pred_empty(&block)) {
      // The last one is not set.
      variables = {builder_.getInt32(0), builder_.getInt32(0), function_->getArg(1), UndefValue::get(number_)};
    } else {
      for (unsigned i = 0; i < variables.size(); ++i) {
        PHINode* phi = builder_.CreatePHI(number_, 2);
        phis_.push_back({phi, i});
        variables[i] = phi;
      }
    }
    builder_.SetInsertPoint(block.getTerminator());
    // One counts.
    if (random_.with_chance(busy_)) variables[0] = builder_.CreateAdd(variables[0], builder_.getInt32(1));
    for (unsigned count = random_.with_chance(busy_) ? 1 + random_.below(2) : 0; count > 0; --count) {
      Value*& variable = variables[1 + random_.below(variables.size() - 1)];
      switch (random_.below(6)) {
        case 0: variable = builder_.CreateAdd(some_value(variables), some_value(variables)); break;
        case 1: variable = builder_.CreateXor(some_value(variables), some_value(variables)); break;
        case 2: {
          Value* condition = builder_.CreateICmpULT(some_value(variables), some_value(variables));
          variable = builder_.CreateSelect(condition, some_value(variables), some_value(variables));
          break;
        }
        default: variable = some_value(variables);
      }
    }
    at_end_[&block] = variables;
    Instruction* end = block.getTerminator();
    if (end->getNumSuccessors() < 2) return;
    Value* asked = random_.with_chance(25) ? function_->getArg(0) : some_value(variables);
    Value* few = builder_.CreateAnd(builder_.CreateAdd(asked, some_value(variables)), builder_.getInt32(3));
    if (isa<BranchInst>(end)) few = builder_.CreateICmpULT(few, builder_.getInt32(1 + random_.below(3)));
    end->setOperand(0, few);
  }

  // Takes away phis that choose one value, so that values of loops are used behind them.
  void simplify() {
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (auto& [phi, variable] : phis_) {
        if (!phi) continue;
        Value* only = nullptr;
        bool is_one = true;
        for (Value* value : phi->incoming_values()) {
          if (value == phi || value == only) continue;
          is_one = is_one && !only;
          only = value;
        }
        if (!is_one || !only) continue;
        phi->replaceAllUsesWith(only);
        phi->eraseFromParent();
        phi = nullptr;
        has_changed = true;
      }
    }
  }

  Module& module_;
  Random& random_;
  IRBuilder<> builder_;
  IntegerType* number_;
  const unsigned busy_ = 5 + random_.below(70);  // how many blocks of a hundred change variables
  Function* function_ = nullptr;
  DenseMap<BasicBlock*, Variables> at_end_;
  std::vector<std::pair<PHINode*, unsigned>> phis_;
};

bool is_reducible(const CycleInfo& cycles) {
  SmallVector<const Cycle*> waiting(cycles.toplevel_begin(), cycles.toplevel_end());
  while (!waiting.empty()) {
    const Cycle* cycle = waiting.pop_back_val();
    if (!cycle->isReducible()) return false;
    append_range(waiting, cycle->children());
  }
  return true;
}

void run_some(Observation& observed) {
  for (uint32_t first : {0, 1, 2, 3})
    for (uint32_t second : {1, 6}) observed.run({first, second});
}

// Of functions, and of values that several threads had in one instance.
struct Counts {
  unsigned functions = 0, irreducible = 0, all = 0, seen = 0, said = 0;
};

// Stops at the first that is wrong.
template <typename MakeGraph>
Counts check_functions(unsigned count, bool is_reducible_only, MakeGraph make_graph) {
  Counts counts;
  LLVMContext context;
  for (uint32_t seed = 0; counts.functions < count; ++seed) {
    Random random(seed);
    Module module("", context);
    Graph graph = make_graph(random);
    if (random.with_chance(95)) leave_unreached(graph);
    Function& function = BodyMaker(module, random).make(graph);
    std::string error;
    raw_string_ostream errors(error);
    if (verifyFunction(function, &errors)) {
      ADD_FAILURE() << error << text_of(function);
      break;
    }
    Analyses analyses(function);
    const bool is_irreducible = !is_reducible(analyses.cycles);
    if (is_irreducible && is_reducible_only) continue;
    ++counts.functions;
    counts.irreducible += is_irreducible;
    Observation observed(function, analyses.cycles);
    run_some(observed);
    const Divergence divergence(function, analyses.cycles, analyses.post_dominators, difference_of);
    std::vector<std::string> wrong = missed(function, observed, divergence);
    if (!wrong.empty()) {
      ADD_FAILURE() << "seed " << seed << ":\n" << join(wrong, "\n") << "\n" << text_of(function);
      break;
    }
    for (const Instruction& instruction : instructions(function)) {
      if (instruction.isTerminator() || !observed.shared.contains(instruction.getParent())) continue;
      ++counts.all;
      counts.said += divergence.is_divergent(&instruction);
      counts.seen += observed.values.contains(&instruction);
    }
  }
  return counts;
}

constexpr unsigned kFunctions = kSanitized ? 100 : 1200;  // of a kind

// Of what was not seen to differ, not more than this part is said to. Others might see it differ, with other arguments.
void expect_said(const Counts& counts, double most) {
  EXPECT_GT(counts.seen, 0U);
  const unsigned same = counts.all - counts.seen, said_too = counts.said - counts.seen;
  EXPECT_LT(said_too, most * same) << counts.functions << " functions, " << counts.irreducible << " irreducible; of "
                                   << counts.all << " values " << counts.seen << " were seen to differ, " << counts.said
                                   << " are said to";
}

TEST(Divergence, IsFoundInStatements) {
  expect_said(check_functions(kFunctions, true, [](Random& random) { return Statements(random).make(); }), 0.5);
}

TEST(Divergence, IsFoundInAnyReducibleFlow) { expect_said(check_functions(kFunctions, true, any_ways), 0.3); }

TEST(Divergence, IsFoundInAnyFlow) { expect_said(check_functions(kFunctions, false, any_ways), 0.4); }

// ---- Some functions by themselves

// Names of what differs, as it is used too, apart from conditions and branches. Arguments are %thread and %same, a
// number; blocks as they are written.
std::string differing_in(const std::string& blocks) {
  LLVMContext context;
  SMDiagnostic error;
  std::unique_ptr<Module> module =
      parseAssemblyString("define void @body(i32 %thread, i32 %same) {\n" + blocks + "}", error, context);
  if (!module) {
    ADD_FAILURE() << error.getLineNo() << ": " << error.getMessage().str();
    return "";
  }
  Function& function = *module->getFunction("body");
  Analyses analyses(function);
  const Divergence divergence(function, analyses.cycles, analyses.post_dominators, difference_of);
  Observation observed(function, analyses.cycles);
  for (uint32_t same = 0; same < 8; ++same) observed.run({same});
  EXPECT_EQ(missed(function, observed, divergence), std::vector<std::string>());
  std::vector<std::string> names;
  for (const Instruction& instruction : instructions(function)) {
    if (instruction.getType() != Type::getInt32Ty(context)) continue;
    if (divergence.is_divergent(&instruction))
      names.push_back(instruction.getName().str());
    else if (any_of(instruction.uses(), [&](const Use& use) { return divergence.is_divergent_at(use); }))
      names.push_back(instruction.getName().str() + "(used)");
  }
  return join(names, " ");
}

TEST(Divergence, IsFoundBehindLongWays) {
  EXPECT_EQ(differing_in(R"(
    entry:
      %asked = icmp ult i32 %thread, 3
      br i1 %asked, label %left, label %right
    left:
      br label %left_loop
    left_loop:
      %i = phi i32 [ 0, %left ], [ %next_i, %left_loop ]
      %next_i = add i32 %i, 1
      %more_i = icmp ult i32 %next_i, %same
      br i1 %more_i, label %left_loop, label %left_end
    left_end:
      br label %join
    right:
      br label %right_loop
    right_loop:
      %k = phi i32 [ 0, %right ], [ %next_k, %right_loop ]
      %next_k = add i32 %k, 1
      %more_k = icmp ult i32 %next_k, %same
      br i1 %more_k, label %right_loop, label %right_end
    right_end:
      br label %join
    join:
      %chosen = phi i32 [ 1, %left_end ], [ 2, %right_end ]
      %one = phi i32 [ %same, %left_end ], [ %same, %right_end ]
      %some = phi i32 [ undef, %left_end ], [ %same, %right_end ]
      ret void
  )"),
            "chosen");
}

// Threads leave the loop in different turns by the break that is behind a loop.
TEST(Divergence, IsFoundOfALoopThatIsLeftBehindALongWay) {
  EXPECT_EQ(differing_in(R"(
    entry:
      br label %head
    head:
      %turn = phi i32 [ 0, %entry ], [ %next, %latch ]
      %asked = icmp ult i32 %thread, 3
      br i1 %asked, label %left, label %right
    left:
      br label %left_loop
    left_loop:
      %i = phi i32 [ 0, %left ], [ %next_i, %left_loop ]
      %next_i = add i32 %i, 1
      %more_i = icmp ult i32 %next_i, %same
      br i1 %more_i, label %left_loop, label %left_end
    left_end:
      %is_over = icmp ult i32 %same, %turn
      br i1 %is_over, label %exit, label %latch
    right:
      br label %right_loop
    right_loop:
      %k = phi i32 [ 0, %right ], [ %next_k, %right_loop ]
      %next_k = add i32 %k, 1
      %more_k = icmp ult i32 %next_k, %same
      br i1 %more_k, label %right_loop, label %right_end
    right_end:
      br label %latch
    latch:
      %next = add i32 %turn, 1
      %more = icmp ult i32 %next, 9
      br i1 %more, label %head, label %exit
    exit:
      %last = add i32 %turn, 1
      ret void
  )"),
            "turn(used) last");
}

// The branch's post-dominator is in the loop: some come to it in a later iteration than others. The loop around it is
// left together.
TEST(Divergence, IsFoundOfALoopThatSomeGoOnWith) {
  EXPECT_EQ(differing_in(R"(
    entry:
      br label %outer
    outer:
      %turn = phi i32 [ 0, %entry ], [ %next_turn, %behind ]
      br label %head
    head:
      %i = phi i32 [ 0, %outer ], [ %next, %latch ]
      %skipped = phi i32 [ 0, %outer ], [ %skips, %latch ]
      %next = add i32 %i, 1
      %sum = add i32 %thread, %i
      %bit = and i32 %sum, 1
      %asked = icmp eq i32 %bit, 0
      br i1 %asked, label %latch, label %stays
    stays:
      %is_over = icmp ult i32 %same, %i
      br i1 %is_over, label %behind, label %rest
    rest:
      br label %latch
    latch:
      %skips = phi i32 [ 1, %head ], [ 0, %rest ]
      br label %head
    behind:
      %left = add i32 %i, 1
      %next_turn = add i32 %turn, 1
      %more = icmp ult i32 %next_turn, 3
      br i1 %more, label %outer, label %exit
    exit:
      %last = add i32 %turn, 1
      ret void
  )"),
            "i(used) skipped sum bit skips left");
}

// As above: some go on with the inner loop, others with the outer one.
TEST(Divergence, IsFoundOfTwoLoopsThatSomeGoOnWith) {
  EXPECT_EQ(differing_in(R"(
    entry:
      br label %outer
    outer:
      %turn = phi i32 [ 0, %entry ], [ %next_turn, %test ]
      %next_turn = add i32 %turn, 1
      br label %inner
    inner:
      %i = phi i32 [ 0, %outer ], [ %next, %test ]
      %count = add i32 %turn, %i
      %is_over = icmp ult i32 %same, %count
      br i1 %is_over, label %exit, label %test
    test:
      %next = add i32 %i, 1
      %sum = add i32 %thread, %i
      %bit = and i32 %sum, 1
      %asked = icmp eq i32 %bit, 0
      br i1 %asked, label %inner, label %outer
    exit:
      %last = add i32 %turn, 1
      ret void
  )"),
            "turn(used) sum bit last");
}

// As above, in a loop with two entries.
TEST(Divergence, IsInAllOfALoopWithTwoEntriesThatSomeGoOnWith) {
  EXPECT_EQ(differing_in(R"(
    entry:
      %is_late = icmp ult i32 %same, 3
      br i1 %is_late, label %latch, label %head
    head:
      %i = phi i32 [ 0, %entry ], [ %next, %latch ]
      %sum = add i32 %thread, %i
      %bit = and i32 %sum, 1
      %asked = icmp eq i32 %bit, 0
      br i1 %asked, label %latch, label %stays
    stays:
      %is_over = icmp ult i32 %same, %i
      br i1 %is_over, label %exit, label %rest
    rest:
      br label %latch
    latch:
      %k = phi i32 [ 0, %entry ], [ %i, %head ], [ %i, %rest ]
      %skips = phi i32 [ 2, %entry ], [ 1, %head ], [ 0, %rest ]
      %next = add i32 %k, 1
      br label %head
    exit:
      %last = add i32 %i, 1
      ret void
  )"),
            "i sum bit k skips next last");
}

TEST(Divergence, IsFoundOfALoopWithTwoEntriesThatIsLeftApart) {
  EXPECT_EQ(differing_in(R"(
    entry:
      %is_late = icmp ult i32 %same, 3
      br i1 %is_late, label %other, label %one
    one:
      %i = phi i32 [ 0, %entry ], [ %next, %other ]
      br label %other
    other:
      %k = phi i32 [ 0, %entry ], [ %i, %one ]
      %next = add i32 %k, 1
      %asked = icmp ult i32 %thread, %next
      br i1 %asked, label %exit, label %one
    exit:
      %last = add i32 %k, 1
      ret void
  )"),
            "k(used) last");
}

TEST(Divergence, IsFoundOfWhatIsKnownWhereALoopIsLeft) {
  EXPECT_EQ(differing_in(R"(
    entry:
      br label %head
    head:
      %i = phi i32 [ 0, %entry ], [ %next, %latch ]
      %more = icmp ult i32 %i, %same
      br i1 %more, label %test, label %exit
    test:
      %asked = icmp ult i32 %thread, %i
      br i1 %asked, label %exit, label %latch
    latch:
      %next = add i32 %i, 1
      br label %head
    exit:
      %found = phi i32 [ 0, %head ], [ 1, %test ]
      ret void
  )"),
            "found");
}

TEST(Divergence, IsFoundOfAllLoopsThatAreLeftAtOnce) {
  EXPECT_EQ(differing_in(R"(
    entry:
      br label %outer
    outer:
      %turn = phi i32 [ 0, %entry ], [ %next_turn, %behind ]
      br label %inner
    inner:
      %i = phi i32 [ 0, %outer ], [ %next, %latch ]
      %count = add i32 %turn, %i
      %asked = icmp eq i32 %thread, %count
      br i1 %asked, label %exit, label %latch
    latch:
      %next = add i32 %i, 1
      %more = icmp ult i32 %next, %same
      br i1 %more, label %inner, label %behind
    behind:
      %next_turn = add i32 %turn, 1
      %more_turns = icmp ult i32 %next_turn, 3
      br i1 %more_turns, label %outer, label %exit
    exit:
      %last = add i32 %turn, 1
      ret void
  )"),
            "turn(used) last");
}

// Who comes round to `other` has met those that are there.
TEST(Divergence, IsNotInTheNextIteration) {
  EXPECT_EQ(differing_in(R"(
    entry:
      br label %head
    head:
      %i = phi i32 [ 0, %entry ], [ %next, %latch ]
      %bit = and i32 %i, 1
      %is_odd = icmp eq i32 %bit, 1
      br i1 %is_odd, label %other, label %test
    test:
      %asked = icmp ult i32 %thread, 3
      br i1 %asked, label %one, label %two
    one:
      %is_over = icmp ult i32 %same, %i
      br i1 %is_over, label %exit, label %latch
    two:
      br label %latch
    other:
      br label %latch
    latch:
      %kept = phi i32 [ 5, %one ], [ 5, %two ], [ 6, %other ]
      %next = add i32 %i, 1
      br label %head
    exit:
      ret void
  )"),
            "");
}

TEST(Divergence, IsNotBehindALoopThatAllLeaveInOneIteration) {
  EXPECT_EQ(differing_in(R"(
    entry:
      br label %head
    head:
      %i = phi i32 [ 0, %entry ], [ %next, %latch ]
      %more = icmp ult i32 %i, %same
      br i1 %more, label %latch, label %test
    test:
      %asked = icmp ult i32 %thread, 3
      br i1 %asked, label %exit, label %other
    other:
      br label %exit
    latch:
      %next = add i32 %i, 1
      br label %head
    exit:
      %last = add i32 %i, 1
      ret void
  )"),
            "");
}

// Those that begin a loop apart run through it together.
TEST(Divergence, IsNotInALoopThatIsBegunApart) {
  EXPECT_EQ(differing_in(R"(
    entry:
      %asked = icmp ult i32 %thread, 3
      br i1 %asked, label %other, label %head
    other:
      br label %head
    head:
      %i = phi i32 [ 0, %entry ], [ 0, %other ], [ %next, %head ]
      %first = phi i32 [ 1, %entry ], [ 2, %other ], [ 3, %head ]
      %next = add i32 %i, 1
      %more = icmp ult i32 %next, %same
      br i1 %more, label %head, label %exit
    exit:
      %last = add i32 %i, 1
      ret void
  )"),
            "first");
}

TEST(Divergence, IsInAllOfALoopWithTwoEntriesThatAreTakenApart) {
  EXPECT_EQ(differing_in(R"(
    entry:
      %asked = icmp ult i32 %thread, 3
      br i1 %asked, label %one, label %other
    one:
      %i = phi i32 [ 0, %entry ], [ %next, %other ]
      %agreed = freeze i32 0
      br label %other
    other:
      %k = phi i32 [ 0, %entry ], [ %i, %one ]
      %next = add i32 %k, 1
      %more = icmp ult i32 %next, %same
      br i1 %more, label %one, label %exit
    exit:
      %last = add i32 %k, 1
      ret void
  )"),
            "i agreed k next last");
}

// What threads agree on in each iteration is of different ones behind the loop.
TEST(Divergence, IsFoundOfWhatIsAgreedOnInALoop) {
  EXPECT_EQ(differing_in(R"(
    entry:
      br label %head
    head:
      %i = phi i32 [ 0, %entry ], [ %next, %head ]
      %agreed = freeze i32 0
      %next = add i32 %i, 1
      %more = icmp ult i32 %next, %thread
      br i1 %more, label %head, label %exit
    exit:
      %last = xor i32 %agreed, 1
      ret void
  )"),
            "agreed(used) last");
}

}  // namespace
}  // namespace kiln
