#include "targets/cpu/c_functions.h"

#include <cmath>

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "__kiln_c_";

// lgamma() writes a variable of the process.
double log_of_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

struct Row {
  std::string_view name;
  const void* address;
};

template <typename Result, typename... Arguments>
const void* address(Result (*function)(Arguments...)) {
  return reinterpret_cast<const void*>(function);
}
const void* of_one(double (*function)(double)) { return address(function); }
const void* of_two(double (*function)(double, double)) { return address(function); }

const Row kRows[] = {
    {"acos", of_one(::acos)},
    {"acosh", of_one(::acosh)},
    {"asin", of_one(::asin)},
    {"asinh", of_one(::asinh)},
    {"atan", of_one(::atan)},
    {"atan2", of_two(::atan2)},
    {"atanh", of_one(::atanh)},
    {"cbrt", of_one(::cbrt)},
    {"cos", of_one(::cos)},
    {"cosh", of_one(::cosh)},
    {"erf", of_one(::erf)},
    {"erfc", of_one(::erfc)},
    {"exp", of_one(::exp)},
    {"exp10", of_one(::exp10)},
    {"exp2", of_one(::exp2)},
    {"expm1", of_one(::expm1)},
    {"fmod", of_two(::fmod)},
    {"hypot", of_two(::hypot)},
    {"j0", of_one(::j0)},
    {"j1", of_one(::j1)},
    {"jn", address<double, int, double>(::jn)},
    {"ldexp", address<double, double, int>(::ldexp)},
    {"lgamma", of_one(log_of_gamma)},
    {"log", of_one(::log)},
    {"log10", of_one(::log10)},
    {"log1p", of_one(::log1p)},
    {"log2", of_one(::log2)},
    {"logb", of_one(::logb)},
    {"nextafter", of_two(::nextafter)},
    {"pow", of_two(::pow)},
    {"remainder", of_two(::remainder)},
    {"sin", of_one(::sin)},
    {"sinh", of_one(::sinh)},
    {"tan", of_one(::tan)},
    {"tanh", of_one(::tanh)},
    {"tgamma", of_one(::tgamma)},
    {"y0", of_one(::y0)},
    {"y1", of_one(::y1)},
    {"yn", address<double, int, double>(::yn)},
};

}  // namespace

const void* find_c_function(std::string_view name) {
  if (!name.starts_with(kPrefix)) return nullptr;
  name.remove_prefix(kPrefix.size());
  for (const Row& row : kRows)
    if (row.name == name) return row.address;
  return nullptr;
}

}  // namespace kiln
