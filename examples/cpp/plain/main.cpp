// A Julia set, computed by a Metal kernel on the CPU, as a picture.
//
//     julia PICTURE.pgm [WIDTH HEIGHT]
//
// docs/reference/cpp.md says how to build it, and what it prints.
//
// Shows a two-dimensional grid, numbers as inputs, a template argument, the outputs' own memory, and what a program
// does with an error in a body.
#include <kiln/kiln.h>

#include <algorithm>
#include <charconv>
#include <complex>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <span>
#include <string_view>

namespace {

constexpr int kSteps = 200;

// `c` is a number and `size` an array of two ints: the body sees both in the constant address space.
constexpr const char* kBody = R"(
    uint2 pixel = thread_position_in_grid.xy;
    float2 z = 3.2f * (float2(pixel) + 0.5f - 0.5f * float2(size[0], size[1])) / float(size[1]);
    int step = 0;
    while (step < STEPS && dot(z, z) <= 4.0f) {
        z = float2(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y) + float2(c.real, c.imag);
        step += 1;
    }
    steps[pixel.y * size[0] + pixel.x] = step;
)";

// The same for one pixel, in C++.
int steps_at(int x, int y, int width, int height, std::complex<float> c) {
  float re = 3.2f * (static_cast<float>(x) + 0.5f - 0.5f * static_cast<float>(width)) / static_cast<float>(height);
  float im = 3.2f * (static_cast<float>(y) + 0.5f - 0.5f * static_cast<float>(height)) / static_cast<float>(height);
  int step = 0;
  while (step < kSteps && re * re + im * im <= 4.0f) {
    float next = re * re - im * im + c.real();
    im = 2.0f * re * im + c.imag();
    re = next;
    step += 1;
  }
  return step;
}

void write_picture(const char* path, std::span<const int32_t> steps, int width, int height) {
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << width << " " << height << "\n255\n";
  for (int32_t step : steps) file.put(static_cast<char>(std::min(255, 255 * step / kSteps * 2)));
  if (!file) throw std::runtime_error(std::string("cannot write ") + path);
}

// A number of pixels; false where the text is none.
bool read_size(std::string_view text, int& size) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc() && end == text.data() + text.size() && size >= 1 && size <= 16384;
}

}  // namespace

int main(int argc, char** argv) {
  int width = 960, height = 640;
  if ((argc != 2 && argc != 4) || (argc == 4 && (!read_size(argv[2], width) || !read_size(argv[3], height)))) {
    std::cerr << "usage: julia PICTURE.pgm [WIDTH HEIGHT], each from 1 to 16384\n";
    return 2;
  }
  std::complex<float> c(-0.8f, 0.156f);
  try {
    kiln::Kernel julia = kiln::metal_kernel("julia", {"c", "size"}, {"steps"}, kBody);
    std::vector<int32_t> size = {width, height};
    std::vector<kiln::Tensor> outputs = julia({
        .inputs = {c, size},
        .output_shapes = {{height, width}},
        .output_dtypes = {kiln::Dtype::kInt32},
        .grid = {width, height, 1},
        .threadgroup = {32, 8, 1},
        .template_arguments = {{"STEPS", kSteps}},
    });
    std::span<const int32_t> steps = outputs[0].values<int32_t>();
    write_picture(argv[1], steps, width, height);

    int64_t inside = std::count(steps.begin(), steps.end(), kSteps), different = 0;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) different += steps[y * width + x] != steps_at(x, y, width, height, c);
    kiln::Launch launch = julia.history().back();
    std::cout << width << " x " << height << " pixels, " << inside << " stay for " << kSteps << " steps; " << different
              << " differ from the same loop in C++\n";
    std::cout << "compiled in " << launch.compile_ms << " ms, ran in " << launch.run_ms << " ms\n";

    // An error in a body is the program's to catch.
    std::cout << "a body with an error, on purpose:\n";
    kiln::Kernel wrong = kiln::metal_kernel("wrong", {"x"}, {"y"}, "y[0] = x + z;");
    try {
      wrong({.inputs = {1.0f}, .output_shapes = {{1}}, .output_dtypes = {kiln::Dtype::kFloat32}});
    } catch (const kiln::CompileError& error) {
      std::cout << error.what() << "\n";
    }
    return different == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
