inline float hypot(float x, float y) { return __kiln::hypot(x, y); }
inline half hypot(half x, half y) { return half(__kiln::hypot(float(x), float(y))); }
inline bfloat hypot(bfloat x, bfloat y) { return bfloat(__kiln::hypot(float(x), float(y))); }
__KILN_VECTOR_FORMS_2(hypot)
