// The grid sample of bodies.py as a C++ programmer would write it for a CPU: the loop over channels is innermost and
// contiguous, so that the compiler vectorises it, and places are spread over threads. Two functions with C linkage,
// compiled by grid_sample.py for the machine that runs them.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "corners.h"

namespace {

template <typename Function>
void spread(int64_t count, int threads, const Function& function) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back([=, &function] { function(count * t / threads, count * (t + 1) / threads); });
  function(0, count / threads);
  for (std::thread& other : others) other.join();
}

}  // namespace

// x [batch, height, width, channels], grid [batch, places, 2], out [batch, places, channels].
extern "C" void grid_sample(const float* x, const float* grid, float* out, int64_t batch, int64_t height, int64_t width,
                            int64_t channels, int64_t places, int threads) {
  spread(batch * places, threads, [=](int64_t begin, int64_t end) {
    // What a corner outside the image reads; its share becomes 0.
    std::vector<float> nothing(static_cast<size_t>(channels), 0.0f);
    for (int64_t place = begin; place < end; ++place) {
      Corners corners = locate(grid, place, places, height, width, channels);
      const float* from[4];
      for (int i = 0; i < 4; ++i) from[i] = corners.offset[i] < 0 ? nothing.data() : x + corners.offset[i];
      float* __restrict__ to = out + place * channels;
      const float *a = from[0], *b = from[1], *c = from[2], *d = from[3];
      const float wa = corners.share[0], wb = corners.share[1], wc = corners.share[2], wd = corners.share[3];
      for (int64_t i = 0; i < channels; ++i) to[i] = wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i];
    }
  });
}

// Fills x_grad and grid_grad, then adds. Pixels are shared by places, so that adding to them is atomic.
extern "C" void grid_sample_vjp(const float* x, const float* grid, const float* cotangents, float* x_grad,
                                float* grid_grad, int64_t batch, int64_t height, int64_t width, int64_t channels,
                                int64_t places, int threads) {
  spread(batch * height * width * channels, threads, [=](int64_t begin, int64_t end) {
    std::memset(x_grad + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
  });
  spread(batch * places, threads, [=](int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end; ++place) {
      Corners corners = locate(grid, place, places, height, width, channels);
      const float* cotangent = cotangents + place * channels;
      float slope_x = 0, slope_y = 0;
      for (int i = 0; i < 4; ++i) {
        if (corners.offset[i] < 0) continue;
        const float* value = x + corners.offset[i];
        float product = 0;
#pragma GCC ivdep
        for (int64_t k = 0; k < channels; ++k) product += value[k] * cotangent[k];
        float* to = x_grad + corners.offset[i];
        for (int64_t k = 0; k < channels; ++k)
          std::atomic_ref(to[k]).fetch_add(corners.share[i] * cotangent[k], std::memory_order_relaxed);
        slope_x += corners.by_x[i] * product;
        slope_y += corners.by_y[i] * product;
      }
      grid_grad[2 * place] = slope_x * width / 2;
      grid_grad[2 * place + 1] = slope_y * height / 2;
    }
  });
}
