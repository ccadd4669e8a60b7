inline float erf(float x) { return __kiln::erf(x); }
inline half erf(half x) { return half(__kiln::erf(float(x))); }
inline bfloat erf(bfloat x) { return bfloat(__kiln::erf(float(x))); }
__KILN_VECTOR_FORMS_1(erf)
