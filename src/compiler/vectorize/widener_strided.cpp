#include "compiler/vectorize/widener_strided.h"

#include <llvm/Analysis/VectorUtils.h>

#include <map>

namespace kiln::widening {

LoadInst* StridedAccesses::load_part(const LoadInst& load, unsigned count, Value* address, IRBuilder<>& builder,
                                     Type* element) {
  Type* type = FixedVectorType::get(element ? element : load.getType(), count);
  // A part may begin between the addresses of two lanes, which are aligned to more than an element.
  const Align alignment = std::min(load.getAlign(), Align(layout_.getTypeStoreSize(load.getType())));
  LoadInst* part = builder.CreateAlignedLoad(type, address, alignment);
  part->copyMetadata(load, {LLVMContext::MD_invariant_load});
  return part;
}

// A part that reaches beyond the range is loaded so that it ends with the range, and rotated.
Value* StridedAccesses::load_in(const StridedRange& range, uint64_t first, unsigned count, IRBuilder<>& builder,
                                Type* element) {
  Type* own = range.load.getType();
  if (!element) element = own;
  const uint64_t bytes = layout_.getTypeStoreSize(own), part_bytes = count * layout_.getTypeStoreSize(element);
  const uint64_t length = part_bytes / bytes, end = first + length;
  auto address_of = [&](uint64_t index) { return builder.CreateConstGEP1_64(own, range.address, index); };
  if (end <= range.num_elements) return load_part(range.load, count, address_of(first), builder, element);
  if (first >= range.num_elements) return PoisonValue::get(FixedVectorType::get(element, count));
  const uint64_t excess = end - range.num_elements;
  if (excess > first) {
    // The range is one part; its halves are more than a lane's elements.
    Value* low = load_in(range, first, count / 2, builder, element);
    return concatenateVectors(builder, {low, load_in(range, first + length / 2, count / 2, builder, element)});
  }
  Value* part = load_part(range.load, static_cast<unsigned>(length), address_of(first - excess), builder);
  SmallVector<int> sources;
  for (uint64_t i = 0; i < length; ++i) sources.push_back(static_cast<int>((i + excess) % length));
  return builder.CreateBitCast(builder.CreateShuffleVector(part, sources), FixedVectorType::get(element, count));
}

Value* collected(ArrayRef<Value*> registers, ArrayRef<unsigned> elements, IRBuilder<>& builder) {
  const auto width = static_cast<unsigned>(elements.size());
  Value* made = nullptr;
  SmallVector<bool> is_made(width, false);
  for (auto [number, source] : enumerate(registers)) {
    SmallVector<int> sources;
    bool is_used = false;
    for (unsigned i = 0; i < width; ++i) {
      const bool is_here = elements[i] / width == number;
      sources.push_back(is_here      ? static_cast<int>(elements[i] % width + (made ? width : 0))
                        : is_made[i] ? static_cast<int>(i)
                                     : PoisonMaskElem);
      is_used |= is_here;
    }
    if (!is_used) continue;
    for (unsigned i = 0; i < width; ++i) is_made[i] = is_made[i] || elements[i] / width == number;
    made = made ? builder.CreateShuffleVector(made, source, sources) : builder.CreateShuffleVector(source, sources);
  }
  return made;
}

constexpr unsigned kChunk = 4;

// Of two registers of words, the elements of each chunk: an index into the first one's chunk, or from `kChunk` on into
// the second one's.
static Value* shuffled_in_chunks(Value* one, Value* other, std::array<unsigned, kChunk> from, IRBuilder<>& builder) {
  const unsigned width = cast<FixedVectorType>(one->getType())->getNumElements();
  SmallVector<int> sources;
  for (unsigned i = 0; i < width; ++i) {
    unsigned index = from[i % kChunk];
    sources.push_back(static_cast<int>(i / kChunk * kChunk + index % kChunk + index / kChunk * width));
  }
  return builder.CreateShuffleVector(one, other, sources);
}

using Four = std::array<Value*, kChunk>;

static Four transposed_in_chunks(const Four& lanes, IRBuilder<>& builder) {
  auto shuffled = [&](Value* one, Value* other, std::array<unsigned, kChunk> from) {
    return shuffled_in_chunks(one, other, from, builder);
  };
  Value *a = shuffled(lanes[0], lanes[1], {0, 4, 1, 5}), *b = shuffled(lanes[2], lanes[3], {0, 4, 1, 5});
  Value *c = shuffled(lanes[0], lanes[1], {2, 6, 3, 7}), *d = shuffled(lanes[2], lanes[3], {2, 6, 3, 7});
  return {shuffled(a, b, {0, 1, 4, 5}), shuffled(a, b, {2, 3, 6, 7}), shuffled(c, d, {0, 1, 4, 5}),
          shuffled(c, d, {2, 3, 6, 7})};
}

// Of registers, a power of two, those with the elements whose index modulo `step`, another, is one of `indices`: pairs
// of registers, or the halves of a single one, are repeatedly reduced to their even or odd elements.
static std::vector<Values> deinterleaved(const Values& registers, uint64_t step, ArrayRef<uint64_t> indices,
                                         IRBuilder<>& builder) {
  // The elements whose index modulo `size` is `index`, by {size, index}.
  std::map<std::pair<uint64_t, uint64_t>, Values> parts;
  parts.try_emplace({1, 0}, registers);
  auto part = [&](auto&& self, uint64_t size, uint64_t index) -> Values& {
    auto found = parts.find({size, index});
    if (found != parts.end()) return found->second;
    Values& whole = self(self, size / 2, index % (size / 2));
    const unsigned width = cast<FixedVectorType>(whole[0]->getType())->getNumElements();
    const SmallVector<int> sources = createStrideMask(index >= size / 2, 2, whole.size() > 1 ? width : width / 2);
    Values halves;
    if (whole.size() == 1) halves.push_back(builder.CreateShuffleVector(whole[0], sources));
    for (unsigned i = 0; i + 1 < whole.size(); i += 2)
      halves.push_back(builder.CreateShuffleVector(whole[i], whole[i + 1], sources));
    return parts[{size, index}] = std::move(halves);
  };
  std::vector<Values> results;
  for (uint64_t index : indices) results.push_back(part(part, step, index));
  return results;
}

// Of four registers of four chunks, the n-th chunks of all.
static Four transposed_chunks(const Four& registers, IRBuilder<>& builder) {
  auto shuffled = [&](Value* one, Value* other, std::array<unsigned, kChunk> from) {
    SmallVector<int> sources;
    for (unsigned chunk : from)
      for (unsigned i = 0; i < kChunk; ++i) sources.push_back(static_cast<int>(chunk * kChunk + i));
    return builder.CreateShuffleVector(one, other, sources);
  };
  Value *a = shuffled(registers[0], registers[1], {0, 2, 4, 6}),
        *b = shuffled(registers[2], registers[3], {0, 2, 4, 6});
  Value *c = shuffled(registers[0], registers[1], {1, 3, 5, 7}),
        *d = shuffled(registers[2], registers[3], {1, 3, 5, 7});
  return {shuffled(a, b, {0, 2, 4, 6}), shuffled(c, d, {0, 2, 4, 6}), shuffled(a, b, {1, 3, 5, 7}),
          shuffled(c, d, {1, 3, 5, 7})};
}

// A number of elements in 16 bytes, and of lanes whose members fill as many of such chunks as a lane has members.
static unsigned lanes_of_chunk(uint64_t bytes) { return static_cast<unsigned>(16 / bytes); }

// Of two vectors, the first one's elements where `takes_first` holds for the index.
static Value* blended(Value* one, Value* other, function_ref<bool(unsigned)> takes_first, IRBuilder<>& builder) {
  const unsigned width = cast<FixedVectorType>(one->getType())->getNumElements();
  SmallVector<int> sources;
  for (unsigned i = 0; i < width; ++i) sources.push_back(static_cast<int>(takes_first(i) ? i : i + width));
  return builder.CreateShuffleVector(one, other, sources);
}

// Loads, of every `step` elements from the address on, an odd number, those at `indices`. The lanes of a chunk have
// their members in `step` chunks, at positions which are all different: blends collect one member of all of them, and
// one permutation within chunks orders it.
Values StridedAccesses::load_odd(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices,
                                 IRBuilder<>& builder) {
  const unsigned count = lanes_of_chunk(layout_.getTypeStoreSize(range.load.getType()));
  Values chunks;
  for (unsigned j = 0; j < step; ++j) {
    Values parts;
    for (unsigned first = 0; first < kLanes; first += count)
      parts.push_back(load_in(range, first * step + j * count, count, builder));
    chunks.push_back(concatenateVectors(builder, parts));
  }
  Values results;
  for (uint64_t index : indices) {
    SmallVector<unsigned> chunk_at(count);
    for (unsigned lane = 0; lane < count; ++lane)
      chunk_at[(lane * step + index) % count] = static_cast<unsigned>((lane * step + index) / count);
    Value* all = chunks[0];
    for (unsigned j = 1; j < step; ++j)
      all = blended(all, chunks[j], [&](unsigned i) { return chunk_at[i % count] != j; }, builder);
    SmallVector<int> sources;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      sources.push_back(static_cast<int>(lane - lane % count + (lane * step + index) % count));
    results.push_back(builder.CreateShuffleVector(all, sources));
  }
  return results;
}

// The reverse: a member's permutation is the same for all chunks.
Values StridedAccesses::interleaved_odd(ArrayRef<Value*> members, IRBuilder<>& builder) {
  const auto step = static_cast<unsigned>(members.size());
  Type* element = members[0]->getType()->getScalarType();
  const unsigned count = lanes_of_chunk(layout_.getTypeStoreSize(element)), width = lanes_.register_lanes(element);
  Values permuted;
  for (unsigned index = 0; index < step; ++index) {
    SmallVector<int> sources(kLanes);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      sources[lane - lane % count + (lane * step + index) % count] = static_cast<int>(lane);
    permuted.push_back(builder.CreateShuffleVector(members[index], sources));
  }
  Values chunks;
  for (unsigned j = 0; j < step; ++j) {
    auto member_at = [&](unsigned i) { return (j * count + i % count) % step; };
    Value* all = permuted[0];
    for (unsigned index = 1; index < step; ++index)
      all = blended(all, permuted[index], [&](unsigned i) { return member_at(i) != index; }, builder);
    chunks.push_back(all);
  }
  Values results;
  for (unsigned first = 0; first < kLanes * step; first += width) {
    Values parts;
    for (unsigned at = first; at < first + width; at += count)
      parts.push_back(builder.CreateShuffleVector(chunks[at / count % step],
                                                  createSequentialMask(at / count / step * count, count, 0)));
    results.push_back(concatenateVectors(builder, parts));
  }
  return results;
}

// Loads, of every `step` elements from the address on, those at `indices`: whole registers, each of which is permuted.
Values StridedAccesses::load_collected(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices,
                                       IRBuilder<>& builder) {
  Type* element = range.load.getType();
  const unsigned width = lanes_.register_lanes(element);
  Values registers;
  for (unsigned i = 0; i < kLanes * step; i += width) registers.push_back(load_in(range, i, width, builder));
  Values results;
  for (uint64_t index : indices) {
    Values parts;
    for (unsigned first = 0; first < kLanes; first += width) {
      SmallVector<unsigned> elements;
      for (unsigned lane = first; lane < first + width; ++lane)
        elements.push_back(static_cast<unsigned>(lane * step + index));
      parts.push_back(collected(registers, elements, builder));
    }
    results.push_back(concatenateVectors(builder, parts));
  }
  return results;
}

// The same for two or four elements of 1 and 2 bytes: permutations within 16 bytes, which processors have for bytes,
// put those of equal index together. What 16 bytes have of one index is a word then, and words are deinterleaved.
Values StridedAccesses::load_narrow(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices,
                                    IRBuilder<>& builder) {
  constexpr unsigned kChunkBytes = 16;
  Type* element = range.load.getType();
  const auto bytes = static_cast<unsigned>(layout_.getTypeStoreSize(element)), members = static_cast<unsigned>(step);
  const unsigned count = kLanes * members, width = std::min(count, isa_.num_elements(bytes));
  const unsigned chunk = kChunkBytes / bytes, lanes = chunk / members, word_bytes = lanes * bytes;
  SmallVector<int> sources;
  for (unsigned i = 0; i < width; ++i) {
    const unsigned in_chunk = i % chunk;
    sources.push_back(static_cast<int>(i - in_chunk + in_chunk % lanes * members + in_chunk / lanes));
  }
  Type* words = FixedVectorType::get(builder.getIntNTy(8 * word_bytes), width * bytes / word_bytes);
  Values registers;
  for (unsigned i = 0; i < count; i += width) {
    Value* part = load_in(range, i, width, builder);
    registers.push_back(builder.CreateBitCast(builder.CreateShuffleVector(part, sources), words));
  }
  Values results;
  for (const Values& parts : deinterleaved(registers, step, indices, builder))
    results.push_back(builder.CreateBitCast(concatenateVectors(builder, parts), vector_of(element)));
  return results;
}

// The same for more of them: what a lane has is a word, or two, from which they are shifted.
Values StridedAccesses::load_packed(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices,
                                    IRBuilder<>& builder) {
  Type* element = range.load.getType();
  const uint64_t bytes = layout_.getTypeStoreSize(element), word_bytes = std::min<uint64_t>(8, step * bytes);
  Type* word = builder.getIntNTy(static_cast<unsigned>(8 * word_bytes));
  Values words;
  if (word_bytes == step * bytes)
    words.push_back(load_in(range, 0, kLanes, builder, word));
  else
    words = load_words(range, word, step * bytes / word_bytes, {0, 1}, builder);
  Values results;
  for (uint64_t index : indices) {
    const uint64_t at = index * bytes;
    results.push_back(elements_at(words[at / word_bytes], at % word_bytes, element, builder));
  }
  return results;
}

Values StridedAccesses::load_strided(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices,
                                     IRBuilder<>& builder, Values* in_memory) {
  const uint64_t bytes = layout_.getTypeStoreSize(range.load.getType());
  if (step == 3)
    return shuffles_in_chunks(bytes) ? load_odd(range, step, indices, builder)
                                     : load_collected(range, step, indices, builder);
  if (!is_word(bytes))
    return step <= 4 ? load_narrow(range, step, indices, builder) : load_packed(range, step, indices, builder);
  return load_words(range, range.load.getType(), step, indices, builder, in_memory);
}

// The same for words and powers of two. Deinterleaving is best where one instruction permutes two registers.
Values StridedAccesses::load_words(const StridedRange& range, Type* element, uint64_t step, ArrayRef<uint64_t> indices,
                                   IRBuilder<>& builder, Values* in_memory) {
  unsigned width = lanes_.register_lanes(element);
  const uint64_t element_bytes = layout_.getTypeStoreSize(element);
  const uint64_t own_bytes = layout_.getTypeStoreSize(range.load.getType());
  const bool has_chunks = element_bytes == 4 && (step >= 8 || !isa_.permute_two_registers);
  Values registers;
  for (unsigned i = 0; (in_memory || !has_chunks) && i < kLanes * step; i += width)
    registers.push_back(load_in(range, i * element_bytes / own_bytes, width, builder, element));
  if (in_memory) *in_memory = registers;
  if (has_chunks) return load_strided_words(range, step, indices, builder);
  Values results;
  for (const Values& parts : deinterleaved(registers, step, indices, builder))
    results.push_back(concatenateVectors(builder, parts));
  return results;
}

// The same for words. Shuffles within chunks of four words, which are the fastest, transpose four registers: from four
// lanes' four members to four members' four lanes. A lane's other members are in other chunks.
//
// In a register of two chunks the other one is loaded from four lanes later, so that lanes are in order then. In one of
// four chunks two lanes' eight members become eight lanes' two, and one more permutation takes each member's from two
// of those registers.
Values StridedAccesses::load_strided_words(const StridedRange& range, uint64_t step, ArrayRef<uint64_t> indices,
                                           IRBuilder<>& builder) {
  Type* element = range.load.getType();
  // Registers of 16 words hold two lanes' eight members, but not 16.
  unsigned width = step == 16 ? 2 * kChunk : lanes_.register_lanes(element);
  auto part = [&](uint64_t index, unsigned count) -> Value* { return load_in(range, index, count, builder); };
  SmallVector<Values> members(step);
  for (unsigned first = 0; first < kLanes; first += width) {
    if (width == 2 * kChunk) {
      auto chunks = [&](uint64_t which) {
        uint64_t index = first * step + which * kChunk;
        return concatenateVectors(builder, {part(index, kChunk), part(index + kChunk * step, kChunk)});
      };
      if (step == 2) {
        Value *low = chunks(0), *high = chunks(1);
        for (unsigned i = 0; i < 2; ++i)
          members[i].push_back(shuffled_in_chunks(low, high, {i, i + 2, i + 4, i + 6}, builder));
        continue;
      }
      for (uint64_t which = 0; which < step / kChunk; ++which) {
        Four lanes;
        for (unsigned i = 0; i < kChunk; ++i) lanes[i] = chunks(i * step / kChunk + which);
        for (auto [i, member] : enumerate(transposed_in_chunks(lanes, builder)))
          members[which * kChunk + i].push_back(member);
      }
      continue;
    }
    auto eight_lanes = [&](unsigned lane) {
      Four lanes;
      for (unsigned i = 0; i < kChunk; ++i) lanes[i] = part((lane + 2 * i) * step, width);
      return transposed_in_chunks(lanes, builder);
    };
    Four low = eight_lanes(first), high = eight_lanes(first + width / 2);
    for (unsigned member = 0; member < step; ++member) {
      SmallVector<int> sources;
      for (unsigned lane = 0; lane < width; ++lane) {
        unsigned chunk = lane % 2 * 2 + member / kChunk;
        sources.push_back(static_cast<int>(lane / 8 * width + chunk * kChunk + lane % 8 / 2));
      }
      members[member].push_back(builder.CreateShuffleVector(low[member % kChunk], high[member % kChunk], sources));
    }
  }
  Values results;
  for (uint64_t index : indices) results.push_back(concatenateVectors(builder, members[index]));
  return results;
}

// Three words, and nothing beyond them, as the first ones of four.
Value* StridedAccesses::load_three(const LoadInst& load, Value* address, Type* word, IRBuilder<>& builder) {
  Value* two =
      builder.CreateShuffleVector(load_part(load, 2, address, builder, word), {0, 1, PoisonMaskElem, PoisonMaskElem});
  Value* third = load_part(load, 1, builder.CreateConstGEP1_64(word, address, 2), builder, word);
  return builder.CreateInsertElement(two, builder.CreateExtractElement(third, uint64_t{0}), uint64_t{2});
}

// A register has in each chunk of four words a lane's part, or those of two or four lanes: what is in one chunk of a
// few registers belongs to as many lanes in order, of which each member becomes a chunk.
Values StridedAccesses::load_rows(const LoadInst& load, ArrayRef<Value*> rows, uint64_t part,
                                  ArrayRef<uint64_t> indices, IRBuilder<>& builder) {
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  const auto num_words = static_cast<unsigned>(part * bytes / sizeof(uint32_t));
  Type* word = bytes == sizeof(uint32_t) ? load.getType() : builder.getInt32Ty();
  const unsigned width = lanes_.register_lanes(word);
  SmallVector<Values> words(num_words);
  auto is_used = [&](unsigned first_word, unsigned count) {
    return any_of(indices, [&](uint64_t index) {
      const uint64_t begin = index * bytes / sizeof(uint32_t), end = (index + 1) * bytes / sizeof(uint32_t);
      return begin < first_word + count && std::max(end, begin + 1) > first_word;
    });
  };
  // Three words take the place of four.
  const unsigned in_chunk = num_words == 3 ? kChunk : num_words;
  for (unsigned first = 0; first < kLanes; first += width) {
    if (num_words == kChunk * kChunk && width == num_words) {
      // A register is a lane's part.
      std::array<Four, kChunk> of_lanes;
      for (unsigned i = 0; i < kChunk; ++i) {
        Four lanes;
        for (unsigned k = 0; k < kChunk; ++k)
          lanes[k] = load_part(load, num_words, rows[first + kChunk * i + k], builder, word);
        of_lanes[i] = transposed_in_chunks(lanes, builder);
      }
      for (unsigned i = 0; i < kChunk; ++i)
        for (auto [chunk, member] :
             enumerate(transposed_chunks({of_lanes[0][i], of_lanes[1][i], of_lanes[2][i], of_lanes[3][i]}, builder)))
          words[chunk * kChunk + i].push_back(member);
      continue;
    }
    if (num_words > kChunk) {
      // Lanes one after the other: the rest of a line of the cache is loaded while it is there.
      // The last part begins earlier if it would end beyond the lane's.
      for (unsigned part_of = 0; part_of < num_words; part_of += kChunk) {
        const unsigned begin = std::min(part_of, num_words - kChunk);
        if (!is_used(part_of, kChunk)) continue;
        Four lanes;
        for (unsigned i = 0; i < kChunk; ++i) {
          Values parts;
          for (unsigned chunk = 0; chunk < width; chunk += kChunk)
            parts.push_back(load_part(load, kChunk,
                                      builder.CreateConstGEP1_64(builder.getInt32Ty(), rows[first + chunk + i], begin),
                                      builder, word));
          lanes[i] = concatenateVectors(builder, parts);
        }
        const Four members = transposed_in_chunks(lanes, builder);
        for (unsigned i = part_of - begin; i < kChunk; ++i) words[begin + i].push_back(members[i]);
      }
      continue;
    }
    Values registers;
    for (unsigned i = 0; i < in_chunk; ++i) {
      Values parts;
      for (unsigned chunk = 0; chunk < width; chunk += kChunk)
        for (unsigned k = 0; k < kChunk / in_chunk; ++k) {
          const unsigned lane = first + chunk + i * (kChunk / in_chunk) + k;
          parts.push_back(num_words == 3 ? load_three(load, rows[lane], word, builder)
                                         : load_part(load, num_words, rows[lane], builder, word));
        }
      registers.push_back(concatenateVectors(builder, parts));
    }
    if (num_words == 1) {
      words[0].push_back(registers[0]);
    } else if (num_words == 2) {
      for (unsigned i = 0; i < 2; ++i)
        words[i].push_back(shuffled_in_chunks(registers[0], registers[1], {i, i + 2, i + 4, i + 6}, builder));
    } else {
      const Four members = transposed_in_chunks({registers[0], registers[1], registers[2], registers[3]}, builder);
      for (unsigned i = 0; i < num_words; ++i) words[i].push_back(members[i]);
    }
  }
  Values results;
  for (uint64_t index : indices) {
    const uint64_t at = index * bytes;
    Value* all = concatenateVectors(builder, words[at / sizeof(uint32_t)]);
    if (bytes > sizeof(uint32_t)) {
      Value* high = concatenateVectors(builder, words[at / sizeof(uint32_t) + 1]);
      all = builder.CreateShuffleVector(all, high, createInterleaveMask(kLanes, 2));
      all = builder.CreateBitCast(all, vector_of(load.getType()));
    } else if (!is_word(bytes)) {
      all = elements_at(all, at % sizeof(uint32_t), load.getType(), builder);
    }
    results.push_back(all);
  }
  return results;
}

void StridedAccesses::store_rows(ArrayRef<Value*> members, ArrayRef<Value*> rows, Align alignment,
                                 IRBuilder<>& builder) {
  Type* element = members[0]->getType()->getScalarType();
  const uint64_t bytes = layout_.getTypeStoreSize(element);
  Type* word = is_word(bytes) ? element : builder.getInt32Ty();
  const unsigned width = lanes_.register_lanes(word);
  // Words of which each lane has one.
  Values words;
  const auto in_word = static_cast<unsigned>(sizeof(uint32_t) / bytes);
  for (size_t first = 0; first < members.size(); first += in_word) {
    Value* joined = nullptr;
    for (unsigned i = 0; i < in_word; ++i) {
      Value* member = members[first + i];
      if (in_word > 1) {
        member = builder.CreateBitCast(member, vector_of(builder.getIntNTy(static_cast<unsigned>(8 * bytes))));
        member = builder.CreateZExt(member, vector_of(word));
        if (i > 0) member = builder.CreateShl(member, 8 * bytes * i);
      }
      joined = joined ? builder.CreateOr(joined, member) : member;
    }
    words.push_back(joined);
  }
  alignment = std::min(alignment, Align(bytes));
  auto store = [&](Value* part, unsigned lane, unsigned first_word) {
    Value* to = builder.CreateConstGEP1_64(builder.getInt32Ty(), rows[lane], first_word);
    builder.CreateAlignedStore(part, to, alignment);
  };
  for (unsigned first = 0; first < kLanes; first += width) {
    auto lanes_of = [&](unsigned index) {
      return builder.CreateShuffleVector(words[index], createSequentialMask(first, width, 0));
    };
    if (words.size() == kChunk * kChunk && width == words.size()) {
      std::array<Four, kChunk> chunks;
      for (unsigned i = 0; i < kChunk; ++i)
        chunks[i] = transposed_chunks(
            {lanes_of(i), lanes_of(i + kChunk), lanes_of(i + 2 * kChunk), lanes_of(i + 3 * kChunk)}, builder);
      for (unsigned i = 0; i < kChunk; ++i)
        for (auto [k, part] :
             enumerate(transposed_in_chunks({chunks[0][i], chunks[1][i], chunks[2][i], chunks[3][i]}, builder)))
          store(part, first + i * kChunk + static_cast<unsigned>(k), 0);
      continue;
    }
    for (unsigned part_of = 0; part_of < words.size(); part_of += kChunk) {
      const Four parts = transposed_in_chunks(
          {lanes_of(part_of), lanes_of(part_of + 1), lanes_of(part_of + 2), lanes_of(part_of + 3)}, builder);
      for (unsigned i = 0; i < kChunk; ++i)
        for (unsigned chunk = 0; chunk < width; chunk += kChunk)
          store(builder.CreateShuffleVector(parts[i], createSequentialMask(chunk, kChunk, 0)), first + chunk + i,
                part_of);
    }
  }
}

void StridedAccesses::store_strided(Value* lanes, Value* address, uint64_t step, Align alignment,
                                    IRBuilder<>& builder) {
  Type* element = lanes->getType()->getScalarType();
  unsigned width = lanes_.register_lanes(element), taken = width / static_cast<unsigned>(step);
  for (unsigned first = 0; first < kLanes; first += taken) {
    SmallVector<int> sources;
    SmallVector<Constant*> is_lane_element;
    for (unsigned i = 0; i < width; ++i) {
      sources.push_back(static_cast<int>(first + i / step));
      is_lane_element.push_back(builder.getInt1(i % step == 0));
    }
    Value* mask = builder.CreateShuffleVector(lanes_.mask(), sources);
    mask = builder.CreateAnd(mask, ConstantVector::get(is_lane_element));
    builder.CreateMaskedStore(builder.CreateShuffleVector(lanes, sources),
                              builder.CreateConstGEP1_32(element, address, static_cast<unsigned>(first * step)),
                              alignment, mask);
  }
}

Value* StridedAccesses::load_consecutive(LoadInst& load, Value* address, IRBuilder<>& builder) {
  Type* type = vector_of(load.getType());
  if (is_all(lanes_.mask()) || !lanes_.can_mask(layout_.getTypeStoreSize(load.getType())))
    return builder.CreateAlignedLoad(type, address, load.getAlign());
  return builder.CreateMaskedLoad(type, address, load.getAlign(), lanes_.mask(), Constant::getNullValue(type));
}

Values StridedAccesses::interleaved(ArrayRef<Value*> members, IRBuilder<>& builder) {
  const unsigned width = lanes_.register_lanes(members[0]->getType()->getScalarType());
  if (members.size() % 2 == 1 && members.size() > 1 &&
      shuffles_in_chunks(layout_.getTypeStoreSize(members[0]->getType()->getScalarType())))
    return interleaved_odd(members, builder);
  if (!isPowerOf2_64(members.size())) {
    Values registers, results;
    for (Value* member : members)
      for (unsigned first = 0; first < kLanes; first += width)
        registers.push_back(builder.CreateShuffleVector(member, createSequentialMask(first, width, 0)));
    for (unsigned first = 0; first < kLanes * members.size(); first += width) {
      SmallVector<unsigned> elements;
      for (unsigned i = first; i < first + width; ++i)
        elements.push_back(static_cast<unsigned>(i % members.size() * kLanes + i / members.size()));
      results.push_back(collected(registers, elements, builder));
    }
    return results;
  }
  SmallVector<int> low, high;
  for (unsigned i = 0; i < width; ++i) {
    low.push_back(static_cast<int>(i / 2 + i % 2 * width));
    high.push_back(static_cast<int>(width / 2 + i / 2 + i % 2 * width));
  }
  SmallVector<Values> parts;
  for (Value* member : members) {
    Values registers;
    for (unsigned first = 0; first < kLanes; first += width) {
      SmallVector<int> sources;
      for (unsigned i = 0; i < width; ++i) sources.push_back(static_cast<int>(first + i));
      registers.push_back(builder.CreateShuffleVector(member, sources));
    }
    parts.push_back(std::move(registers));
  }
  while (parts.size() > 1) {
    SmallVector<Values> larger;
    for (unsigned i = 0; i < parts.size() / 2; ++i) {
      Values both;
      for (auto [even, odd] : zip_equal(parts[i], parts[i + parts.size() / 2])) {
        both.push_back(builder.CreateShuffleVector(even, odd, low));
        both.push_back(builder.CreateShuffleVector(even, odd, high));
      }
      larger.push_back(std::move(both));
    }
    parts = std::move(larger);
  }
  return parts[0];
}

}  // namespace kiln::widening
