// Loads of members of records whose places data choose: a neighbor's coordinates, a node's fields, a pixel's channels.
//
// Problem: each member is a gather, or a loop over lanes where the processor's gathers are slow, and all of them read
// the same lines of the cache.
//
// Idea: each lane's record is loaded in parts of 16 bytes, and registers are transposed, as parts of rows are. Lanes
// that load nothing read zeros. A part ends with the record's last member, so that nothing beyond it is read.
//
// Where the processor gathers, a part must have enough members, and what are several members of a word is gathered as
// a word.
//
// The number of instructions is linear in the lanes times the parts.
#include <llvm/IR/IRBuilder.h>

#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/remarks.h"
#include "compiler/vectorize/widener_guards.h"
#include "compiler/vectorize/widener_interleaved.h"

namespace kiln::widening {

// Whether no other shape than a gather is known of the address, even when the code runs (widener_run_time_shapes.h).
bool InterleavedAccesses::is_in_record(Value* address, Type* type) {
  const uint64_t bytes = layout_.getTypeStoreSize(type);
  const bool is_number = (type->isIntegerTy() && !type->isIntegerTy(1)) || type->isFloatingPointTy();
  if (!is_number || bytes > sizeof(uint64_t) || bytes != layout_.getTypeAllocSize(type)) return false;
  auto [found, is_new] = are_in_records_.try_emplace(address, false);
  if (!is_new) return found->second;
  if (strides_.stride_of(address) || patterns_.pattern_of(address)) return false;
  std::optional<LaneSum> sum = lane_sums_.lane_sum_of(address, bytes, kMostMembers);
  const bool may_have_shape =
      sum && any_of(sum->terms, [&](const LaneTerm& term) { return lane_sums_.has_position(term.number); });
  return are_in_records_[address] = !may_have_shape;
}

// Whether parts of 16 bytes take less time than a gather of each member.
static bool is_worth_parts(ArrayRef<uint64_t> members, uint64_t bytes, const VectorIsa& isa) {
  if (!isa.has_gathers) return true;
  SmallDenseSet<uint64_t> parts;
  for (uint64_t member : members) parts.insert(member * bytes / kRowPartBytes);
  const uint64_t in_part = kRowPartBytes / bytes;
  return members.size() >= parts.size() * (isa.gathers_always_pay ? in_part : in_part / 2 + 1);
}

// Gathers the words of which the members are parts.
Values InterleavedAccesses::gather_words(const LoadInst& load, Value* records, Value* mask, ArrayRef<uint64_t> indices,
                                         IRBuilder<>& builder) {
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType()), in_word = sizeof(uint32_t) / bytes;
  Type* words = vector_of(builder.getInt32Ty());
  SmallDenseMap<uint64_t, Value*> gathered;
  Values results;
  for (uint64_t index : indices) {
    Value*& word = gathered[index / in_word];
    if (!word) {
      Value* from = builder.CreateConstGEP1_64(builder.getInt8Ty(), records, index / in_word * sizeof(uint32_t));
      word = builder.CreateMaskedGather(words, from, std::min(load.getAlign(), Align(bytes)), mask,
                                        Constant::getNullValue(words));
    }
    results.push_back(elements_at(word, bytes * (index % in_word), load.getType(), builder));
  }
  return results;
}

void InterleavedAccesses::load_records(const AccessGroup& group, IRBuilder<>& builder) {
  const Member& lowest = lowest_member(group);
  auto& load = cast<LoadInst>(*lowest.access);
  auto [allowed, pointer] = guarded_address_of(load);
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  SmallVector<uint64_t> indices;
  for (const Member& member : group) indices.push_back(static_cast<uint64_t>(member.offset - lowest.offset));
  // Whole words, which may reach beyond the last member. A fourth one is there if 16 bytes are aligned.
  const uint64_t last = *llvm::max_element(indices);
  uint64_t part = alignTo(last + 1, std::max<uint64_t>(1, sizeof(uint32_t) / bytes));
  const uint64_t reach = part - 1 - covered_by_guard(group);
  const bool needs_check = reach > 0 || may_wrap(group);
  const bool is_guarded = allowed && lanes_.is_divergent(allowed);
  std::optional<LaneGuard> guard = is_guarded ? lane_guard_of(allowed, flow_) : std::nullopt;
  if (lane_accesses_.load_few_lanes(load, builder)) {
    for (const Member& member : group)
      if (member.access != &load) lane_accesses_.load_few_lanes(cast<LoadInst>(*member.access), builder);
    return;
  }
  auto set = [&](const Values& results) {
    for (auto [member, result] : zip(group, results)) lanes_.set_vector(member.access, result);
  };
  // Without a guard nothing beyond the last member is known to be there.
  std::optional<uint64_t> end = guard ? Wrapping::end_in_a_lane(guard->offset) : std::nullopt;
  // A member that does not wrap, as the lowest may be, may have been extended earlier, and so end later.
  for (const Member& member : group)
    if (auto other = lane_guard_of(guarded_address_of(*member.access).allowed, flow_); end && other)
      end = std::min(*end, Wrapping::end_in_a_lane(other->offset).value_or(*end));
  const bool is_exact = !is_guarded ? part == last + 1 : may_wrap(group) ? end.has_value() : !needs_check || guard;
  const bool are_words = is_word(bytes), gathers = lanes_.has_gathers(builder.getInt32Ty());
  if (!is_exact || (are_words && !is_worth_parts(indices, bytes, lanes_.vector_isa())))
    return set(load_members_alone(group, builder));
  if (part * bytes == 12 && load.getAlign() >= Align(16)) part += sizeof(uint32_t) / bytes;
  remark("widen", load, "parts of records: ", part * bytes, " bytes of each thread's");
  auto load_in = [&](Value* mask) {
    Value* records = lanes_.vector(pointer, builder);
    if (gathers && !are_words) return gather_words(load, records, mask, indices, builder);
    if (!is_all(mask))
      records = builder.CreateSelect(mask, records,
                                     builder.CreateVectorSplat(kLanes, zeros_of(*load.getModule(), kRecordBytes)));
    Values rows;
    for (unsigned lane = 0; lane < kLanes; ++lane) rows.push_back(builder.CreateExtractElement(records, lane));
    return strided_.load_rows(load, rows, part, indices, builder);
  };
  if (!guard || !needs_check) {
    Value* mask = lanes_.mask();
    if (allowed) mask = lanes_.narrowed(mask, lanes_.vector(allowed, builder), builder);
    return set(load_in(mask));
  }
  Value* limit =
      checks_.reduced_limit(lanes_.scalar(guard->limit), reach * bytes, may_wrap(group) ? end : std::nullopt);
  Value* offsets = lanes_.vector(guard->offset, builder);
  Value* outside = builder.CreateICmpUGE(offsets, builder.CreateVectorSplat(kLanes, limit));
  Value* any_outside = lanes_.any(lanes_.narrowed(lanes_.mask(), outside, builder), builder);
  set(lanes_.create_if_else(
      {builder.CreateNot(any_outside), "records", "members"}, builder, [&] { return load_in(lanes_.mask()); },
      [&] { return load_members_alone(group, builder); }));
}

}  // namespace kiln::widening
