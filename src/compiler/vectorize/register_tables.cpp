#include "compiler/vectorize/register_tables.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Operator.h>

#include <algorithm>

namespace kiln {
namespace {

using namespace llvm;

constexpr int64_t kMostRegisters = 8;
constexpr uint64_t kTableWordBytes = sizeof(uint32_t);

// The words from the offset on. What lies outside of the constant is zero.
bool read_words(const GlobalVariable& variable, int64_t offset, int64_t end, const DataLayout& layout,
                SmallVectorImpl<uint32_t>& words) {
  auto* initializer = const_cast<Constant*>(variable.getInitializer());
  Type* byte = Type::getInt8Ty(variable.getContext());
  for (int64_t at = offset; at < end; ++at) {
    const auto place = static_cast<uint64_t>(at - offset);
    if (place % kTableWordBytes == 0) words.push_back(0);
    if (at < 0) continue;
    const auto* value = dyn_cast_or_null<ConstantInt>(
        ConstantFoldLoadFromConst(initializer, byte, APInt(64, static_cast<uint64_t>(at)), layout));
    if (!value) return false;
    words.back() |= static_cast<uint32_t>(value->getZExtValue()) << 8 * (place % kTableWordBytes);
  }
  return true;
}

}  // namespace

std::optional<RegisterTable> register_table_of(const Value* address, uint64_t bytes, const DataLayout& layout,
                                               const VectorIsa& isa) {
  const auto* gep = dyn_cast<GEPOperator>(address);
  if (!gep || !isa.permute_register || !(bytes == 1 || bytes == 2 || bytes == 4)) return std::nullopt;
  MapVector<Value*, APInt> variables;
  APInt constant(64, 0);
  if (!gep->collectOffset(layout, 64, variables, constant) || variables.size() != 1) return std::nullopt;
  const auto& [index, scale] = variables.front();
  if (scale != bytes) return std::nullopt;
  APInt base_offset(64, 0);
  const auto* variable = dyn_cast<GlobalVariable>(
      gep->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, base_offset, /*AllowNonInbounds=*/true));
  if (!variable || !variable->isConstant() || !variable->hasDefinitiveInitializer()) return std::nullopt;
  const int64_t offset = (constant + base_offset).getSExtValue();
  const auto end = static_cast<int64_t>(layout.getTypeAllocSize(variable->getValueType()).getFixedValue());
  const int64_t most = kMostRegisters * isa.register_bytes;
  if (offset >= end || offset < -most || end - offset > most) return std::nullopt;
  RegisterTable table{{}, index};
  if (!read_words(*variable, offset, end, layout, table.words)) return std::nullopt;
  return table;
}

Value* words_of_table(const RegisterTable& table, Value* indices, const VectorIsa& isa, IRBuilder<>& builder) {
  const unsigned width = isa.num_words(), lanes = cast<FixedVectorType>(indices->getType())->getNumElements();
  SmallVector<Value*> registers;
  for (size_t first = 0; first < table.words.size(); first += width) {
    SmallVector<uint32_t> words(width, 0);
    std::copy_n(table.words.begin() + static_cast<ptrdiff_t>(first),
                std::min<size_t>(width, table.words.size() - first), words.begin());
    registers.push_back(ConstantDataVector::get(builder.getContext(), words));
  }
  // Pairs of registers, then pairs of pairs.
  auto taken = [&](Value* places) {
    SmallVector<Value*> found;
    unsigned reach = width;
    if (isa.permute_two_registers && registers.size() > 1) {
      for (size_t i = 0; i < registers.size(); i += 2)
        found.push_back(
            isa.permute_two_registers(registers[i], registers[std::min(i + 1, registers.size() - 1)], places, builder));
      reach *= 2;
    } else {
      for (Value* one : registers) found.push_back(isa.permute_register(one, places, builder));
    }
    for (; found.size() > 1; reach *= 2) {
      Constant* bit = ConstantInt::get(places->getType(), reach);
      Value* is_high = builder.CreateICmpNE(builder.CreateAnd(places, bit), Constant::getNullValue(places->getType()));
      SmallVector<Value*> chosen;
      for (size_t i = 0; i < found.size(); i += 2)
        chosen.push_back(i + 1 < found.size() ? builder.CreateSelect(is_high, found[i + 1], found[i]) : found[i]);
      found = std::move(chosen);
    }
    return found.front();
  };
  SmallVector<Value*> parts;
  for (unsigned first = 0; first < lanes; first += width)
    parts.push_back(taken(builder.CreateShuffleVector(indices, createSequentialMask(first, width, 0))));
  return concatenateVectors(builder, parts);
}

}  // namespace kiln
