// Whether threads can wait for one another is decided by the names that a text uses, in both dialects alike.
#include "frontend/cooperation.h"

#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

constexpr Cooperation kNone{}, kCollectives{.has_collectives = true},
    kBarriers{.waits_at_barriers = true, .has_collectives = true};

Cooperation metal(const std::string& body, const std::string& header = "") {
  return cooperation_of(Dialect::kMetal, KernelText(header, body));
}
Cooperation cuda(const std::string& body, const std::string& header = "") {
  return cooperation_of(Dialect::kCuda, KernelText(header, body));
}

TEST(Cooperation, OfMetal) {
  EXPECT_EQ(metal("y[i] = x[i];"), kNone);
  EXPECT_EQ(metal("threadgroup_barrier(mem_flags::mem_threadgroup);"), kBarriers);
  EXPECT_EQ(metal("wait();", "void wait() { threadgroup_barrier(mem_flags::mem_none); }"), kBarriers);
  EXPECT_EQ(metal("y[i] = simd_sum(x[i]);"), kCollectives);
  EXPECT_EQ(metal("y[i] = quad_broadcast(x[i], 0);"), kCollectives);
  EXPECT_EQ(metal("simdgroup_multiply(c, a, b);"), kCollectives);
  EXPECT_EQ(metal("y[i] = __syncthreads;"), kNone);
  EXPECT_EQ(metal("// threadgroup_barrier\ny[i] = 1;"), kNone);
}

TEST(Cooperation, OfCuda) {
  EXPECT_EQ(cuda("y[i] = x[i];"), kNone);
  for (const char* call : {"__syncthreads();", "n = __syncthreads_count(p);", "n = __syncthreads_or(p);",
                           "n = __syncthreads_and(p);", "__barrier_sync(0);", "cooperative_groups::sync(block);"})
    EXPECT_EQ(cuda(call), kBarriers) << call;
  for (const char* call : {"v = __shfl_sync(m, v, 0);", "v = __shfl_xor_sync(m, v, 1);", "m = __ballot_sync(m, p);",
                           "p = __any_sync(m, p);", "p = __all_sync(m, p);", "m = __match_any_sync(m, v);",
                           "v = __reduce_add_sync(m, v);", "__syncwarp();", "m = __activemask();"})
    EXPECT_EQ(cuda(call), kCollectives) << call;
  EXPECT_EQ(cuda("tile.sync();", "namespace cg = cooperative_groups;"), kBarriers);
  EXPECT_EQ(cuda("threadgroup_barrier = simd_sum;"), kNone);
}

TEST(Cooperation, MayBePastedTogether) {
  EXPECT_EQ(metal("SUM(simd)", "#define SUM(p) p##_sum(x[i]);\n"), kBarriers);
  EXPECT_EQ(cuda("CALL(sync)", "#define CALL(p) __##p##threads();\n"), kBarriers);
}

TEST(SeesThreadgroups, OnlyWhereATextSaysSo) {
  auto sees = [](const std::string& body, const std::string& header = "") {
    return sees_threadgroups(Dialect::kMetal, KernelText(header, body));
  };
  for (const char* body : {"y[i] = x[i];", "uint3 p = thread_position_in_grid; y[p.x] = threads_per_grid.y;",
                           "uint i = grid_size.x + grid_origin.x;", "float t[4]; y[0] = t[x[0]];"})
    EXPECT_FALSE(sees(body)) << body;
  for (const char* body :
       {"y[0] = thread_position_in_threadgroup.x;", "y[0] = threadgroup_position_in_grid.x;",
        "y[0] = threads_per_threadgroup.x;", "y[0] = thread_index_in_quadgroup;", "threadgroup float t[4];",
        "threadgroup_barrier(mem_flags::mem_none);", "y[0] = simd_sum(x[0]);", "y[0] = quad_sum(x[0]);",
        "while (((volatile device uint*)y)[0] == 0) {}", "atomic_store_explicit(&y[0], 1u, memory_order_relaxed);",
        "mlx_atomic_store(y, 1, 0);", "_Atomic(uint)* p;", "while (!__atomic_load_n(y, 0)) {}",
        "__sync_fetch_and_add(y, 1);", "static __attribute__((section(\"s\"))) int t;"})
    EXPECT_TRUE(sees(body)) << body;
  for (const char* paste : {"#define PASTE(a, b) a##b\n", "#define PASTE(a, b) a%:%:b\n"})
    EXPECT_TRUE(sees("PASTE(thread, group) int t[4];", paste)) << paste;
  EXPECT_TRUE(sees("y[0] = f();", "inline uint f() { return kiln::thread_index_in_threadgroup(); }"));
  EXPECT_TRUE(sees_threadgroups(Dialect::kCuda, KernelText("", "y[i] = x[i];")));
}

}  // namespace
}  // namespace kiln
