inline float expm1(float x) { return __kiln::expm1(x); }
inline half expm1(half x) { return half(__kiln::expm1(float(x))); }
inline bfloat expm1(bfloat x) { return bfloat(__kiln::expm1(float(x))); }
__KILN_VECTOR_FORMS_1(expm1)
