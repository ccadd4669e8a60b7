// What the scalar engine runs: threadgroups one after the other, thread after thread. The structures are those of
// `core/cpu_image.h`.
namespace __kiln {

struct Argument {
  void* data;
  long first, end;
};

struct Launch {
  const Argument* arguments;
  uint threads_per_grid[3], threads_per_threadgroup[3], threadgroups_per_grid[3];
};

struct Thread {
  uint values[19];
  uint site;
  uint* counts;
  ulong* payload;
  char* threadgroup_memory;
};

// The code of one thread; defined behind the kernel. `frame` is for coroutines.
extern "C" void __kiln_thread(const Launch* launch, Thread* thread, void* frame);

// Runs every thread of threadgroups [begin, end), none of which waits for another.
extern "C" void __kiln_run(const Launch* launch, ulong begin, ulong end, char* threadgroup_memory) {
  Thread thread;
  thread.threadgroup_memory = threadgroup_memory;
  const uint width = launch->threads_per_threadgroup[0], height = launch->threads_per_threadgroup[1],
             depth = launch->threads_per_threadgroup[2];
  const uint grid_x = launch->threads_per_grid[0], grid_y = launch->threads_per_grid[1],
             grid_z = launch->threads_per_grid[2];
  const uint groups_x = launch->threadgroups_per_grid[0], groups_y = launch->threadgroups_per_grid[1],
             groups_z = launch->threadgroups_per_grid[2];
  thread.values[9] = width, thread.values[10] = height, thread.values[11] = depth;
  thread.values[12] = grid_x, thread.values[13] = grid_y, thread.values[14] = grid_z;
  thread.values[15] = groups_x, thread.values[16] = groups_y, thread.values[17] = groups_z;
  // The position of the first threadgroup; the others are counted on from it.
  uint x = begin % groups_x, y = begin / groups_x % groups_y, z = begin / groups_x / groups_y;
  for (ulong group = begin; group < end; ++group) {
    thread.values[3] = x, thread.values[4] = y, thread.values[5] = z;
    const uint left_x = grid_x - x * width, left_y = grid_y - y * height, left_z = grid_z - z * depth;
    const uint size_x = left_x < width ? left_x : width, size_y = left_y < height ? left_y : height,
               size_z = left_z < depth ? left_z : depth;
    thread.values[6] = size_x, thread.values[7] = size_y, thread.values[8] = size_z;
    uint index = 0;
    for (uint c = 0; c < size_z; ++c)
      for (uint b = 0; b < size_y; ++b)
        for (uint a = 0; a < size_x; ++a) {
          thread.values[0] = a, thread.values[1] = b, thread.values[2] = c;
          thread.values[18] = index++;
          __kiln_thread(launch, &thread, nullptr);
        }
    if (++x == groups_x) {
      x = 0;
      if (++y == groups_y) {
        y = 0;
        ++z;
      }
    }
  }
}

}  // namespace __kiln
