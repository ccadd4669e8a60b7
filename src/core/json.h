// JSON, as far as launches' texts need it (runtime/launch_text.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kiln {

// A value of a text in JSON. What is asked for and is not there, or of another kind, is a ValueError.
class Json {
 public:
  using List = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  template <typename T>
  explicit Json(T value) : value_(std::move(value)) {}

  /// Throws ValueError for what is no JSON. Numbers with a fraction or an exponent are not read: texts have none.
  static Json parse(std::string_view text);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }

  bool as_bool() const { return get<bool>(); }
  int64_t as_integer() const { return get<int64_t>(); }
  const std::string& as_string() const { return get<std::string>(); }
  const List& as_list() const { return get<List>(); }

  /// A member of an object.
  const Json& operator[](std::string_view name) const;
  /// The same, or null where there is none.
  const Json* find(std::string_view name) const;

 private:
  template <typename T>
  const T& get() const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    fail("has a value of another kind than expected");
  }
  [[noreturn]] static void fail(std::string_view what);

  std::variant<std::monostate, bool, int64_t, std::string, List, Object> value_;
};

}  // namespace kiln
