// mix, step and smoothstep. (clamp and saturate are in metal_stdlib/min_max.h, sign in rounding.h.)
namespace metal {

__KILN_INLINE float mix(float x, float y, float a) { return x + (y - x) * a; }
__KILN_THROUGH_FLOAT_3(mix)

__KILN_INLINE float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }
__KILN_THROUGH_FLOAT_2(step)

// 0 up to edge0, 1 from edge1 on, between them 3 t^2 - 2 t^3 where t goes from 0 to 1.
__KILN_INLINE float smoothstep(float edge0, float edge1, float x) {
  float t = saturate((x - edge0) / (edge1 - edge0));
  return t * t * (3.0f - 2.0f * t);
}
__KILN_THROUGH_FLOAT_3(smoothstep)

}  // namespace metal
