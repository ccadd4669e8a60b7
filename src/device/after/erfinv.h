inline float erfinv(float x) { return __kiln::erfinv(x); }
inline half erfinv(half x) { return half(__kiln::erfinv(float(x))); }
inline bfloat erfinv(bfloat x) { return bfloat(__kiln::erfinv(float(x))); }
__KILN_VECTOR_FORMS_1(erfinv)
