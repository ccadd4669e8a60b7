// What a launch from C++ costs the host: the driver's function alone, and Kiln's. Prints a line of JSON with the
// microseconds of each round.
//
// The driver is opened by name, as Kiln opens it, so that this builds where no toolkit is.
#include <dlfcn.h>
#include <kiln/kiln.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 31;
constexpr int kLaunches = 1000;
constexpr int kElements = 32;

constexpr const char* kPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry exp_of(.param .u64 from, .param .u64 to, .param .u32 count) {
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [from];
  ld.param.u64 %d2, [to];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p, %r5, %r1;
  @%p ret;
  mul.wide.s32 %d3, %r5, 4;
  add.s64 %d1, %d1, %d3;
  add.s64 %d2, %d2, %d3;
  ld.global.f32 %f1, [%d1];
  mul.f32 %f2, %f1, 0f3FB8AA3B;
  ex2.approx.f32 %f3, %f2;
  st.global.f32 [%d2], %f3;
  ret;
}
)";

template <typename Function>
Function* find(void* library, const char* name) {
  void* function = dlsym(library, name);
  if (!function) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Function*>(function);
}

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s gives %d\n", what, status);
  std::exit(1);
}

double microseconds_each(const std::function<void()>& launches) {
  auto start = std::chrono::steady_clock::now();
  launches();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kLaunches;
}

void print(const char* name, const std::vector<double>& rounds, const char* end) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < rounds.size(); ++i) std::printf("%s%.4f", i ? ", " : "", rounds[i]);
  std::printf("]%s", end);
}

}  // namespace

int main() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) {
    std::fprintf(stderr, "there is no driver\n");
    return 1;
  }
  auto* init = find<int(unsigned)>(driver, "cuInit");
  auto* retain = find<int(void**, int)>(driver, "cuDevicePrimaryCtxRetain");
  auto* set_current = find<int(void*)>(driver, "cuCtxSetCurrent");
  auto* allocate = find<int(unsigned long long*, size_t)>(driver, "cuMemAlloc_v2");
  auto* set_words = find<int(unsigned long long, unsigned, size_t)>(driver, "cuMemsetD32_v2");
  auto* load = find<int(void**, const void*)>(driver, "cuModuleLoadData");
  auto* get_function = find<int(void**, void*, const char*)>(driver, "cuModuleGetFunction");
  auto* create_stream = find<int(void**, unsigned)>(driver, "cuStreamCreate");
  auto* wait = find<int(void*)>(driver, "cuStreamSynchronize");
  auto* launch =
      find<int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)>(
          driver, "cuLaunchKernel");

  void *context, *module, *function, *stream;
  check(init(0), "cuInit");
  check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(set_current(context), "cuCtxSetCurrent");
  unsigned long long from, to;
  check(allocate(&from, 4 * kElements), "cuMemAlloc");
  check(allocate(&to, 4 * kElements), "cuMemAlloc");
  check(set_words(from, 0x3f000000, kElements), "cuMemsetD32");
  check(load(&module, kPtx), "cuModuleLoadData");
  check(get_function(&function, module, "exp_of"), "cuModuleGetFunction");
  check(create_stream(&stream, 1), "cuStreamCreate");

  kiln::Kernel kernel = kiln::metal_kernel("exp_of", {"x"}, {"y"}, R"(
    uint i = thread_position_in_grid.x;
    y[i] = metal::exp(x[i]);
  )");
  kiln::KernelCall call{
      .inputs = {kiln::TensorView(reinterpret_cast<const float*>(from), {kElements})},
      .output_shapes = {{kElements}},
      .output_dtypes = {kiln::Dtype::kFloat32},
      .grid = {kElements, 1, 1},
      .threadgroup = {32, 1, 1},
      .device = {kiln::DeviceKind::kNvidia, 0},
      .stream = stream,
  };
  std::array<void*, 1> outputs{reinterpret_cast<void*>(to)};
  kernel.run(call, outputs);

  int count = kElements;
  void* parameters[] = {&from, &to, &count};
  auto alone = [&] {
    for (int i = 0; i < kLaunches; ++i)
      check(launch(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr), "cuLaunchKernel");
  };
  auto with_kiln = [&] {
    for (int i = 0; i < kLaunches; ++i) kernel.run(call, outputs);
  };
  std::vector<double> of_driver, of_kiln;
  for (int round = 0; round <= kRounds; ++round) {
    double alone_us = microseconds_each(alone);
    check(wait(stream), "cuStreamSynchronize");
    double kiln_us = microseconds_each(with_kiln);
    check(wait(stream), "cuStreamSynchronize");
    if (round == 0) continue;
    of_driver.push_back(alone_us);
    of_kiln.push_back(kiln_us);
  }
  std::printf("{");
  print("cuLaunchKernel alone, from C++", of_driver, ", ");
  print("Kiln, output given, from C++", of_kiln, "}\n");
  return 0;
}
