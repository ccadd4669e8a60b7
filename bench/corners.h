// Where a grid sample reads, for the C++ by hand that benchmarks measure against.
#pragma once

#include <cmath>
#include <cstdint>

struct Corners {
  int64_t offset[4];  // of channel 0; -1 outside the image
  float share[4], by_x[4], by_y[4];
};

inline Corners locate(const float* grid, int64_t place, int64_t places, int64_t height, int64_t width,
                      int64_t channels) {
  float px = ((grid[2 * place] + 1) * width - 1) / 2, py = ((grid[2 * place + 1] + 1) * height - 1) / 2;
  auto left = static_cast<int64_t>(std::floor(px)), top = static_cast<int64_t>(std::floor(py));
  float x = px - left, y = py - top;
  Corners corners;
  for (int i = 0; i < 4; ++i) {
    int64_t row = top + i / 2, column = left + i % 2;
    bool inside = row >= 0 && row < height && column >= 0 && column < width;
    corners.offset[i] = inside ? ((place / places * height + row) * width + column) * channels : -1;
    float share_x = i % 2 ? x : 1 - x, share_y = i / 2 ? y : 1 - y;
    corners.share[i] = share_x * share_y;
    corners.by_x[i] = i % 2 ? share_y : -share_y;
    corners.by_y[i] = i / 2 ? share_x : -share_x;
  }
  return corners;
}
