"""Which threads take part in a call of a simdgroup function (docs/language.md 2.3).

Threads that part at a branch meet again behind it, iterations of a loop are distinct, and a call acts on those that
execute the same dynamic instance of it. The references keep masks, as a machine with 32 lanes in lockstep would:
`here` are the threads that are at this point.
"""

import numpy as np

from bodies import body, model
from bodies.model import Threads, any_of, reduce, scan

_GRIDS = {
    "whole": ((64, 1, 1), (64, 1, 1)),
    "forty": ((80, 1, 1), (40, 1, 1)),
    "thirty_three": ((50, 1, 1), (33, 1, 1)),
    "seven": ((17, 1, 1), (7, 1, 1)),
    "three_dimensions": ((5, 7, 3), (4, 3, 3)),
}


def _lockstep(source, constructs, *, header="", grids=("forty",), outputs=1, low=0, high=9):
    """A body for each of the grids. `source` may use x (an int for each thread), i (its index), lane; `put(k, v)`
    writes v to place k of the thread's results, which begin as -1. The reference is called with an object of these."""

    def register(reference):
        for name in grids:
            grid, group = _GRIDS[name]
            threads = Threads(grid, group)
            count = grid[0] * grid[1] * grid[2]

            def expected(x, threads=threads, count=count):
                lockstep = Lockstep(threads, x, outputs, count)
                reference(lockstep)
                return lockstep.out

            body(
                f"""
    uint3 at = thread_position_in_grid;
    uint i = at.x + threads_per_grid.x * (at.y + threads_per_grid.y * at.z);
    int lane = int(thread_index_in_simdgroup);
    int v = x[i];
    device int* results = out + {outputs} * i;
    {source}
    """,
                name=reference.__name__ + ("" if len(grids) == 1 else f"_{name}"),
                header="#define put(PLACE, VALUE) (results[PLACE] = (VALUE))\n" + header,
                inputs=lambda rng, count=count: {"x": rng.integers(low, high, count, np.int32)},
                outputs={"out": ((count, outputs), "int32")},
                grid=grid,
                threadgroup=group,
                init_value=-1,
                constructs=constructs
                + (" simdgroup.partial" if name != "whole" else "")
                + (" reconvergence.three_dimensions launch.edge_threadgroups" if name == "three_dimensions" else ""),
            )(expected)
        return reference

    return register


class Lockstep:
    """The threads of a launch, what they hold, and what they write."""

    def __init__(self, threads, x, outputs, count):
        self.threads = threads
        self.x = x
        self.v = threads.read(x).astype(np.int32)
        self.all = threads.live
        self.lane = threads.lane.astype(np.int32)
        self.out = np.full((count, outputs), -1, np.int32)

    def put(self, place, values, here):
        self.threads.write(np.asarray(values).astype(np.int32), here, self.out[:, place])

    def full(self, value=0):
        return np.full(self.all.shape, value, np.int32)


_EVERY = tuple(_GRIDS)

# ---- Branches


@_lockstep(
    """
    if (lane < 16) put(0, simd_sum(v));
    put(1, simd_sum(v));
    """,
    "reconvergence.under_a_condition simdgroup.sum",
    grids=_EVERY,
    outputs=2,
)
def call_under_a_condition(s):
    low = s.all & (s.lane < 16)
    s.put(0, reduce("sum", s.v, low), low)
    s.put(1, reduce("sum", s.v, s.all), s.all)


@_lockstep(
    """
    int result;
    if (v % 3 == 0)
      result = simd_sum(1);
    else if (v % 3 == 1) {
      result = 100 * simd_sum(1);
      if (v > 4) result += 10000 * simd_sum(1);
    } else
      result = -simd_sum(1);
    put(0, result);
    put(1, simd_max(result));
    """,
    "reconvergence.in_both_branches simdgroup.sum simdgroup.max",
    grids=_EVERY,
    outputs=2,
)
def calls_in_both_branches(s):
    ones = s.full(1)
    first, second = s.all & (s.v % 3 == 0), s.all & (s.v % 3 == 1)
    third, large = s.all & (s.v % 3 == 2), s.all & (s.v % 3 == 1) & (s.v > 4)
    result = np.where(first, reduce("sum", ones, first), 0)
    result = np.where(second, 100 * reduce("sum", ones, second), result)
    result = np.where(large, result + 10000 * reduce("sum", ones, large), result)
    result = np.where(third, -reduce("sum", ones, third), result).astype(np.int32)
    s.put(0, result, s.all)
    s.put(1, reduce("max", result, s.all), s.all)


@_lockstep(
    """
    int result = v > 4 ? simd_sum(v) : simd_min(v) - 1000;
    put(0, result);
    bool both = v > 2 && simd_sum(1) > 12;
    put(1, both);
    bool either = v > 5 || simd_sum(1) > 12;
    put(2, either);
    int mixed = (v % 2 == 0 && (v > 5 || simd_any(v == 2))) ? simd_sum(1) : -simd_sum(1);
    put(3, mixed);
    put(4, simd_sum(1));
    """,
    "reconvergence.in_operators simdgroup.sum simdgroup.min simdgroup.any",
    grids=_EVERY,
    outputs=5,
)
def calls_in_operators(s):
    ones = s.full(1)
    yes, no = s.all & (s.v > 4), s.all & ~(s.v > 4)
    s.put(0, reduce("sum", s.v, yes), yes)
    s.put(0, reduce("min", s.v, no) - 1000, no)
    left = s.all & (s.v > 2)
    s.put(1, left & (reduce("sum", ones, left) > 12), s.all)
    left = s.all & ~(s.v > 5)
    s.put(2, ~left | (reduce("sum", ones, left) > 12), s.all)
    asked = s.all & (s.v % 2 == 0) & ~(s.v > 5)
    condition = s.all & (s.v % 2 == 0) & ((s.v > 5) | any_of(s.v == 2, asked))
    s.put(3, reduce("sum", ones, condition), condition)
    s.put(3, -reduce("sum", ones, s.all & ~condition), s.all & ~condition)
    s.put(4, reduce("sum", ones, s.all), s.all)


@_lockstep(
    """
    if (v == 0) return;
    put(0, simd_sum(v));
    if (v > 5) {
      put(1, simd_sum(1));
      return;
    }
    put(1, -simd_sum(1));
    """,
    "reconvergence.after_early_return structure.return_before_simd",
    grids=_EVERY,
    outputs=2,
)
def call_after_early_return(s):
    here = s.all & (s.v != 0)
    s.put(0, reduce("sum", s.v, here), here)
    large, rest = here & (s.v > 5), here & ~(s.v > 5)
    s.put(1, reduce("sum", s.full(1), large), large)
    s.put(1, -reduce("sum", s.full(1), rest), rest)


@_lockstep(
    """
    switch (v) {
      case 0:
        put(0, simd_sum(1));
        break;
      case 1:
        put(0, simd_sum(10));
        // falls through
      case 2:
        put(1, simd_sum(100));
        if (lane % 2) break;
        // half of them fall through
      case 3:
      case 4:
        put(2, simd_sum(1000));
        break;
      default:
        put(0, -simd_sum(1));
        break;
      case 7:
        put(1, -simd_sum(1));
        return;
    }
    put(3, simd_sum(1));
    """,
    "reconvergence.in_switch structure.switch",
    grids=_EVERY,
    outputs=4,
)
def calls_in_switch_cases(s):
    def count(here):
        return reduce("sum", s.full(1), here)

    zero = s.all & (s.v == 0)
    s.put(0, count(zero), zero)
    one = s.all & (s.v == 1)
    s.put(0, 10 * count(one), one)
    two = s.all & ((s.v == 1) | (s.v == 2))
    s.put(1, 100 * count(two), two)
    three = (two & (s.lane % 2 == 0)) | (s.all & ((s.v == 3) | (s.v == 4)))
    s.put(2, 1000 * count(three), three)
    other = s.all & (s.v > 4) & (s.v != 7)
    s.put(0, -count(other), other)
    seven = s.all & (s.v == 7)
    s.put(1, -count(seven), seven)
    s.put(3, count(s.all & ~seven), s.all & ~seven)


# ---- Loops


@_lockstep(
    """
    int total = 0;
    for (int j = 0; j < v; ++j) total += simd_sum(1) * (j + 1);
    put(0, total);
    put(1, simd_sum(1));
    """,
    "reconvergence.divergent_trip_count",
    grids=_EVERY,
    outputs=2,
)
def divergent_trip_counts(s):
    total = s.full()
    for j in range(9):
        here = s.all & (j < s.v)
        total = np.where(here, total + reduce("sum", s.full(1), here) * (j + 1), total)
    s.put(0, total, s.all)
    s.put(1, reduce("sum", s.full(1), s.all), s.all)


@_lockstep(
    """
    int total = 0;
    for (int j = 0; j < 6; ++j) {
      if ((v + j) % 3 == 0) continue;
      total = total * 10 + simd_sum(1) % 10;
      if (v == j) break;
      total += simd_sum(j);
    }
    put(0, total);
    put(1, simd_sum(1));
    """,
    "reconvergence.continue_before_call reconvergence.break_before_call",
    grids=_EVERY,
    outputs=2,
)
def continue_and_break_before_calls(s):
    total, loop = s.full(), s.all
    for j in range(6):
        here = loop & ((s.v + j) % 3 != 0)
        total = np.where(here, total * 10 + reduce("sum", s.full(1), here) % 10, total)
        loop = loop & ~(here & (s.v == j))
        here = here & loop
        total = np.where(here, total + reduce("sum", s.full(j), here), total)
    s.put(0, total, s.all)
    s.put(1, reduce("sum", s.full(1), s.all), s.all)


@_lockstep(
    """
    int result = 0;
    for (int j = 0; j < 9; ++j) {
      if (v == j) {
        // Of this iteration, although the loop ends here for those who call.
        result = simd_sum(1) + 100 * j;
        break;
      }
    }
    put(0, result);
    int again = 0;
    while (true) {
      if (again == v) {
        put(1, simd_sum(1) + 100 * again);
        put(2, simd_max(lane));
        break;
      }
      ++again;
    }
    put(3, simd_sum(1));
    """,
    "reconvergence.call_before_break",
    grids=_EVERY,
    outputs=4,
)
def call_in_the_block_that_breaks(s):
    for j in range(9):
        here = s.all & (s.v == j)
        s.put(0, reduce("sum", s.full(1), here) + 100 * j, here)
        s.put(1, reduce("sum", s.full(1), here) + 100 * j, here)
        s.put(2, reduce("max", s.lane, here), here)
    s.put(3, reduce("sum", s.full(1), s.all), s.all)


@_lockstep(
    """
    for (int j = 0; j < 9; ++j) {
      if (v == j) {
        put(0, simd_sum(1) + 100 * j);
        return;
      }
    }
    """,
    "reconvergence.call_before_return",
    grids=("whole", "seven"),
)
def call_in_the_block_that_returns(s):
    for j in range(9):
        here = s.all & (s.v == j)
        s.put(0, reduce("sum", s.full(1), here) + 100 * j, here)


@_lockstep(
    """
    // That a call's block returns is known only where the number is.
    float half_of_one = 0.5f;
    int left = v;
    for (int j = 0; j < 9; ++j) {
      switch (left & 7) {
        case 0:
          put(0, simd_sum(1) + 100 * j);
          if (isfinite(half_of_one)) return;
        default: left -= 1;
      }
    }
    """,
    "reconvergence.call_before_return reconvergence.in_switch",
    grids=("whole", "seven"),
)
def call_in_a_block_that_is_found_to_return(s):
    for j in range(9):
        here = s.all & (s.v % 8 == j)
        s.put(0, reduce("sum", s.full(1), here) + 100 * j, here)


@_lockstep(
    """
    if (v & 1) {
      if (v > 4) {
        put(0, -5);
        return;
      }
      put(1, 3 * v);
    }
    put(0, simd_sum(v));
    """,
    "reconvergence.under_a_condition simdgroup.sum",
    grids=_EVERY,
    outputs=2,
)
def call_behind_a_return_within_a_branch(s):
    odd = s.all & (s.v % 2 == 1)
    gone = odd & (s.v > 4)
    s.put(0, s.full(-5), gone)
    s.put(1, 3 * s.v, odd & ~gone)
    s.put(0, reduce("sum", s.v, s.all & ~gone), s.all & ~gone)


@_lockstep(
    """
    for (int k = 0; k < (v & 3); ++k) {
      put(1, k);
      if (v + k > 5) {
        put(0, -5);
        return;
      }
    }
    put(0, simd_sum(v));
    """,
    "reconvergence.divergent_trip_count simdgroup.sum",
    grids=_EVERY,
    outputs=2,
)
def call_behind_a_loop_with_returns(s):
    here, gone = s.all, s.full(False).astype(bool)
    for k in range(3):
        here = here & (k < (s.v & 3))
        s.put(1, s.full(k), here)
        leaves = here & (s.v + k > 5)
        s.put(0, s.full(-5), leaves)
        gone, here = gone | leaves, here & ~leaves
    s.put(0, reduce("sum", s.v, s.all & ~gone), s.all & ~gone)


@_lockstep(
    """
    int j = 0;
    for (;; ++j) {
      if (v == j) {
        put(0, simd_sum(1));
        break;
      }
    }
    put(1, j);
    """,
    "reconvergence.call_before_break",
    grids=_EVERY,
    outputs=2,
)
def call_in_the_block_that_ends_an_endless_loop(s):
    for j in range(9):
        here = s.all & (s.v == j)
        s.put(0, reduce("sum", s.full(1), here), here)
    s.put(1, s.v, s.all)


@_lockstep(
    """
    int most = simd_max(v);
    for (int j = 0; j <= most; ++j) {
      int numbers[4] = {1, 2, 3, 4};
      for (int k = 0; k < 4; ++k) numbers[k] += k;
      if (v == j) {
        for (int m = 0; m <= most; ++m) {
          int count = 0;
          for (int k = 0; k < 3; ++k) count += 2;
          if ((lane & 7) == m) {
            put(0, simd_sum(1));
            if (count == 6) break;
            put(0, 9);
          }
        }
        if (numbers[2] == 5) break;
        put(1, 7);
      }
    }
    """,
    "reconvergence.call_before_break reconvergence.nested_loops",
    grids=_EVERY,
    outputs=2,
)
def call_in_a_loop_that_lies_on_the_way_out_of_another(s):
    most = reduce("max", s.v, s.all)
    for j in range(9):
        for m in range(9):
            here = s.all & (s.v == j) & ((s.lane & 7) == m) & (m <= most)
            s.put(0, reduce("sum", s.full(1), here), here)


@_lockstep(
    """
    int total = 0;
    for (int j = 0;; ++j) {
      if (((v >> 1) & 3) == (j & 3)) {
        total += simd_prefix_inclusive_sum(1);
        if (j < 4) {
          total += simd_prefix_inclusive_sum(1);
          continue;
        }
        if (v < 100) break;
        total += 1000;
      }
      if (j > 11) break;
    }
    put(0, total);
    """,
    "reconvergence.call_before_break simdgroup.prefix_inclusive_sum",
    grids=_EVERY,
)
def scans_of_which_one_is_in_the_branch_of_another(s):
    total = s.full()
    for j in range(8):
        here = s.all & ((s.v >> 1 & 3) == (j & 3))
        total = np.where(here, total + scan("sum", s.full(1), here, False) * (2 if j < 4 else 1), total)
    s.put(0, total, s.all)


@_lockstep(
    """
    auto halves = make_filled_simdgroup_matrix<float, 8, 8>(0.5f);
    simdgroup_float8x8 product;
    simdgroup_multiply(product, halves, halves);
    put(1, int(product.thread_elements()[0]));
    int most = simd_max(v);
    for (int j = 0; j <= most; ++j) {
      int count = 0;
      for (int k = 0; k < 3; ++k) count += 2;
      if (v == j) {
        put(0, simd_sum(1));
        if (count == 6) break;
        put(1, 9);
      }
    }
    """,
    "reconvergence.call_before_break",
    grids=("whole",),
    outputs=2,
)
def call_in_a_block_that_breaks_behind_a_matrix_product(s):
    for j in range(9):
        here = s.all & (s.v == j)
        s.put(0, reduce("sum", s.full(1), here), here)
    s.put(1, s.full(2), s.all)


@_lockstep(
    """
    // Here it is known only where the loop is unrolled.
    for (int j = 0; j < 9; ++j) {
      int count = 0;
      for (int k = 0; k < 3; ++k) count += 2;
      if (v == j) {
        put(0, simd_sum(1) + 100 * j);
        if (count == 6) return;
        put(0, 7);
      }
    }
    """,
    "reconvergence.call_before_return",
    grids=_EVERY,
)
def call_in_a_block_that_returns_by_what_a_loop_counts(s):
    for j in range(9):
        here = s.all & (s.v == j)
        s.put(0, reduce("sum", s.full(1), here) + 100 * j, here)


@_lockstep(
    """
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k)
        if (v == 2 * j + k) {
          int turn = 0;
          do put(turn, simd_sum(1)); while (++turn <= (lane & 3));
          put(4, simd_sum(lane));
          return;
        }
    put(5, simd_sum(1));
    """,
    "reconvergence.call_before_return",
    grids=_EVERY,
    outputs=6,
)
def loop_that_ends_the_two_around_it(s):
    others = s.all
    for j in range(6):
        here = s.all & (s.v == j)
        for turn in range(4):
            still = here & ((s.lane & 3) >= turn)
            s.put(turn, reduce("sum", s.full(1), still), still)
        s.put(4, reduce("sum", s.lane, here), here)
        others = others & ~here
    s.put(5, reduce("sum", s.full(1), others), others)


@_lockstep(
    """
    int total = 0, most = simd_max(v);
    for (int j = 0; j <= most; ++j) {
      int numbers[4] = {1, 2, 3, 4};
      for (int k = 0; k < 4; ++k) numbers[k] += k;
      if (v == j) {
        total += simd_sum(1) + 100 * j;
        if (numbers[2] == 5) break;
        total += 7;
      }
      if (v == 2 * j + 1) {
        put(1, simd_sum(j + lane));
        if (numbers[1] == 3) return;
        put(1, 8);
      }
    }
    put(0, total);
    """,
    "reconvergence.call_before_break reconvergence.call_before_return",
    grids=_EVERY,
    outputs=2,
)
def calls_in_blocks_that_leave_by_what_an_array_holds(s):
    here, total = s.all, s.full()
    returned = s.full(False).astype(bool)
    for j in range(9):
        breaks = here & (s.v == j)
        total = np.where(breaks, reduce("sum", s.full(1), breaks) + 100 * j, total)
        here = here & ~breaks
        returns = here & (s.v == 2 * j + 1)
        s.put(1, reduce("sum", j + s.lane, returns), returns)
        here = here & ~returns
        returned |= returns
    s.put(0, total, s.all & ~returned)


@_lockstep(
    """
    int total = 0;
    for (int j = 0; j < 1 + v % 3; ++j) {
      for (int k = 0; k < 1 + (v + j) % 4; ++k) {
        total += simd_sum(1) * (1 + j * 4 + k);
        if ((v + k) % 5 == 4) break;
        for (int m = v; m < 9; m += 3) total += simd_sum(1) << 16;
      }
      total += simd_sum(1) << 24;
    }
    put(0, total);
    put(1, simd_sum(1));
    """,
    "reconvergence.nested_loops reconvergence.divergent_trip_count",
    grids=_EVERY,
    outputs=2,
)
def nested_loops(s):
    total = s.full()

    def add(here, weight):
        nonlocal total
        total = np.where(here, total + reduce("sum", s.full(1), here) * weight, total)

    for j in range(3):
        outer = s.all & (j < 1 + s.v % 3)
        inner = outer
        for k in range(4):
            inner = inner & (k < 1 + (s.v + j) % 4)
            add(inner, 1 + j * 4 + k)
            inner = inner & ((s.v + k) % 5 != 4)
            m = s.v.copy()
            here = inner & (m < 9)
            while here.any():
                add(here, 1 << 16)
                m = m + 3
                here = here & (m < 9)
        add(outer, 1 << 24)
    s.put(0, total, s.all)
    s.put(1, reduce("sum", s.full(1), s.all), s.all)


# ---- Conditions of loops


@_lockstep(
    """
    int left = v, rounds = 0;
    while (simd_any(left > 0)) {
      --left;
      ++rounds;
    }
    put(0, rounds);
    put(1, left);
    for (left = v; simd_any(left > 3); left -= 2) rounds += 100;
    put(2, rounds);
    left = v;
    do {
      left -= 3;
      rounds += 10000;
    } while (simd_any(left > 0));
    put(3, rounds);
    """,
    "reconvergence.call_in_loop_condition simdgroup.any structure.while structure.do",
    grids=_EVERY,
    outputs=4,
)
def calls_in_loop_conditions(s):
    def largest():
        return reduce("max", s.v, s.all)

    s.put(0, np.maximum(largest(), 0), s.all)
    s.put(1, s.v - np.maximum(largest(), 0), s.all)
    second = largest() + 100 * np.maximum(0, (largest() - 3 + 1) // 2)
    s.put(2, second, s.all)
    s.put(3, second + 10000 * np.maximum(1, (largest() + 2) // 3), s.all)


@_lockstep(
    """
    // Each takes part in the vote only while it is in the loop.
    int left = v, rounds = 0;
    while (left > 0 && simd_sum(left) > 20) {
      left -= 1;
      rounds += 1;
      if (left == 2) {
        rounds += 100;
        continue;
      }
      rounds += simd_any(left == 5) ? 1000 : 0;
    }
    put(0, rounds);
    for (int j = 0; simd_sum(1) > 3 && j < v; j += simd_any(j == 2) ? 2 : 1) put(1, simd_sum(1));
    put(2, simd_sum(1));
    """,
    "reconvergence.call_in_loop_condition reconvergence.call_in_increment reconvergence.in_operators",
    grids=_EVERY,
    outputs=3,
)
def calls_in_divergent_loop_conditions(s):
    left, rounds, loop = s.v.copy(), s.full(), s.all
    while True:
        loop = loop & (left > 0)
        loop = loop & (reduce("sum", left, loop) > 20)
        if not loop.any():
            break
        left = np.where(loop, left - 1, left).astype(np.int32)
        rounds = np.where(loop, rounds + 1, rounds)
        out = loop & (left == 2)
        rounds = np.where(out, rounds + 100, rounds)
        here = loop & ~out
        rounds = np.where(here & any_of(left == 5, here), rounds + 1000, rounds)
    s.put(0, rounds, s.all)
    j, loop = s.full(), s.all
    while True:
        loop = loop & (reduce("sum", s.full(1), loop) > 3)
        loop = loop & (j < s.v)
        if not loop.any():
            break
        s.put(1, reduce("sum", s.full(1), loop), loop)
        j = np.where(loop, j + np.where(any_of(j == 2, loop), 2, 1), j)
    s.put(2, reduce("sum", s.full(1), s.all), s.all)


@_lockstep(
    """
    int done = 0, round = 0;
    while (!done) {
      int first = simd_broadcast_first(v);
      if (first == v) {
        put(0, round);
        put(1, simd_sum(1));
        done = 1;
      }
      ++round;
    }
    put(2, simd_max(round));
    """,
    "reconvergence.waterfall simdgroup.broadcast_first structure.while",
    grids=_EVERY,
    outputs=3,
)
def waterfall_over_distinct_values(s):
    """Each round serves the value of the first thread that is left."""
    left, rounds, round_number = s.all, s.full(), 0
    while left.any():
        first = model.shuffle(s.v, model.first_active(left))
        served = left & (s.v == first)
        s.put(0, s.full(round_number), served)
        s.put(1, reduce("sum", s.full(1), served), served)
        round_number += 1
        rounds = np.where(served, round_number, rounds)
        left = left & ~served
    s.put(2, reduce("max", rounds.astype(np.int32), s.all), s.all)


# ---- Functions, templates, macros


@_lockstep(
    """
    put(0, count());
    if (v > 3) put(1, count() + 100 * twice(v));
    int found = find(v);
    // All that are in this thread's simdgroup meet here again, wherever they left the function's loop.
    put(2, simd_sum(1) + 1000 * found);
    put(3, simd_sum(find(v + 1)));
    """,
    "reconvergence.in_helper_called_twice reconvergence.return_in_helper_loop structure.helper_function",
    header="""
int count() { return simd_sum(1); }
int twice(int v) {
  int a = v % 2 ? count() : 0;
  return a + count();
}
int find(int v) {
  for (int j = 0; j < 6; ++j) {
    if (j == v) return j;
  }
  return 77;
}
""",
    grids=_EVERY,
    outputs=4,
)
def calls_in_helpers(s):
    def count(here):
        return reduce("sum", s.full(1), here)

    s.put(0, count(s.all), s.all)
    large = s.all & (s.v > 3)
    odd = large & (s.v % 2 == 1)
    s.put(1, count(large) + 100 * (np.where(odd, count(odd), 0) + count(large)), large)
    found = np.where(s.v < 6, s.v, 77)
    s.put(2, count(s.all) + 1000 * found, s.all)
    next_found = np.where(s.v + 1 < 6, s.v + 1, 77).astype(np.int32)
    s.put(3, reduce("sum", next_found, s.all), s.all)


@_lockstep(
    """
    int found = search(v);
    put(0, found);
    put(1, simd_sum(1));
    auto pick = [&](int limit) {
      for (int j = 0; ; ++j) {
        if (j * j >= v) return j + simd_sum(10);
        if (j == limit) return -simd_sum(1);
      }
    };
    for (int k = 1; k < 3; ++k) put(1 + k, pick(k) + 100 * simd_sum(1));
    """,
    "reconvergence.return_in_helper_loop structure.lambda structure.helper_function",
    header="""
// Returns out of two loops, at different iterations, after calls of its own.
int search(int v) {
  int seen = 0;
  for (int j = 0; j < 3; ++j) {
    for (int k = 0; k < 3; ++k) {
      if (3 * j + k == v) {
        seen += simd_sum(1) * 10;
        return seen + 1000 * (3 * j + k);
      }
      seen += simd_sum(1) > 2;
    }
    if (v == 8 - j) return seen - 500;
  }
  return seen;
}
""",
    grids=_EVERY,
    outputs=4,
)
def returns_out_of_loops_in_helpers(s):
    def count(here):
        return reduce("sum", s.full(1), here)

    seen, result, inside = s.full(), s.full(), s.all
    for j in range(3):
        for k in range(3):
            leaving = inside & (s.v == 3 * j + k)
            result = np.where(leaving, seen + count(leaving) * 10 + 1000 * (3 * j + k), result)
            inside = inside & ~leaving
            seen = np.where(inside, seen + (count(inside) > 2), seen)
        leaving = inside & (s.v == 8 - j)
        result = np.where(leaving, seen - 500, result)
        inside = inside & ~leaving
    result = np.where(inside, seen, result)
    s.put(0, result, s.all)
    s.put(1, count(s.all), s.all)
    for limit in (1, 2):
        inside, picked = s.all, s.full()
        for j in range(limit + 1):
            leaving = inside & (j * j >= s.v)
            picked = np.where(leaving, j + 10 * count(leaving), picked)
            inside = inside & ~leaving
            if j == limit:
                picked = np.where(inside, -count(inside), picked)
        s.put(1 + limit, picked + 100 * count(s.all), s.all)


@_lockstep(
    """
    leave(v, results);
    put(1, simd_sum(1));
    """,
    "reconvergence.return_in_helper_loop reconvergence.nested_loops structure.do structure.while",
    header="""
// The variables of the inner block live until each way out of it.
void leave(int v, device int* results) {
  int outer = v % 4, rounds = 0;
  do {
    int inner = (v + outer) % 3;
    while (simd_sum(inner) > 2 && inner-- > 0) {
      int seen = simd_sum(1);
      rounds += seen;
      if (v == 2 * outer) return;
    }
  } while (outer-- > 1);
  put(0, simd_sum(1) + 1000 * rounds);
}
""",
    grids=_EVERY,
    outputs=2,
)
def return_past_variables_of_loops(s):
    def count(here):
        return reduce("sum", s.full(1), here)

    outer, rounds, inside, ended = s.v % 4, s.full(), s.all, s.all & False
    while inside.any():
        inner, loop, waiting = (s.v + outer) % 3, inside, s.all & False
        while loop.any():
            going = loop & (reduce("sum", inner, loop) > 2)
            waiting = waiting | (loop & ~going) | (going & (inner == 0))
            loop = going & (inner > 0)
            inner = np.where(loop, inner - 1, inner).astype(np.int32)
            rounds = np.where(loop, rounds + count(loop), rounds)
            loop = loop & (s.v != 2 * outer)
        again = waiting & (outer > 1)
        ended = ended | (waiting & ~again)
        outer = np.where(waiting, outer - 1, outer)
        inside = again
    s.put(0, count(ended) + 1000 * rounds, ended)
    s.put(1, count(s.all), s.all)


@_lockstep(
    """
    int total = 0;
    FOR_EACH(j, v) { total += COUNT() * (j + 1); }
    FOR_EACH(j, 3) FOR_EACH(k, v - j) {
      if (k % 2) continue;
      total += COUNT() << 12;
    }
    put(0, total);
    put(1, COUNT());
    """,
    "reconvergence.in_macro_loops structure.define_in_header",
    header="""
#define FOR_EACH(J, COUNT) for (int J = 0; J < (COUNT); ++J)
#define COUNT() simd_sum(1)
""",
    grids=("forty", "three_dimensions"),
    outputs=2,
)
def calls_in_macro_loops(s):
    total = s.full()
    for j in range(9):
        here = s.all & (j < s.v)
        total = np.where(here, total + reduce("sum", s.full(1), here) * (j + 1), total)
    for j in range(3):
        for k in range(0, 9, 2):
            here = s.all & (k < s.v - j)
            total = np.where(here, total + (reduce("sum", s.full(1), here) << 12), total)
    s.put(0, total, s.all)
    s.put(1, reduce("sum", s.full(1), s.all), s.all)


@_lockstep(
    """
    put(0, Halving<8>::run(v));
    put(1, spread<0>(v));
    put(2, simd_sum(1));
    """,
    "reconvergence.in_templates structure.template structure.if_constexpr",
    header="""
// Templates that call one another with a smaller argument each time.
template <int N>
struct Halving {
  static int run(int v) {
    int own = v >= N ? simd_sum(1) : 0;
    return own * N + Halving<N / 2>::run(v);
  }
};
template <>
struct Halving<0> {
  static int run(int) { return 0; }
};
template <int Level>
int spread(int v) {
  if constexpr (Level == 3) {
    return simd_sum(1);
  } else {
    if ((v >> Level) & 1) return spread<Level + 1>(v) + 100;
    return spread<Level + 1>(v) + simd_sum(1000);
  }
}
""",
    grids=("whole", "forty", "seven"),
    outputs=3,
)
def calls_in_templates(s):
    def count(here):
        return reduce("sum", s.full(1), here)

    total = s.full()
    for n in (8, 4, 2, 1):
        here = s.all & (s.v >= n)
        total = np.where(here, total + count(here) * n, total)
    s.put(0, total, s.all)

    def spread(level, here):
        if level == 3:
            return count(here)
        ones, zeros = here & (s.v >> level & 1 == 1), here & (s.v >> level & 1 == 0)
        return np.where(ones, spread(level + 1, ones) + 100, spread(level + 1, zeros) + 1000 * count(zeros))

    s.put(1, spread(0, s.all), s.all)
    s.put(2, count(s.all), s.all)


# ---- Together with barriers


@body(
    """
    threadgroup int totals[3];
    uint t = thread_index_in_threadgroup;
    int v = x[thread_position_in_grid.x], sum = 0;
    for (int j = 0; j < 4; ++j) {
      int part = 0;
      if ((v + j) % 2) {
        part = simd_sum(v);
        if (v == 3) {
          sum += 1000 * simd_sum(1);
          continue_flag = true;
        }
      }
      if (simd_is_first()) totals[simdgroup_index_in_threadgroup] = simd_broadcast_first(part);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      sum += totals[0] + 2 * totals[1] + 3 * totals[2] + part;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    y[thread_position_in_grid.x] = continue_flag ? -sum : sum;
    """.replace("int v = x", "bool continue_flag = false;\n    int v = x"),
    inputs=lambda rng: {"x": rng.integers(0, 5, 70, np.int32)},
    outputs={"y": ((70,), "int32")},
    grid=(70, 1, 1),
    threadgroup=(70, 1, 1),
    constructs="reconvergence.between_barriers barriers.in_loop simdgroup.is_first simdgroup.partial",
)
def calls_between_barriers(x):
    threads = Threads((70, 1, 1), (70, 1, 1))
    v, total, flag = threads.read(x), np.zeros(threads.shape, np.int32), threads.live & False
    ones = np.ones(threads.shape, np.int32)
    for j in range(4):
        odd = threads.live & ((v + j) % 2 == 1)
        part = np.where(odd, reduce("sum", v, odd), 0)
        three = odd & (v == 3)
        total = np.where(three, total + 1000 * reduce("sum", ones, three), total)
        flag = flag | three
        totals = part[0, :, 0]
        total = total + totals @ [1, 2, 3] + part
    return threads.write(np.where(flag, -total, total).astype(np.int32))


@body(
    """
    // Every second simdgroup works alone between two barriers, with loops of its own length.
    threadgroup int counts[4];
    int total = 0;
    if (simdgroup_index_in_threadgroup % 2 == 0) {
      for (int left = x[thread_position_in_grid.x]; simd_any(left > 0); left -= 1) {
        simdgroup_barrier(mem_flags::mem_none);
        total += left > 0 ? simd_sum(1) : 0;
      }
    }
    if (thread_index_in_simdgroup == 0) counts[simdgroup_index_in_threadgroup] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[thread_position_in_grid.x] = total + 1000 * counts[(simdgroup_index_in_threadgroup + 2) % 4];
    """,
    inputs=lambda rng: {"x": rng.integers(0, 30, 128, np.int32)},
    outputs={"y": ((128,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="reconvergence.between_barriers synchronisation.simdgroup_barrier simdgroup.any",
)
def simdgroups_on_their_own(x):
    v = x.reshape(4, 32)
    total = np.zeros((4, 32), np.int32)
    for row in (0, 2):
        for round_number in range(int(v[row].max())):
            here = v[row] > round_number
            total[row] += np.where(here, here.sum(), 0).astype(np.int32)
    first = total[:, 0]
    return (total + 1000 * np.roll(first, -2)[:, None]).reshape(128)


# ---- What a branch says of a lane holds for those that took it only


@_lockstep(
    """
    if (!(lane & 1)) put(0, quad_prefix_exclusive_sum(v));
    if (lane & 2) {
      put(1, quad_prefix_inclusive_product(v));
      put(2, quad_prefix_exclusive_product(v));
    }
    if ((lane & 3) == 3) put(3, quad_prefix_exclusive_sum(v));
    if (lane > 5) put(4, simd_prefix_inclusive_sum(v));
    if (lane & 8) put(5, simd_prefix_exclusive_product(v & 1));
    """,
    "reconvergence.under_a_condition simdgroup.quad_prefix_exclusive_sum simdgroup.quad_prefix_inclusive_product "
    "simdgroup.quad_prefix_exclusive_product simdgroup.prefix_inclusive_sum simdgroup.prefix_exclusive_product",
    grids=_EVERY,
    outputs=6,
)
def scans_under_conditions_on_the_lane(s):
    even, second, last = s.all & (s.lane & 1 == 0), s.all & (s.lane & 2 != 0), s.all & (s.lane & 3 == 3)
    high, eight = s.all & (s.lane > 5), s.all & (s.lane & 8 != 0)
    s.put(0, scan("sum", s.v, even, True, 4), even)
    s.put(1, scan("product", s.v, second, False, 4), second)
    s.put(2, scan("product", s.v, second, True, 4), second)
    s.put(3, scan("sum", s.v, last, True, 4), last)
    s.put(4, scan("sum", s.v, high, False), high)
    s.put(5, scan("product", s.v & 1, eight, True), eight)


@_lockstep(
    """
    if (lane & 8) {
      int most = 50 + simd_max(v);
      put(0, most / lane);
      put(1, most % lane);
      put(2, int(uint(most) / uint(lane)));
    }
    if (lane > 3) put(3, (v > 4) / (lane - 3));
    """,
    "reconvergence.under_a_condition simdgroup.max",
    grids=_EVERY,
    outputs=4,
)
def divisions_by_the_lane(s):
    here, late = s.all & (s.lane & 8 != 0), s.all & (s.lane > 3)
    most = 50 + reduce("max", s.v, here)
    divisor = np.maximum(s.lane, 1)
    s.put(0, most // divisor, here)
    s.put(1, most % divisor, here)
    s.put(2, most // divisor, here)
    s.put(3, (s.v > 4) // np.maximum(s.lane - 3, 1), late)


@_lockstep(
    """
    int a = v, turn = 0;
    while (turn < 9) {
      if (lane & 1) {
        for (int k = 0; k < 3; ++k) {
          if (x[k] > 6) put(2, a);
          a += x[k + 1];
        }
        if (x[turn] < 2) break;
        a += 1;
      } else {
        for (int k = 0; k < 3; ++k) {
          if (x[k] < 3) put(3, a);
          a -= x[k + 2];
        }
        a += 2;
      }
      ++turn;
    }
    put(0, a);
    if (turn != 9) put(1, simd_sum(a));
    """,
    "reconvergence.break_before_call simdgroup.sum",
    grids=_EVERY,
    outputs=4,
)
def leaving_a_loop_behind_another(s):
    odd = s.lane & 1 != 0
    here, left, a = s.all, s.full() != 0, s.v
    for turn in range(9):
        for k in range(3):
            if s.x[k] > 6:
                s.put(2, a, here & odd)
            if s.x[k] < 3:
                s.put(3, a, here & ~odd)
            a = np.where(here, np.where(odd, a + s.x[k + 1], a - s.x[k + 2]), a)
        if s.x[turn] < 2:
            left |= here & odd
            here = here & ~odd
        a = np.where(here, a + np.where(odd, 1, 2), a)
    s.put(0, a, s.all)
    s.put(1, reduce("sum", a, left), left)


@_lockstep(
    """
    int a = v, turn = 0;
    while (true) {
      ++turn;
      put(2, a);
      if ((lane + turn) & 1) {
        a = 3 * a - turn;
        continue;
      }
      put(3, a);
      if (turn > x[7]) break;
      a += x[turn];
    }
    put(0, a);
    if (turn & 1) put(1, simd_sum(a));
    """,
    "reconvergence.continue_before_call simdgroup.sum",
    grids=_EVERY,
    outputs=4,
)
def leaving_a_loop_that_others_go_on_with(s):
    here, a, turns = s.all, s.v, s.full()
    for turn in range(1, s.x[7] + 3):
        s.put(2, a, here)
        goes_on = (s.lane + turn) & 1 != 0
        a = np.where(here & goes_on, 3 * a - turn, a)
        s.put(3, a, here & ~goes_on)
        leaves = here & ~goes_on & (turn > s.x[7])
        turns = np.where(leaves, turn, turns)
        here = here & ~leaves
        a = np.where(here & ~goes_on, a + s.x[turn], a)
    s.put(0, a, s.all)
    odd = s.all & (turns & 1 != 0)
    s.put(1, reduce("sum", a, odd), odd)


# A loop that is unrolled, out of which all go that come to the exchange.
@body(
    """
    uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup;
    int b = i;
    for (int turn = 3; turn-- > 0 && n[0] > n[1];) {
      if (lane != 23u) { y[i] = turn; return; }
      switch (x[i] & 7) {
      case 3: {
        int count = 0;
        do {
        } while (++count < 5 && simd_all(x[i] < 64));
        if (lane != 1u) { y[i] = -count; return; }
      }
      case 2:
        break;
      default:
        b += 1;
      }
    }
    y[i] = b;
    """,
    inputs=lambda rng: {
        "x": np.where(np.arange(128) % 32 == 23, np.repeat([3, 67, 4, 2], 32), rng.integers(0, 100, 128)).astype(
            np.int32
        ),
        "n": np.array([5, 2], np.int32),
    },
    outputs={"y": ((128,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="simdgroup.all",
)
def exchange_on_the_only_way_out(x, n):
    place = np.arange(128)
    return np.select([place % 32 != 23, x == 3, x == 67, x == 2], [2, -5, -1, place], default=place + 3).astype(
        np.int32
    )
