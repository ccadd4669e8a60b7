#include "targets/cpu/kernel_output.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/thread_locals.h"

namespace kiln {
namespace {

KILN_STATIC_TLS thread_local KernelFailures* failures_here = nullptr;

void fail(uint32_t line, const char* assertion) {
  if (failures_here) failures_here->add({line, assertion ? assertion : ""});
}

void fail_unsupported(uint32_t line, uint32_t column, const char* what) {
  if (failures_here) failures_here->add({line, "", what, column});
}

int print(const char* format, const char* kinds, const uint64_t* values, uint32_t count) {
  std::string text = format_output(format, kinds, values, count);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  return static_cast<int>(count);
}

// The argument as a format's letter wants it, whatever it is: a kernel may name the wrong one.
double as_double(char kind, uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return kind == 'f'   ? value
         : kind == 'u' ? static_cast<double>(bits)
                       : static_cast<double>(static_cast<int64_t>(bits));
}
uint64_t as_integer(char kind, uint64_t bits) {
  if (kind != 'f') return bits;
  double value = as_double(kind, bits);
  return value > -9.2e18 && value < 9.2e18 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : 0;
}

// Without lengths, which are ours, and of a width that cannot hurt.
template <typename Value>
void append(std::string& text, const std::string& flags, const char* length, char letter, Value value) {
  std::string format = "%" + flags + length + letter;
  char buffer[512];
  int written = std::snprintf(buffer, sizeof buffer, format.c_str(), value);
  if (written > 0) text.append(buffer, std::min<size_t>(static_cast<size_t>(written), sizeof buffer - 1));
}

}  // namespace

KernelFailures::Scope::Scope(KernelFailures& failures) : before_(std::exchange(failures_here, &failures)) {}
KernelFailures::Scope::~Scope() { failures_here = before_; }

void KernelFailures::add(KernelFailure failure) {
  std::lock_guard lock(mutex_);
  if (!first_) first_ = std::move(failure);
}

std::string format_output(const char* format, const char* kinds, const uint64_t* values, uint32_t count) {
  std::string text;
  uint32_t next = 0;
  auto take = [&](char& kind) {
    kind = next < count ? kinds[next] : 'i';
    return next < count ? values[next++] : 0;
  };
  while (*format) {
    if (*format != '%') {
      text += *format++;
      continue;
    }
    ++format;
    std::string flags;
    char kind;
    for (; *format && std::strchr("-+ #0123456789.*", *format); ++format)
      flags += *format == '*' ? std::to_string(static_cast<int>(take(kind))) : std::string(1, *format);
    size_t longs = 0;
    for (; *format && std::strchr("hljztL", *format); ++format) longs += *format != 'h';
    char letter = *format;
    if (letter == '\0') break;
    ++format;
    if (letter == '%') {
      text += '%';
      continue;
    }
    uint64_t bits = take(kind);
    switch (letter) {
      case 'd':
      case 'i': {
        auto value = static_cast<int64_t>(as_integer(kind, bits));
        append(text, flags, "l", 'd', longs ? value : static_cast<int64_t>(static_cast<int32_t>(value)));
        break;
      }
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        uint64_t value = as_integer(kind, bits);
        append(text, flags, "l", letter, longs ? value : static_cast<uint64_t>(static_cast<uint32_t>(value)));
        break;
      }
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': append(text, flags, "", letter, as_double(kind, bits)); break;
      case 'c': append(text, flags, "", 'c', static_cast<int>(as_integer(kind, bits))); break;
      case 'p': append(text, flags, "", 'p', reinterpret_cast<const void*>(bits)); break;
      case 's':
        append(text, flags, "", 's', kind == 's' && bits ? reinterpret_cast<const char*>(bits) : "(no text)");
        break;
      default: text += '%'; text += letter;
    }
  }
  return text;
}

const void* find_output_function(std::string_view name) {
  if (name == "__kiln_print") return reinterpret_cast<const void*>(&print);
  if (name == kFailFunction) return reinterpret_cast<const void*>(&fail);
  if (name == kUnsupportedFunction) return reinterpret_cast<const void*>(&fail_unsupported);
  return nullptr;
}

}  // namespace kiln
