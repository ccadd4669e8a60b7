"""The grid sample in CUDA, written by hand for CuPy's RawKernel: the bodies of ``bench.bodies`` as an expert writes them.

Channels are a multiple of 32. ``HEIGHT`` and the like make shapes constants; without them they are arguments, as in
published kernels. Offsets fit into 32 bits.
"""

from __future__ import annotations

THREADS = 256

_HEAD = r"""
#ifdef HEIGHT
#define DECLARE_SIZES
#define DEFINE_SIZES constexpr int height = HEIGHT, width = WIDTH, channels = CHANNELS, places = PLACES;
#else
#define DECLARE_SIZES , int height, int width, int channels, int places
#define DEFINE_SIZES
#endif

struct Place {
  float px, py;
  int left, top;
  int image;
};

__device__ inline Place locate(const float* grid, int place, int channel, int height, int width, int channels,
                               int places) {
  Place p;
  p.px = ((grid[2 * place] + 1) * width - 1) / 2;
  p.py = ((grid[2 * place + 1] + 1) * height - 1) / 2;
  p.left = (int)floorf(p.px);
  p.top = (int)floorf(p.py);
  p.image = place / places * height * width * channels + channel;
  return p;
}
"""

FORWARD = (
    _HEAD
    + r"""
extern "C" __global__ void grid_sample(const float* __restrict__ x, const float* __restrict__ grid,
                                       float* __restrict__ out, int count DECLARE_SIZES) {
  DEFINE_SIZES
  int elem = blockIdx.x * blockDim.x + threadIdx.x;
  if (elem >= count) return;
  int place = elem / channels, channel = elem % channels;
  Place p = locate(grid, place, channel, height, width, channels, places);
  int right = p.left + 1, bottom = p.top + 1;
  bool in_left = p.left >= 0 && p.left < width, in_right = right >= 0 && right < width;
  bool in_top = p.top >= 0 && p.top < height, in_bottom = bottom >= 0 && bottom < height;
  float a = in_top && in_left ? x[p.image + (p.top * width + p.left) * channels] : 0.0f;
  float b = in_top && in_right ? x[p.image + (p.top * width + right) * channels] : 0.0f;
  float c = in_bottom && in_left ? x[p.image + (bottom * width + p.left) * channels] : 0.0f;
  float d = in_bottom && in_right ? x[p.image + (bottom * width + right) * channels] : 0.0f;
  float wa = (right - p.px) * (bottom - p.py), wb = (p.px - p.left) * (bottom - p.py);
  float wc = (right - p.px) * (p.py - p.top), wd = (p.px - p.left) * (p.py - p.top);
  out[elem] = wa * a + wb * b + wc * c + wd * d;
}
"""
)

# A warp belongs to one place, since channels are a multiple of 32.
VJP = (
    _HEAD
    + r"""
extern "C" __global__ void grid_sample_vjp(const float* __restrict__ x, const float* __restrict__ grid,
                                           const float* __restrict__ cotangents, float* __restrict__ x_grad,
                                           float* __restrict__ grid_grad, int count DECLARE_SIZES) {
  DEFINE_SIZES
  int elem = blockIdx.x * blockDim.x + threadIdx.x;
  if (elem >= count) return;
  int place = elem / channels, channel = elem % channels;
  Place p = locate(grid, place, channel, height, width, channels, places);
  float slope_x = 0, slope_y = 0, cotangent = cotangents[elem];
#pragma unroll
  for (int corner = 0; corner < 4; ++corner) {
    int row = p.top + corner / 2, column = p.left + corner % 2;
    if (row < 0 || row >= height || column < 0 || column >= width) continue;
    float by_x = corner % 2 ? p.px - p.left : p.left + 1 - p.px;
    float by_y = corner / 2 ? p.py - p.top : p.top + 1 - p.py;
    int offset = p.image + (row * width + column) * channels;
    atomicAdd(&x_grad[offset], by_x * by_y * cotangent);
    float product = x[offset] * cotangent;
    slope_x += corner % 2 ? product * by_y : -product * by_y;
    slope_y += corner / 2 ? product * by_x : -product * by_x;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    slope_x += __shfl_xor_sync(0xffffffffu, slope_x, distance);
    slope_y += __shfl_xor_sync(0xffffffffu, slope_y, distance);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&grid_grad[2 * place], slope_x * width / 2);
    atomicAdd(&grid_grad[2 * place + 1], slope_y * height / 2);
  }
}
"""
)

EXP = r"""
extern "C" __global__ void exp_of(const float* __restrict__ x, float* __restrict__ out, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = expf(x[i]);
}
"""


class Kernel:
    """One of these kernels, launched by CuPy on the stream that PyTorch uses now."""

    def __init__(self, name: str, text: str, sizes: dict[str, int] | None):
        """``sizes``: height, width, channels, places as constants; None: as arguments."""
        import cupy

        options = ["-std=c++17"]
        if sizes:
            options += [f"-D{key.upper()}={value}" for key, value in sizes.items()]
        self._sizes = sizes
        self._kernel = cupy.RawKernel(text, name, options=tuple(options))

    def __call__(self, tensors: list, count: int, sizes: dict[str, int]) -> None:
        import cupy
        import torch

        arguments = [*(cupy.from_dlpack(tensor.detach()) for tensor in tensors), cupy.int32(count)]
        if self._sizes is None:
            arguments += [cupy.int32(sizes[key]) for key in ("height", "width", "channels", "places")]
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            self._kernel((-(-count // THREADS),), (THREADS,), tuple(arguments))
