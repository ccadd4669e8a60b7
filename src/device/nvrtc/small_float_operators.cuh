// Operators of small floats and of their pairs, as macros: a unit with both types reads this file twice.
#ifndef __KILN_SMALL_OPERATORS
#define __KILN_SMALL_OPERATORS(TYPE, ADD, SUB, MUL, DIV, NEG, ONE)                                 \
  __KILN_DEVICE TYPE operator+(const TYPE& a, const TYPE& b) { return ADD(a, b); }                 \
  __KILN_DEVICE TYPE operator-(const TYPE& a, const TYPE& b) { return SUB(a, b); }                 \
  __KILN_DEVICE TYPE operator*(const TYPE& a, const TYPE& b) { return MUL(a, b); }                 \
  __KILN_DEVICE TYPE operator/(const TYPE& a, const TYPE& b) { return DIV(a, b); }                 \
  __KILN_DEVICE TYPE operator+(const TYPE& a) { return a; }                                        \
  __KILN_DEVICE TYPE operator-(const TYPE& a) { return NEG(a); }                                   \
  __KILN_DEVICE TYPE& operator+=(TYPE& a, const TYPE& b) { return a = ADD(a, b); }                 \
  __KILN_DEVICE TYPE& operator-=(TYPE& a, const TYPE& b) { return a = SUB(a, b); }                 \
  __KILN_DEVICE TYPE& operator*=(TYPE& a, const TYPE& b) { return a = MUL(a, b); }                 \
  __KILN_DEVICE TYPE& operator/=(TYPE& a, const TYPE& b) { return a = DIV(a, b); }                 \
  __KILN_DEVICE TYPE& operator++(TYPE& a) { return a = ADD(a, ONE); }                              \
  __KILN_DEVICE TYPE& operator--(TYPE& a) { return a = SUB(a, ONE); }                              \
  __KILN_DEVICE TYPE operator++(TYPE& a, int) { TYPE before = a; ++a; return before; }             \
  __KILN_DEVICE TYPE operator--(TYPE& a, int) { TYPE before = a; --a; return before; }
// HOLDS says whether a relation does, of its name or its sign.
#define __KILN_SMALL_RELATIONS(TYPE, HOLDS)                                                        \
  __KILN_DEVICE bool operator==(const TYPE& a, const TYPE& b) { return HOLDS(eq, ==); }            \
  __KILN_DEVICE bool operator!=(const TYPE& a, const TYPE& b) { return HOLDS(neu, !=); }           \
  __KILN_DEVICE bool operator<(const TYPE& a, const TYPE& b) { return HOLDS(lt, <); }              \
  __KILN_DEVICE bool operator<=(const TYPE& a, const TYPE& b) { return HOLDS(le, <=); }            \
  __KILN_DEVICE bool operator>(const TYPE& a, const TYPE& b) { return HOLDS(gt, >); }              \
  __KILN_DEVICE bool operator>=(const TYPE& a, const TYPE& b) { return HOLDS(ge, >=); }
// Exact in float.
#define __KILN_HOLDS_IN_FLOAT(WORD, SIGN) float(a) SIGN float(b)
#define __KILN_HOLDS_OF_BOTH(WORD, SIGN) __hb##WORD##2(a, b)
#endif
