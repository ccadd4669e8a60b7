// The functions that an image for the CPU may have (core/cpu_image.h): one of the first three, and beside the third the
// fourth.
#pragma once

#include <cstdint>

#include "core/cpu_image.h"

namespace kiln {

// Runs `count` threads that follow one another in x. The record describes the first, whose x is 0. Where rows are
// joined, `count` goes on into the threadgroups behind it. `rows`: how many such rows that follow one another in y, one
// unless takes_rows says that there may be more.
using CpuRowFunction = void (*)(const CpuLaunch*, const CpuThread* first, uint32_t count, uint32_t rows);
// Runs a thread to the next place where it waits, or to its end. `frame`: frame_bytes, aligned to kCpuFrameAlignment.
using CpuThreadFunction = void (*)(const CpuLaunch*, CpuThread*, void* frame);
// The same for a simdgroup of `lanes` threads, at most 32; the record describes the first, whose place in x is `x`. At
// a barrier the payload's first value is the mask of the threads that wait. The frame is null where the header has
// none.
using CpuSimdgroupFunction = void (*)(const CpuLaunch*, CpuThread* first, void* frame, uint32_t x, uint32_t lanes);
// Runs a whole threadgroup of `count` simdgroups, all of them full; the record describes its first thread. `places`:
// where each simdgroup's first thread is in the threadgroup. `frames`: one behind the other, as far apart as the code
// wants them, at most frame_bytes rounded up to kCpuFrameAlignment.
using CpuThreadgroupFunction = void (*)(const CpuLaunch*, const CpuThread* first, void* frames, const uint32_t* places,
                                        uint32_t count);
// Parameters of the last two by number; a threadgroup's has other ones from the fourth on.
enum CpuParameter : unsigned { kCpuLaunch, kCpuRecord, kCpuFrame, kCpuX };

}  // namespace kiln
