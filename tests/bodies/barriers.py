"""Every shape of control flow that a barrier may stand in.

Most bodies pass values around: each step reads what the neighbour wrote before the barrier, so that a thread which goes
through one too early or too late shows.
"""

import numpy as np

from bodies import Dtype, body

_N = 48  # threads of a threadgroup: one and a half simdgroups


def _ring(
    source,
    constructs,
    *,
    header="",
    groups=2,
    template=(),
    extra=None,
):
    """A body over `groups` threadgroups of 48 threads with `ring` in threadgroup memory, which begins as x.

    `source` may use t, ring, `left` (the place of the neighbour) and the argument `steps`; in the end ring is written
    out. The reference takes the rows of x as one array, and gives what they end as.
    """

    def register(reference):
        body(
            f"""
    threadgroup int ring[{_N}];
    uint t = thread_index_in_threadgroup;
    uint left = (t + {_N} - 1) % {_N};
    ring[t] = x[thread_position_in_grid.x];
    {source}
    y[thread_position_in_grid.x] = ring[t];
    """,
            name=reference.__name__,
            header=header,
            inputs=lambda rng: {
                "x": rng.integers(-99, 99, groups * _N, np.int32),
                "steps": np.array([3, 5, 2], np.int32),
                **(extra or {}),
            },
            outputs={"y": ((groups * _N,), "int32")},
            grid=(groups * _N, 1, 1),
            threadgroup=(_N, 1, 1),
            template=template,
            constructs=constructs,
        )(
            lambda x, steps, **rest: (
                reference(
                    x.reshape(groups, _N).copy(), *([steps.tolist()] if reference.__code__.co_argcount > 1 else [])
                )
                .reshape(-1)
                .astype(np.int32)
            )
        )
        return reference

    return register


def _shift(ring, by=1):
    """Each takes its left neighbour's value and adds a number."""
    return np.roll(ring, 1, axis=1) + by


_STEP = """
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int taken = ring[left];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      ring[t] = taken + 1;
"""

# ---- Straight


@_ring(
    """
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup_barrier(mem_flags::mem_none);
    threadgroup_barrier(mem_flags::mem_device); threadgroup_barrier(mem_flags::mem_threadgroup);
    int taken = ring[left];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ring[t] = taken + 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    """,
    "barriers.several_in_a_row",
)
def several_barriers_in_a_row(ring):
    return _shift(ring)


@body(
    """
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[thread_position_in_grid.x] = thread_index_in_threadgroup;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    """,
    outputs={"out": ((100,), "uint32")},
    grid=(100, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="barriers.first_and_last_statement",
)
def barrier_first_and_last():
    return (np.arange(100) % 64).astype(np.uint32)


# ---- Loops


@_ring(
    f"""
    for (int j = 0; j < 4; ++j) {{
      {_STEP}
    }}
    """,
    "barriers.in_loop structure.barrier_in_loop",
)
def barrier_in_a_loop(ring):
    for _ in range(4):
        ring = _shift(ring)
    return ring


@_ring(
    f"""
    for (int j = 0; j < steps[0]; ++j) {{
      {_STEP}
      for (int k = 0; k <= j; ++k) {{
        threadgroup_barrier(mem_flags::mem_threadgroup);
        int more = ring[left] * 2;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ring[t] += more;
      }}
    }}
    """,
    "barriers.nested_loop barriers.run_time_trip_count",
)
def barrier_in_a_nested_loop(ring, steps):
    for j in range(steps[0]):
        ring = _shift(ring)
        for _ in range(j + 1):
            ring = ring + 2 * np.roll(ring, 1, axis=1)
    return ring


@_ring(
    """
    for (int j = 0; j < int(t) % 5; ++j) ring[t] += j;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int sum = 0;
    for (int j = 0; j < int(t) % 7; ++j) sum += ring[j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ring[t] = sum;
    """,
    "barriers.between_two_loops",
)
def barrier_between_loops(ring):
    t = np.arange(_N)
    trips = t % 5
    ring = ring + trips * (trips - 1) // 2
    sums = np.concatenate([np.zeros((len(ring), 1), int), np.cumsum(ring, axis=1)], axis=1)
    return sums[:, t % 7]


@_ring(
    f"""
    int j = steps[1];
    while (j > 0) {{
      --j;
      {_STEP}
    }}
    do {{
      {_STEP.replace("taken", "again")}
    }} while (++j < steps[2]);
    do {{ threadgroup_barrier(mem_flags::mem_none); }} while (false);
    """,
    "barriers.in_while barriers.in_do barriers.run_time_trip_count structure.while structure.do",
)
def barrier_in_while_and_do(ring, steps):
    for _ in range(steps[1] + steps[2]):
        ring = _shift(ring)
    return ring


@_ring(
    """
    for (int j = 0; j < 10; ++j) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int taken = ring[left];
      if (j == steps[0]) break;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (j % 2 == 1) {
        ring[t] = taken + 10;
        continue;
      }
      ring[t] = taken + 1;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int last = ring[left];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ring[t] += last;
    """,
    "barriers.with_break barriers.with_continue",
)
def barrier_with_break_and_continue(ring, steps):
    for j in range(steps[0]):
        ring = _shift(ring, 10 if j % 2 else 1)
    return ring + np.roll(ring, 1, axis=1)


@_ring(
    """
    for (int j = 0; ; j += 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // Decided by what all threads read alike.
      if (ring[0] + 40 * j > 200) break;
      int taken = ring[left];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      ring[t] = taken + 7;
      if (j == 4) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        continue;
      }
      ring[t] -= 1;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    """,
    "barriers.with_break barriers.with_continue barriers.run_time_trip_count",
)
def barrier_until_data_says_so(ring):
    for row, values in enumerate(ring):
        j = 0
        while values[0] + 40 * j <= 200:
            values = np.roll(values, 1) + (7 if j == 4 else 6)
            j += 2
        ring[row] = values
    return ring


@_ring(
    f"""
    #pragma unroll
    for (int j = 0; j < 3; ++j) {{
      {_STEP}
    }}
    #pragma clang loop unroll(full)
    for (int j = 0; j < 2; ++j) {{
      {_STEP}
    }}
    """,
    "barriers.in_unrolled_loop structure.pragma_unroll structure.pragma_clang_loop",
)
def barrier_in_unrolled_loops(ring):
    for _ in range(5):
        ring = _shift(ring)
    return ring


@_ring(
    """
    for (int j = 0, k = 8; j < k; ++j, --k) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int m = j; m < k && m < 3; ++m) {
        int taken = ring[left];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ring[t] = taken + m;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (m == 1) break;
      }
      for (int m = 0; m < 2; ++m) threadgroup_barrier(mem_flags::mem_none);
    }
    """,
    "barriers.for_with_several barriers.nested_loop barriers.with_break",
)
def several_barriers_in_for_loops(ring):
    j, k = 0, 8
    while j < k:
        m = j
        while m < k and m < 3:
            ring = _shift(ring, m)
            if m == 1:
                break
            m += 1
        j, k = j + 1, k - 1
    return ring


@_ring(
    f"""
    for (int j = 0; j < steps[0]; ++j) {{
      {_STEP}
    }}
    for (int j = 0; j < int(t) % 3; ++j) ring[t] += 5;
    for (int j = steps[2]; j-- > 0;) {{
      {_STEP.replace("+ 1", "* 2")}
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }}
    for (int j = 0; j < 2; ++j) ring[t] -= j;
    """,
    "barriers.in_loop barriers.between_two_loops barriers.run_time_trip_count",
)
def loops_with_barriers_in_a_row(ring, steps):
    for _ in range(steps[0]):
        ring = _shift(ring)
    ring = ring + np.arange(_N) % 3 * 5
    for _ in range(steps[2]):
        ring = np.roll(ring, 1, axis=1) * 2
    return ring - 1


@_ring(
    """
    for (int j = 0; j < 4; ++j) {
      // Between the barriers each thread has loops and conditions of its own.
      for (int k = 0; k < int(t) % 4; ++k) {
        if (k == j) continue;
        ring[t] += 1 + k;
        if (ring[t] % 5 == 0) break;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int taken = 0;
      for (int k = 0; k <= int(t & 1) + j; ++k) taken += ring[(t + k) % 48];
      if (t % 7 == 3) taken = -taken;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t % 5 != 1) ring[t] = taken & 0xfff;
    }
    """,
    "barriers.in_loop barriers.after_divergent_condition barriers.between_two_loops",
)
def divergence_between_barriers_in_a_loop(ring):
    for row in range(len(ring)):
        values = ring[row].tolist()
        for j in range(4):
            for i in range(_N):
                for k in range(i % 4):
                    if k == j:
                        continue
                    values[i] += 1 + k
                    if values[i] % 5 == 0:
                        break
            taken = [sum(values[(i + k) % _N] for k in range((i & 1) + j + 1)) for i in range(_N)]
            taken = [-v if i % 7 == 3 else v for i, v in enumerate(taken)]
            values = [v & 0xFFF if i % 5 != 1 else old for i, (v, old) in enumerate(zip(taken, values, strict=True))]
        ring[row] = values
    return ring


@_ring(
    """
    // What the loop carries differs by thread; some of it changes in some threads only.
    int own = t, last = -1;
    long product = 1;
    float scale = 1 + t % 4;
    for (int j = 0, k = t; j < steps[1]; ++j, k += 3) {
      if (k % 3 == j % 3) own += 10 * j;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int taken = ring[(left + own) % 48];
      if (t % 2) last = taken;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      product = product * 3 + k;
      scale *= 0.5;
      ring[t] = taken + own + last;
      own = (own * 2 + int(t & 1)) % 1000;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ring[t] += own + int(product) + int(scale * 1024);
    """,
    "barriers.loop_variables_across barriers.in_loop barriers.for_with_several",
)
def loop_variables_across_barriers(ring, steps):
    t = np.arange(_N)
    own, last, product, k = t.copy(), np.full(ring.shape, -1), np.ones(_N, int), t.copy()
    for j in range(steps[1]):
        own = np.where(k % 3 == j % 3, own + 10 * j, own)
        taken = ring[:, ((t + _N - 1) % _N + own) % _N]
        last = np.where(t % 2 == 1, taken, last)
        product = product * 3 + k
        ring = taken + own + last
        own = (own * 2 + (t & 1)) % 1000
        k = k + 3
    return ring + own + product + (1 + t % 4) * 1024 // 2 ** steps[1]


@_ring(
    f"""
    for (int j = 0; j < steps[0]; ++j) {{
      if (j % 2 == 0) {{
        if (threadgroup_position_in_grid.x == 1) {{
          {_STEP}
        }}
        for (int k = 0; k < 2; ++k) {{
          if (steps[2] == 2 && k == j) {{
            {_STEP.replace("+ 1", "+ 20")}
          }} else if (t % 2) {{
            ring[t] += 3;
          }}
        }}
      }} else {{
        for (int k = 0; ; ++k) {{
          {_STEP.replace("+ 1", "+ 300")}
          if (k == 1) break;
        }}
      }}
    }}
    """,
    "barriers.nested_conditions barriers.nested_loop barriers.in_both_branches barriers.with_break "
    "barriers.under_uniform_condition",
)
def barriers_in_nested_conditions(ring, steps):
    odd = np.arange(_N) % 2 == 1
    for j in range(steps[0]):
        if j % 2 == 0:
            ring = np.concatenate([ring[:1], _shift(ring[1:])])
            for k in range(2):
                ring = _shift(ring, 20) if k == j else np.where(odd, ring + 3, ring)
        else:
            ring = _shift(_shift(ring, 300), 300)
    return ring


@_ring(
    """
    bool stop = false;
    for (int j = 0; j < 6 && !stop; ++j) {
      for (int k = 0; k < 4; ++k) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        int taken = ring[left];
        if ((j + k) % 3 == 1) {
          threadgroup_barrier(mem_flags::mem_threadgroup);
          continue;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ring[t] = taken + k;
        if (k == j) break;
        if (j == 4) {
          stop = true;
          break;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (j % 2) continue;
      int more = ring[left];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      ring[t] += more;
    }
    """,
    "barriers.nested_loop barriers.with_break barriers.with_continue",
)
def barriers_with_break_and_continue_in_nested_loops(ring):
    j, stop = 0, False
    while j < 6 and not stop:
        for k in range(4):
            if (j + k) % 3 == 1:
                continue
            ring = _shift(ring, k)
            if k == j:
                break
            if j == 4:
                stop = True
                break
        if j % 2 == 0:
            ring = ring + np.roll(ring, 1, axis=1)
        j += 1
    return ring


@_ring(
    """
    int rounds = 0;
    while (agreed(ring, 60)) {
      int taken = ring[left];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      ring[t] = taken + 9;
      ++rounds;
    }
    do {
      ring[t] += 1;
      if (rounds % 2) continue;
      ring[t] += 100;
    } while (++rounds < 6 || agreed(ring, -99));
    int joined = agreed(ring, 0) && agreed(ring, -1000) ? 1 : agreed(ring, -50) ? 2 : 3;
    ring[t] += 1000 * joined;
    """,
    "barriers.in_condition barriers.in_while barriers.in_do barriers.with_continue",
    header="""
// All threads read one value, and none goes on to change it before all have.
bool agreed(threadgroup int* ring, int limit) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bool result = ring[7] < limit;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return result;
}
""",
)
def barriers_in_conditions(ring):
    for row, values in enumerate(ring):
        rounds = 0
        while values[7] < 60:
            values = np.roll(values, 1) + 9
            rounds += 1
        while True:
            values = values + (1 if rounds % 2 else 101)
            rounds += 1
            if not (rounds < 6 or values[7] < -99):
                break
        joined = 1 if values[7] < 0 and values[7] < -1000 else 2 if values[7] < -50 else 3
        ring[row] = values + 1000 * joined
    return ring


@body(
    """
    threadgroup int sums[48];
    uint t = thread_index_in_threadgroup;
    int own = x[thread_position_in_grid.x];
    for (int j = 0; ; ++j) {
      sums[t] = own;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int next = sums[(t + 1) % 48] + 1;
      // The same for all threads of a threadgroup, at different times in each.
      if (sums[5] + 30 * j > 60) {
        y[thread_position_in_grid.x] = 1000 * j + own;
        return;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      own = next;
    }
    """,
    inputs=lambda rng: {"x": rng.integers(-99, 99, 96, np.int32)},
    outputs={"y": ((96,), "int32")},
    grid=(96, 1, 1),
    threadgroup=(48, 1, 1),
    constructs="barriers.with_return barriers.in_loop barriers.run_time_trip_count",
)
def barrier_in_a_loop_left_by_return(x):
    out = []
    for own in x.reshape(2, 48):
        j = 0
        while own[5] + 30 * j <= 60:
            own = np.roll(own, -1) + 1
            j += 1
        out.append(1000 * j + own)
    return np.concatenate(out).astype(np.int32)


# ---- Conditions


@_ring(
    f"""
    if (steps[0] == 3) {{
      {_STEP}
    }}
    if (threadgroup_position_in_grid.x == 1) {{
      {_STEP}
    }} else {{
      {_STEP.replace("+ 1", "+ 100")}
    }}
    if (steps[1] == 0) threadgroup_barrier(mem_flags::mem_threadgroup);
    """,
    "barriers.under_uniform_condition barriers.in_both_branches structure.barrier_under_uniform_condition",
)
def barrier_under_conditions(ring):
    ring = _shift(ring)
    return np.concatenate([_shift(ring[:1], 100), _shift(ring[1:])])


@_ring(
    """
    if (t % 3 == 0) {
      ring[t] += 1000;
    } else if (t > 40) {
      ring[t] *= 2;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int taken = t % 2 ? ring[left] : -ring[left];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ring[t] = taken;
    """,
    "barriers.after_divergent_condition",
)
def barrier_after_divergence(ring):
    t = np.arange(_N)
    ring = np.where(t % 3 == 0, ring + 1000, np.where(t > 40, ring * 2, ring))
    return np.roll(ring, 1, axis=1) * np.where(t % 2, 1, -1)


@_ring(
    f"""
    for (int j = 0; j < 5; ++j) {{
      switch (j % 4) {{
        case 0: {{
          {_STEP}
          break;
        }}
        case 1:
          threadgroup_barrier(mem_flags::mem_threadgroup);
          // falls through
        case 2: {{
          {_STEP.replace("+ 1", "+ 50")}
        }}
        default:
          threadgroup_barrier(mem_flags::mem_threadgroup);
      }}
    }}
    """,
    "barriers.in_switch structure.switch",
)
def barrier_in_switch_cases(ring):
    for j in range(5):
        if j % 4 != 3:
            ring = _shift(ring, 1 if j % 4 == 0 else 50)
    return ring


# ---- Functions


@_ring(
    """
    pass(ring, t, left);
    ring[t] *= 3;
    int result = pass(ring, t, left);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ring[t] += result;
    """,
    "barriers.in_helper_called_twice address_spaces.threadgroup_pointer_to_helper",
    header=f"""
int pass(threadgroup int* ring, uint t, uint left) {{
  {_STEP}
  return taken;
}}
""",
)
def barrier_in_a_helper(ring):
    ring = 3 * _shift(ring)
    taken = np.roll(ring, 1, axis=1)
    return taken + 1 + taken


@_ring(
    """
    rotate_all<3>(ring, t);
    rotate_all<5, false>(ring, t);
    Rotation<7>{ring, t}.run();
    """,
    "barriers.in_template structure.template structure.explicit_template_arguments",
    header=f"""
template <int Steps, bool Add = true>
void rotate_all(threadgroup int* ring, uint t) {{
  for (int j = 0; j < Steps; ++j) {{
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int taken = ring[(t + 1) % {_N}];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ring[t] = Add ? taken + j : taken;
  }}
}}

template <int Steps>
struct Rotation {{
  threadgroup int* ring;
  uint t;
  void run() {{ rotate_all<Steps>(ring, t); }}
}};
""",
)
def barrier_in_templates(ring):
    for steps, adds in ((3, True), (5, False), (7, True)):
        for j in range(steps):
            ring = np.roll(ring, -1, axis=1) + (j if adds else 0)
    return ring


@_ring(
    """
    auto step = [&](int by) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      int taken = ring[left];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      ring[t] = taken + by;
    };
    for (int j = 0; j < steps[0]; ++j) step(j);
    auto twice = [&](auto f) {
      f(10);
      f(20);
    };
    twice(step);
    """,
    "barriers.in_lambda structure.lambda",
)
def barrier_in_lambdas(ring, steps):
    for by in (*range(steps[0]), 10, 20):
        ring = _shift(ring, by)
    return ring


@_ring(
    """
    SYNC();
    REPEAT(3, { int taken = ring[left]; SYNC(); ring[t] = taken + 1; SYNC(); })
    """,
    "barriers.in_macro structure.multi_line_macro_in_header",
    header="""
#define SYNC() threadgroup_barrier(mem_flags::mem_threadgroup)
#define REPEAT(COUNT, ...)                     \\
  for (int repeat = 0; repeat < COUNT; ++repeat) \\
    __VA_ARGS__
""",
)
def barrier_in_macros(ring):
    for _ in range(3):
        ring = _shift(ring)
    return ring


# ---- Threads that have left


@body(
    """
    threadgroup int staged[64];
    uint t = thread_index_in_threadgroup;
    if (t % 4 == 3) return;
    staged[t] = x[thread_position_in_grid.x];
    for (int j = 0; j < 3; ++j) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // One more third leaves in each round.
      if (int(t % 4) == j && t > 31) return;
      y[thread_position_in_grid.x] += staged[t / 4 * 4] * (j + 1);
    }
    """,
    inputs=lambda rng: {"x": rng.integers(-99, 99, 128, np.int32)},
    outputs={"y": ((128,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    init_value=0,
    constructs="barriers.after_early_return structure.return_before_barrier address_spaces.threadgroup_array",
)
def barrier_while_threads_leave(x):
    t = np.arange(128) % 64
    rounds = np.where(t % 4 == 3, 0, np.where(t > 31, t % 4, 3))
    return (x[np.arange(128) // 4 * 4] * (rounds * (rounds + 1) // 2)).astype(np.int32)


# ---- What lives across a barrier


@body(
    """
    threadgroup float4 shared_rows[32];
    uint t = thread_index_in_threadgroup;
    float own[6];
    float4 sum = 0;
    int counts[4] = {0, 0, 0, 0};
    for (int j = 0; j < 6; ++j) own[j] = x[t * 6 + j];
    for (int j = 0; j < 6; ++j) {
      shared_rows[t] = float4(own[j], own[5 - j], own[(j + t) % 6], 1);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      sum += shared_rows[(t * 7 + j) % 32];
      counts[(j + t) & 3] += 1;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      own[(j + t) % 6] *= 2;
    }
    float total = 0;
    for (int j = 0; j < 6; ++j) total += own[j];
    device float* row = y + 6 * t;
    row[0] = sum.x; row[1] = sum.y; row[2] = sum.z; row[3] = sum.w;
    row[4] = total;
    row[5] = counts[0] + 10 * counts[1] + 100 * counts[2] + 1000 * counts[3];
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, (32, 6)).astype(np.float32)},
    outputs={"y": ((32, 6), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="barriers.private_arrays_across structure.dynamic_local_array types.float4",
)
def arrays_across_barriers(x):
    t = np.arange(32)
    own, sums, counts = x.copy(), np.zeros((32, 4)), np.zeros((32, 4))
    for j in range(6):
        place = (j + t) % 6
        rows = np.stack([own[:, j], own[:, 5 - j], own[t, place], np.ones(32)], axis=1)
        sums += rows[(t * 7 + j) % 32]
        counts[t, (j + t) & 3] += 1
        own[t, place] *= 2
    coded = counts @ [1, 10, 100, 1000]
    return np.concatenate([sums, own.sum(axis=1)[:, None], coded[:, None]], axis=1).astype(np.float32)


# ---- Algorithms


@body(
    """
    threadgroup T partial[128];
    uint t = thread_index_in_threadgroup;
    partial[t] = x[thread_position_in_grid.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint stride = 64; stride > 0; stride >>= 1) {
      if (t < stride) {
        partial[t] = max(partial[t], partial[t + stride]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    y[thread_position_in_grid.x] = x[thread_position_in_grid.x] - partial[0];
    """,
    template=[("T", Dtype("float16"))],
    inputs=lambda rng: {"x": rng.normal(size=256).astype(np.float16)},
    outputs={"y": ((256,), "float16")},
    grid=(256, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="barriers.tree_reduction address_spaces.threadgroup_array_of_T",
)
def distance_to_block_maximum(x):
    blocks = x.reshape(2, 128)
    return (blocks - blocks.max(axis=1, keepdims=True)).reshape(256)


@body(
    """
    // Up the tree and down again (exclusive, any length up to 256).
    threadgroup int tree[256];
    uint t = thread_index_in_threadgroup;
    int n = x_shape[0];
    tree[2 * t] = int(2 * t) < n ? x[2 * t] : 0;
    tree[2 * t + 1] = int(2 * t) + 1 < n ? x[2 * t + 1] : 0;
    int offset = 1;
    for (int d = 128; d > 0; d >>= 1) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (int(t) < d) {
        int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
        tree[b] += tree[a];
      }
      offset *= 2;
    }
    if (t == 0) tree[255] = 0;
    for (int d = 1; d < 256; d *= 2) {
      offset >>= 1;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (int(t) < d) {
        int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
        int carried = tree[a];
        tree[a] = tree[b];
        tree[b] += carried;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (int(2 * t) < n) y[2 * t] = tree[2 * t];
    if (int(2 * t) + 1 < n) y[2 * t + 1] = tree[2 * t + 1];
    """,
    inputs=lambda rng: {"x": rng.integers(-99, 99, 201, np.int32)},
    outputs={"y": ((201,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="barriers.scan barriers.in_loop",
)
def exclusive_scan_by_tree(x):
    return np.concatenate([[0], np.cumsum(x)[:-1]]).astype(np.int32)


@body(
    """
    threadgroup half tile[16][17];
    uint2 t = thread_position_in_threadgroup.xy, group = threadgroup_position_in_grid.xy;
    uint rows = x_shape[0], columns = x_shape[1];
    for (uint j = 0; j < 16; j += 4) {
      uint row = group.y * 16 + t.y + j, column = group.x * 16 + t.x;
      if (row < rows && column < columns) tile[t.y + j][t.x] = x[row * columns + column];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < 16; j += 4) {
      uint row = group.x * 16 + t.y + j, column = group.y * 16 + t.x;
      if (row < columns && column < rows) y[row * rows + column] = tile[t.x][t.y + j];
    }
    """,
    inputs=lambda rng: {"x": rng.normal(size=(37, 50)).astype(np.float16)},
    outputs={"y": ((50, 37), "float16")},
    grid=(64, 12, 1),
    threadgroup=(16, 4, 1),
    constructs="barriers.transposition address_spaces.threadgroup_2d_array address_spaces.threadgroup_small_array",
)
def transpose_with_padding(x):
    return x.T


@body(
    """
    threadgroup float buffers[2][64 + 2];
    uint t = thread_index_in_threadgroup;
    int current = 0;
    buffers[0][t + 1] = x[t];
    if (t < 2) buffers[0][65 * t] = buffers[1][65 * t] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int step = 0; step < steps; ++step) {
      threadgroup const float* from = buffers[current];
      threadgroup float* to = buffers[current ^ 1];
      to[t + 1] = from[t + 1] + 0.25 * (from[t] - 2 * from[t + 1] + from[t + 2]);
      current ^= 1;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    y[t] = buffers[current][t + 1];
    """,
    inputs=lambda rng: {"x": rng.normal(size=64).astype(np.float32), "steps": 9},
    outputs={"y": ((64,), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="barriers.double_buffering barriers.run_time_trip_count address_spaces.threadgroup_2d_array",
)
def heat_with_two_buffers(x, steps):
    f = np.float32
    for _ in range(steps):
        padded = np.pad(x, 1)
        x = x + f(0.25) * (padded[:-2] - f(2) * x + padded[2:])
    return x


@body(
    """
    threadgroup uint keys[COUNT];
    uint t = thread_index_in_threadgroup;
    keys[t] = x[thread_position_in_grid.x];
    for (uint span = 2; span <= COUNT; span *= 2) {
      for (uint distance = span / 2; distance > 0; distance /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint other = t ^ distance;
        if (other > t) {
          bool ascending = (t & span) == 0;
          uint a = keys[t], b = keys[other];
          if ((a > b) == ascending) {
            keys[t] = b;
            keys[other] = a;
          }
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[thread_position_in_grid.x] = keys[t];
    """,
    header="#define COUNT 256",
    inputs=lambda rng: {"x": rng.integers(0, 2**32, 512, np.uint32)},
    outputs={"y": ((512,), "uint32")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="barriers.sort barriers.nested_loop",
)
def bitonic_sort(x):
    return np.sort(x.reshape(2, 256), axis=1).reshape(512)


@body(
    """
    threadgroup short keys[75];
    int n = x_shape[0], t = thread_index_in_threadgroup;
    keys[t] = x[t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int phase = 0; phase < n; ++phase) {
      int first = 2 * (t / 2) + (phase & 1);
      if (t % 2 == 0 && first + 1 < n && keys[first] > keys[first + 1]) {
        short swapped = keys[first];
        keys[first] = keys[first + 1];
        keys[first + 1] = swapped;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    y[t] = keys[t];
    """,
    inputs=lambda rng: {"x": rng.integers(-999, 999, 75, np.int16)},
    outputs={"y": ((75,), "int16")},
    grid=(75, 1, 1),
    threadgroup=(75, 1, 1),
    constructs="barriers.sort barriers.run_time_trip_count",
)
def odd_even_sort(x):
    return np.sort(x)


@body(
    """
    // One barrier for 3-D threadgroups with smaller ones at the edges.
    threadgroup int plane[4 * 3 * 2];
    uint3 p = thread_position_in_threadgroup, size = threads_per_threadgroup;
    plane[thread_index_in_threadgroup] = int(p.x) + 10 * int(p.y) + 100 * int(p.z);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint last = size.x * size.y * size.z - 1;
    uint3 at = thread_position_in_grid;
    out[at.x + threads_per_grid.x * (at.y + threads_per_grid.y * at.z)] = plane[last - thread_index_in_threadgroup];
    """,
    outputs={"out": ((3, 7, 9), "int32")},
    grid=(9, 7, 3),
    threadgroup=(4, 3, 2),
    constructs="barriers.three_dimensions launch.edge_threadgroups",
)
def barrier_in_three_dimensions():
    def extent(position, full, total):
        first = position // full * full
        return min(full, total - first), position - first

    out = np.zeros((3, 7, 9), np.int32)
    for z, y, x in np.ndindex(out.shape):
        (sx, px), (sy, py), (sz, pz) = extent(x, 4, 9), extent(y, 3, 7), extent(z, 2, 3)
        # the mirrored place in a threadgroup of its real size
        out[z, y, x] = (sx - 1 - px) + 10 * (sy - 1 - py) + 100 * (sz - 1 - pz)
    return out


@body(
    """
    // Private arrays with run-time indices keep their contents and their alignment over barriers.
    threadgroup ushort shared[64];
    uint t = thread_index_in_threadgroup;
    alignas(256) float wide[6];
    uchar narrow[5];
    alignas(16) short middle[3];
    for (int k = 0; k < n; ++k) wide[(k + t) % 6] = x[t] * k;
    for (int k = 0; k < n; ++k) narrow[(k + t) % 5] = uchar(t + k);
    for (int k = 0; k < n; ++k) middle[(k + t) % 3] = short(k - int(t));
    shared[t] = ushort(t * 3);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint other = shared[63 - t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    shared[t] = ushort(t * 5);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[t] = wide[other % 6] + narrow[other % 5] + middle[other % 3] + shared[63 - t];
    aligned[t] = ulong(&wide[0]) % 256 == 0 && ulong(&middle[0]) % 16 == 0;
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, 64).astype(np.float32), "n": 6},
    outputs={"y": ((64,), "float32"), "aligned": ((64,), "bool")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="barriers.double_buffering",
)
def private_arrays_over_barriers(x, n):
    y = np.zeros(64, np.float32)
    for t in range(64):
        other = 3 * (63 - t)
        wide, narrow, middle = np.zeros(6), np.zeros(5), np.zeros(3)
        for k in range(n):
            wide[(k + t) % 6] = x[t] * k
            narrow[(k + t) % 5] = t + k
            middle[(k + t) % 3] = k - t
        y[t] = wide[other % 6] + narrow[other % 5] + middle[other % 3] + 5 * (63 - t)
    return y, np.ones(64, bool)


@body(
    """
    uint t = thread_position_in_grid.x;
    int sum = 0;
    for (int k = 0; k < 4; ++k) sum += work(x, t, k);
    out[t] = sum;
    """,
    header="""
    // Arrays of a function that waits, inlined into a loop, with more alignment than memory is likely to have by chance.
    int work(const device int* x, uint t, int k) {
      alignas(512) int wide[5];
      alignas(128) uchar narrow[3];
      for (int i = 0; i < 5; ++i) wide[(i + t) % 5] = x[i] * k;
      for (int i = 0; i < 3; ++i) narrow[(i + t + k) % 3] = i * k;
      int total = simd_sum(wide[(t + k) % 5]);
      bool aligned = ulong(&wide[0]) % 512 == 0 && ulong(&narrow[0]) % 128 == 0;
      return total + narrow[(t * k) % 3] + wide[t % 5] + (aligned ? 0 : 1000000);
    }
    """,
    inputs=lambda rng: {"x": rng.integers(-99, 99, 5, np.int32)},
    outputs={"out": ((96,), "int32")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="simdgroup.sum",
)
def arrays_of_a_function_that_waits(x):
    t = np.arange(96)
    out = np.zeros(96, np.int64)
    for k in range(4):
        wide, narrow = np.zeros((96, 5), int), np.zeros((96, 3), int)
        for i in range(5):
            wide[t, (i + t) % 5] = x[i] * k
        for i in range(3):
            narrow[t, (i + t + k) % 3] = i * k
        totals = wide[t, (t + k) % 5].reshape(3, 32).sum(axis=1).repeat(32)
        out += totals + narrow[t, (t * k) % 3] + wide[t, t % 5]
    return out.astype(np.int32)


# ---- Behind control flow that threads take differently


@_ring(
    f"""
    switch (ring[t] & 3) {{
      case 0: ring[t] += 1;
      case 1: ring[t] += 5; break;
      case 2: ring[t] *= 3; break;
      default: ring[t] -= 1;
    }}
    {_STEP}
    """,
    "barriers.after_divergent_condition structure.switch",
)
def barrier_behind_a_switch_over_all_values(ring):
    low = ring & 3
    changed = np.where(low == 0, ring + 6, np.where(low == 1, ring + 5, np.where(low == 2, ring * 3, ring - 1)))
    return _shift(changed)


@_ring(
    f"""
    if (ring[t] > 0) {{
      ring[t] += 2;
      if (ring[t] > 60) {{
        y[thread_position_in_grid.x] = 1000;
        return;
      }}
      ring[t] *= 2;
    }}
    for (int j = 0; j < (ring[t] & 7); ++j) {{
      ring[t] -= j;
      if (ring[t] % 13 == 0) {{
        y[thread_position_in_grid.x] = 2000;
        return;
      }}
    }}
    {_STEP}
    """,
    "barriers.after_early_return structure.return_before_barrier",
)
def barrier_behind_nested_returns(ring):
    gone = np.zeros(ring.shape, np.int32)
    for place, value in np.ndenumerate(ring):
        if value > 0:
            value += 2
            if value > 60:
                ring[place], gone[place] = value, 1000
                continue
            value *= 2
        j = 0
        while j < (value & 7):
            value -= j
            if np.fmod(value, 13) == 0:
                gone[place] = 2000
                break
            j += 1
        ring[place] = value
    return np.where(gone, gone, _shift(ring))


# Of a ring's values some, at once: the others go on without their threads.
_LEAVE = "if (own > 60) { y[thread_position_in_grid.x] = 1000; return; }"


@_ring(
    f"""
    int own = ring[t];
    for (int j = 3; j-- > 0 && scale > 2;) {{
      {_LEAVE}
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }}
    if (scale > 2) threadgroup_barrier(mem_flags::mem_threadgroup);
    {_STEP}
    """,
    "barriers.after_early_return barriers.under_uniform_condition",
    extra={"scale": 3},
)
def barrier_behind_a_condition_of_all_threads_and_returns(ring):
    return np.where(ring > 60, 1000, _shift(ring))


@_ring(
    f"""
    int own = ring[t], sum = 0;
    for (int j = 0; j <= steps[2]; ++j) {{
      {_LEAVE}
      threadgroup_barrier(mem_flags::mem_threadgroup);
      sum += steps[j];
    }}
    if (sum > 7) threadgroup_barrier(mem_flags::mem_threadgroup);
    {_STEP}
    """,
    "barriers.after_early_return barriers.under_uniform_condition",
)
def barrier_behind_a_sum_over_a_loop_with_returns(ring, steps):
    return np.where(ring > 60, 1000, _shift(ring))


@_ring(
    f"""
    int own = ring[t];
    for (int j = 3; j-- > 0 && scale > 2;) {{
      {_LEAVE}
    }}
    for (int j = 0; j < scale; ++j) {{
      {_STEP}
    }}
    """,
    "barriers.after_early_return barriers.run_time_trip_count",
    extra={"scale": 3},
)
def barriers_in_a_loop_behind_one_with_its_condition_and_returns(ring):
    gone = ring > 60
    for _ in range(3):
        ring = np.where(gone, ring, _shift(ring))
    return np.where(gone, 1000, ring)


@_ring(
    f"""
    for (int turn = 3; turn-- > 0;) {{
      for (int j = int(t & 31) * 4; j < scale * 16; j += 128) {{
        ring[t] += j;
        simdgroup_barrier(mem_flags::mem_none);
      }}
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (scale > 2) break;
    }}
    {_STEP}
    """,
    "barriers.in_loop",
    extra={"scale": 3},
)
def barrier_in_a_loop_that_a_number_ends_which_another_loop_asks_again(ring):
    first = (np.arange(_N) & 31) * 4
    return _shift(ring + np.where(first < 48, first, 0))


@_ring(
    f"""
    int own = ring[t], kind = 0;
    for (int j = 0; j < steps[1]; ++j) {{
      for (int k = 0; k < steps[0]; ++k) {{
        if (own == 7 * j + k) {{
          y[thread_position_in_grid.x] = 1000;
          return;
        }}
        kind += steps[k];
      }}
      if (kind > 20) break;
    }}
    switch (kind & 3) {{
      case 0: threadgroup_barrier(mem_flags::mem_threadgroup);
      case 2: {{
        {_STEP}
      }}
      default: break;
    }}
    """,
    "barriers.after_early_return barriers.under_uniform_condition",
)
def barrier_behind_a_switch_on_what_nested_loops_with_returns_count(ring, steps):
    gone = np.isin(ring, [7 * j + k for j in range(3) for k in range(3)])
    return np.where(gone, 1000, _shift(ring))


@_ring(
    f"""
    int own = ring[t], turns = 0;
    while (turns * turns < steps[1] * 2) {{
      if (own + turns > 60) {{
        y[thread_position_in_grid.x] = 1000;
        return;
      }}
      ++turns;
    }}
    for (int j = 0; j < turns; ++j) {{
      if (j > 1 && ring[t] < -50) {{
        y[thread_position_in_grid.x] = 2000;
        return;
      }}
      {_STEP}
    }}
    """,
    "barriers.after_early_return barriers.run_time_trip_count",
)
def barriers_as_often_as_a_loop_with_returns_has_turned(ring, steps):
    result = np.where(ring + 3 > 60, 1000, 0)
    gone = result != 0
    for j in range(4):
        if j > 1:
            leaves = ~gone & (ring < -50)
            result[leaves] = 2000
            gone |= leaves
        ring = np.where(gone, ring, _shift(ring))
    return np.where(gone, result, ring)


# A loop that is open at its end.
_LEAVE_OR_REPEAT = """if (own > 45) {
        y[thread_position_in_grid.x] = 1000;
        return;
      }
      int j = 0;
      do {
        if (++j > 6) {
          y[thread_position_in_grid.x] = 2000;
          return;
        }"""


@_ring(
    f"""
    int own = ring[t];
    for (int k = 0; k < steps[0]; ++k) {{
      {_LEAVE_OR_REPEAT}
        {_STEP}
      }} while (steps[0] % 4 == 0);
    }}
    """,
    "barriers.in_do barriers.nested_loop barriers.after_early_return",
)
def barrier_in_a_loop_that_counts_its_turns_to_return(ring, steps):
    gone = ring > 45
    for _ in range(steps[0]):
        ring = np.where(gone, ring, _shift(ring))
    return np.where(gone, 1000, ring)


@_ring(
    f"""
    int own = ring[t], sum = 0;
    for (int k = 0; k < steps[0]; ++k) {{
      {_LEAVE_OR_REPEAT}
        sum += steps[2];
        {_STEP}
      }} while (steps[0] % 4 == 0);
    }}
    for (int k = 0; k < min(sum, 4); ++k) {{
      if ((sum ^ k) % 3 == 0) {{
        {_STEP}
      }}
    }}
    """,
    "barriers.in_do barriers.nested_loop barriers.after_early_return",
)
def barriers_behind_a_loop_whose_turns_lanes_have_counted(ring, steps):
    gone = ring > 45
    total = steps[0] * steps[2]
    for _ in range(steps[0] + sum((total ^ k) % 3 == 0 for k in range(min(total, 4)))):
        ring = np.where(gone, ring, _shift(ring))
    return np.where(gone, 1000, ring)


@_ring(
    f"""
    int own = ring[t];
    for (int j = 0; j < steps[1]; ++j) {{
      if (own == 10 * j) {{
        y[thread_position_in_grid.x] = 1000 + simd_sum(1);
        return;
      }}
    }}
    {_STEP}
    """,
    "barriers.after_early_return",
)
def barrier_behind_a_loop_whose_returns_exchange(ring, steps):
    result = _shift(ring)
    for j in range(steps[1]):
        for first, last in ((0, 32), (32, _N)):
            left = ring[:, first:last] == 10 * j
            result[:, first:last] = np.where(left, 1000 + left.sum(axis=1, keepdims=True), result[:, first:last])
    return result


# Parts of what simdgroup 0 reads as a row are its own, others a number of each simdgroup.
for _threads in (64, 160, 256, 288):

    @body(
        """
        threadgroup int sums[32];
        uint lane = thread_index_in_simdgroup;
        int own = x[thread_position_in_grid.x];
        if (simdgroup_index_in_threadgroup == 0) sums[lane] = 100 * own;
        int sum = simd_sum(own);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane == 0) sums[simdgroup_index_in_threadgroup] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[thread_position_in_grid.x] = sums[lane] + simd_max(sums[(lane + 3) & 31]);
        """,
        name=f"numbers_of_{_threads // 32}_simdgroups_in_a_row",
        inputs=lambda rng, n=_threads: {"x": rng.integers(-99, 99, 3 * n, np.int32)},
        outputs={"y": ((3 * _threads,), "int32")},
        grid=(3 * _threads, 1, 1),
        threadgroup=(_threads, 1, 1),
        constructs="barriers.several_in_a_row simdgroup.sum simdgroup.max",
    )
    def numbers_of_simdgroups_in_a_row(x):
        groups = x.reshape(3, -1, 32)
        sums = 100 * groups[:, 0, :]
        sums[:, : groups.shape[1]] = groups.sum(axis=2)
        result = sums + sums.max(axis=1, keepdims=True)
        return np.repeat(result[:, None, :], groups.shape[1], axis=1).reshape(-1).astype(np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    float f = x[i], g = 0.5f;
    if (simd_all(u[1] < 61)) {
      if ((simd_sum(int(f)) & 1) != 0) {
        y[i] = 1000 + f;
        return;
      }
      g += h[i & 255];
    }
    y[i] = g;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    """,
    inputs=lambda rng: {
        "x": rng.normal(0, 9, 640).astype(np.float32),
        "h": rng.integers(-9, 9, 256).astype(np.float16),
        "u": np.array([1, 2], np.int32),
    },
    outputs={"y": ((640,), "float32")},
    grid=(640, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="barriers.after_early_return simdgroup.sum simdgroup.all",
)
def barrier_behind_returns_of_simdgroups_by_their_sums(x, h, u):
    sums = x.astype(np.int32).reshape(-1, 32).sum(axis=1).repeat(32)
    rest = np.float32(0.5) + h[np.arange(640) & 255].astype(np.float32)
    return np.where(sums & 1, np.float32(1000) + x, rest).astype(np.float32)


# What simdgroups have computed in a loop that they leave in different iterations, by a condition that is the same for
# all: some go on with the loop before they come to it.
@body(
    """
    int group = int(simdgroup_index_in_threadgroup);
    int turn = 0, result = 0;
    while (true) {
      ++turn;
      result = 7 * turn + group;
      if ((group + turn) % 3 == 0) continue;
      if (turn > x[0]) break;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[thread_position_in_grid.x] = result;
    """,
    inputs=lambda rng: {"x": np.array([5], np.int32)},
    outputs={"y": ((512,), "int32")},
    grid=(512, 1, 1),
    threadgroup=(512, 1, 1),
    constructs="barriers.with_continue",
)
def barrier_behind_a_loop_that_simdgroups_go_on_with(x):
    group = np.arange(512) // 32
    turn = x[0] + 1 + ((group + x[0] + 1) % 3 == 0)
    return (7 * turn + group).astype(np.int32)


# ---- What those that leave write before, their neighbours read behind the next barrier


def _zeros_at_some(rng):
    return np.where(np.isin(np.arange(256) % 128, [6, 9, 23, 30, 32]), 0, rng.integers(2, 8, 256)).astype(np.int32)


_BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
_WRITE_AND_LEAVE = "part[4 * t % 128] += 300; y[i] = 7; return;"
_MEET_WRITE_AND_LEAVE = "part[4 * t % 128] += simd_max(300 - x[i]); y[i] = 7; return;"
_EITHER = "x[i] > 9 || (x[i] < 3 && x[i + 1 - x[i]] < 9 && x[i] == 0)"
for _name, _way in {
    "if": f"if (x[i] == 0) {{ {_WRITE_AND_LEAVE} }}",
    "switch": f"switch (x[i] & 7) {{ case 0: {{ {_WRITE_AND_LEAVE} }} }}",
    "else": f"if (x[i] > 0) {{ y[i] = 1; }} else {{ {_WRITE_AND_LEAVE} }}",
    "loop": f"for (int k = 0; k < 2; ++k) {{ if (x[i] == 0) {{ {_WRITE_AND_LEAVE} }} {_BARRIER} }}",
    "loop_at_its_end": """if (x[i] == 0) {
          for (int k = 0; k < 3 + int(t % 2); ++k) part[4 * t % 128] += k < 3 ? 100 : 0;
          y[i] = 7;
          return;
        }""",
    "both": f"if (t < 40 && n[1] == 2) {{ if (x[i] == 0) {{ {_WRITE_AND_LEAVE} }} }}",
    "one_of_two": f"if (x[i] == 0) {{ if (n[1] == 2) {{ {_WRITE_AND_LEAVE} }} part[127] = n[0]; }}",
    "a_flag": f"""bool leaves = false;
        if (x[i] == 0 && t < 10) {{ y[i] = 3; leaves = true; }} else if (x[i] == 0) {{ y[i] = 4; leaves = true; }}
        if (leaves) {{ {_WRITE_AND_LEAVE} }}""",
    "turns": f"for (int k = 0; k < 2; ++k) {{ if (x[i] + t % 2 == k) {{ {_WRITE_AND_LEAVE} }} {_BARRIER} }}",
    "either": f"if ({_EITHER}) {{ {_WRITE_AND_LEAVE} }}",
    "either_in_a_loop": f"""for (int k = 0; k < 2; ++k) {{
          if ({_EITHER}) {{ {_WRITE_AND_LEAVE} }}
          {_BARRIER}
        }}""",
    # By conditions that are the same for all that come to them.
    "either_and_all": f"""if ({_EITHER}) {{
          if (n[1] == 2) {{ {_WRITE_AND_LEAVE} }}
        }}""",
    "a_flag_and_all": f"""bool first = x[i] == 0 && t < 10, second = x[i] == 0;
        if (first) y[i] = 3;
        if (!first && second) y[i] = 4;
        if (first || second) {{ if (n[1] == 2) {{ {_WRITE_AND_LEAVE} }} }}""",
    "all_that_go_round": f"""int k = 0;
        do {{
          if (n[k] == 2) {{ {_WRITE_AND_LEAVE} }}
          ++k;
        }} while (k < 2 - min(x[i], 1));""",
    "all_before_a_break": f"""for (int k = 0; k < n[1]; ++k) {{
          if (x[i] == k) {{
            y[i] = k;
            if (n[1] == 2) {{ {_WRITE_AND_LEAVE} }}
            break;
          }}
        }}""",
    # In what several ways lead to they exchange values.
    "either_and_meet": f"if ({_EITHER}) {{ {_MEET_WRITE_AND_LEAVE} }}",
    "a_flag_and_meet": f"""bool leaves = false;
        if (x[i] == 0 && t < 10) {{ y[i] = 3; leaves = true; }} else if (x[i] == 0) {{ y[i] = 4; leaves = true; }}
        if (leaves) {{ {_MEET_WRITE_AND_LEAVE} }}""",
    "either_and_may_meet": f"""if ({_EITHER}) {{
          if (n[1] == 2) {{ {_WRITE_AND_LEAVE} }}
          y[i] = simd_max(x[i]);
          return;
        }}
        {_BARRIER}
        if (x[i] == 9) {{ {_WRITE_AND_LEAVE} }}""",
    "waiting_before": f"if (x[i] == 0) {{ simdgroup_barrier(mem_flags::mem_threadgroup); {_WRITE_AND_LEAVE} }}",
    "waiting_behind": """if (x[i] == 0) {
          part[4 * t % 128] += 300;
          simdgroup_barrier(mem_flags::mem_threadgroup);
          y[i] = 7;
          return;
        }""",
    "waiting_in_a_loop": """if (x[i] == 0) {
          for (int k = 0; k < n[1]; ++k) {
            simdgroup_barrier(mem_flags::mem_threadgroup);
            part[4 * t % 128] += 150;
          }
          y[i] = 7;
          return;
        }""",
    # What waits last stands first.
    "an_empty_side": f"if (x[i] > 0) {{}} else {{ {_MEET_WRITE_AND_LEAVE} }}",
    "a_break_first": f"""do {{
          if (x[i] > 0) break;
          {_MEET_WRITE_AND_LEAVE}
        }} while (false);""",
    "a_default_first": f"""switch (x[i]) {{
          default: break;
          case 0: {{ {_MEET_WRITE_AND_LEAVE} }}
        }}""",
    "meeting_in_a_loop": f"for (int k = 0; k < n[1]; ++k) {{ if (x[i] == 0) {{ {_MEET_WRITE_AND_LEAVE} }} {_BARRIER} }}",
    "meeting_in_turns": f"for (int k = 0; k < n[1]; ++k) {{ if (x[i] + t % 2 == k) {{ {_MEET_WRITE_AND_LEAVE} }} {_BARRIER} }}",
    "either_and_meet_in_a_loop": f"""for (int k = 0; k < n[1]; ++k) {{
          if ({_EITHER}) {{ {_MEET_WRITE_AND_LEAVE} }}
          {_BARRIER}
        }}""",
    "either_and_meet_behind_a_barrier": f"""for (int k = 0; k < n[1]; ++k) {{
          {_BARRIER}
          if ({_EITHER}) {{ {_MEET_WRITE_AND_LEAVE} }}
        }}""",
    "meeting_behind_a_loop": f"""int k = 0;
        for (; k < 3; ++k) if (x[i + k] == 0) break;
        if (k < 1) {{ {_MEET_WRITE_AND_LEAVE} }}""",
    "many": " ".join(
        f"if (x[i] == 0 && (t == {_t} || (t > {_t} && t < {_t + 3}))) {{ {_WRITE_AND_LEAVE} }}"
        for _t in (5, 9, 22, 29, 32)
    ),
}.items():

    def _written_before(x, n):
        at = np.arange(256)
        part = at.reshape(2, 128).copy() % 128
        leaves = x.reshape(2, 128) == 0
        for group in range(2):
            for t in np.nonzero(leaves[group])[0]:
                part[group, 4 * t % 128] += 300
        return np.where(leaves, 7, part).reshape(256).astype(np.int32)

    body(
        f"""
        threadgroup int part[128];
        uint i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;
        part[t] = t;
        {_BARRIER}
        {_way}
        {_BARRIER}
        y[i] = part[t];
        """,
        name=f"written_before_leaving_by_{_name}",
        # Of those that leave no two write at one place.
        inputs=lambda rng: {
            "x": _zeros_at_some(rng),
            "n": np.array([5, 2], np.int32),
        },
        outputs={"y": ((256,), "int32")},
        grid=(256, 1, 1),
        threadgroup=(128, 1, 1),
        constructs="barriers.after_early_return",
    )(_written_before)


# What those that leave read before, others write behind the barrier.
@body(
    """
    threadgroup int part[128];
    uint i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;
    part[t] = t;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (x[i] > 9 || (x[i] < 3 && x[i + 1 - x[i]] < 9 && x[i] == 0)) {
      y[i] = part[(t + 1) % 128] + simd_max(300 - x[i]);
      return;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    part[t] = -5;
    y[i] = x[i];
    """,
    inputs=lambda rng: {"x": _zeros_at_some(rng)},
    outputs={"y": ((256,), "int32")},
    grid=(256, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="barriers.after_early_return simdgroup.max",
)
def read_before_leaving(x):
    return np.where(x == 0, (np.arange(256) + 1) % 128 + 300, x).astype(np.int32)


# The same, and the value is used where they meet.
@body(
    """
    uint i = thread_position_in_grid.x;
    int v = 0;
    if ((x[i] == 3 && (v = y[i ^ 1] + 1, true)) || x[i] > 12) {
      g[i] = v + simd_max(x[i]);
      return;
    }
    threadgroup_barrier(mem_flags::mem_device);
    y[i] = x[i] + 5;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 16, 256).astype(np.int32)},
    outputs={"y": ((256,), "int32"), "g": ((256,), "int32")},
    init_value=0,
    grid=(256, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="barriers.after_early_return simdgroup.max",
)
def read_before_meeting(x):
    leaves = (x == 3) | (x > 12)
    largest = np.where(leaves, x, 0).reshape(-1, 32).max(axis=1).repeat(32)
    return np.where(leaves, 0, x + 5).astype(np.int32), np.where(leaves, largest + (x == 3), 0).astype(np.int32)


# Those that leave share code with those behind each of two barriers, at which other simdgroups wait.
@body(
    """
    uint i = thread_position_in_grid.x;
    int a = x[i], b = i, c = 1;
    switch ((a < 2 ? 2 + a : int(simdgroup_index_in_threadgroup)) & 3) {
    case 0:
      simdgroup_barrier(mem_flags::mem_device);
    case 2:
      c ^= simd_max(c + 1);
      break;
    case 1:
      for (int k = 0; k < 2 && a > 4; ++k) a = simd_sum(a);
      simdgroup_barrier(mem_flags::mem_device);
    default:
      b += 1;
    }
    y[i] = a + b + c;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 8, 128).astype(np.int32)},
    outputs={"y": ((128,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="barriers.after_early_return simdgroup.max simdgroup.sum",
)
def leaving_by_ways_behind_two_barriers(x):
    a, place = x.copy(), np.arange(128)
    way = np.where(x < 2, 2 + x, place // 32 % 2)
    for _ in range(2):
        for first in range(0, 128, 32):
            own = place[first : first + 32]
            taking = own[(way[own] == 1) & (a[own] > 4)]
            a[taking] = a[taking].sum()
    others = (way == 1) | (way == 3)
    return (a + place + others + np.where(others, 1, 3)).astype(np.int32)


# Simdgroups leave a loop at a barrier one after the other, and write what they have read.
@body(
    """
    threadgroup int part[128];
    uint t = thread_position_in_threadgroup.x, i = thread_position_in_grid.x;
    part[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int sum = 0;
    for (int k = 0; k < 4; ++k) {
      if (int(simdgroup_index_in_threadgroup) == k) { sum = part[t ^ 7]; break; }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (simd_any(x[i] > 90)) part[t] = 9;
    y[i] = sum + part[t];
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 256).astype(np.int32)},
    outputs={"y": ((256,), "int32")},
    grid=(256, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="barriers.after_early_return simdgroup.any",
)
def simdgroups_leaving_a_loop_one_by_one(x):
    some = (x > 90).reshape(-1, 32).any(axis=1).repeat(32)
    return (x[np.arange(256) ^ 7] + np.where(some, 9, x)).astype(np.int32)


# ---- An index that is cut off from a sum, which a wider number has too


@body(
    """
    threadgroup float values[64];
    uint i = thread_position_in_grid.x, thread_index = thread_position_in_threadgroup.x;
    values[thread_index] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const device float* middle = table + 128;
    uint sum = (k[0] & 127) + 5;
    char place = char(sum);
    y[i] = values[63 - thread_index] + (place < 0 ? middle[place] + sum : 1);
    """,
    inputs=lambda rng: {
        "x": rng.integers(0, 9, 128).astype(np.float32),
        "table": rng.integers(0, 9, 256).astype(np.float32),
        "k": np.array([125, 0], np.uint32),
    },
    outputs={"y": ((128,), "float32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="synchronisation.threadgroup_barrier",
)
def table_at_a_place_that_wraps(x, table, k):
    total = (int(k[0]) & 127) + 5
    return x.reshape(2, 64)[:, ::-1].ravel() + np.float32(table[128 + total - 256] + total)
