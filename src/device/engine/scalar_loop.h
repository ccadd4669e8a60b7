// What the scalar engine runs. The structures are those of `core/cpu_image.h`. Everything outside of a row of threads
// is the target's, compiled once and not with each kernel.
namespace __kiln {

struct Argument {
  void* data;
  long first, end;
};

struct Launch {
  const Argument* arguments;
  uint threads_per_grid[3], threads_per_threadgroup[3], threadgroups_per_grid[3];
  uint is_alone;
};

struct Thread {
  uint values[19];
  uint site, entry;
  uint* counts;
  ulong* payload;
  char* threadgroup_memory;
};

// The code of one thread; defined behind the kernel. `frame` is for coroutines.
extern "C" void __kiln_thread(const Launch* launch, Thread* thread, void* frame);

// Runs `count` threads that follow one another in x, none of which waits for another. The record describes the first.
extern "C" void __kiln_row(const Launch* launch, const Thread* first, uint count) {
  Thread thread = *first;
  for (uint x = 0; x < count; ++x) {
    thread.values[0] = x;
    thread.values[18] = first->values[18] + x;
    __kiln_thread(launch, &thread, nullptr);
  }
}

}  // namespace __kiln
