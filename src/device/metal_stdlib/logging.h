// os_log, of Metal 3.2's <metal_logging>. Nothing is printed: a launch in which a thread comes to a call ends with an
// error that names it (targets/cpu/kernel_output.h); one in which none does is as it would be without.
namespace __kiln {
extern "C" void __kiln_unsupported(uint line, uint column, const char* what);

// Takes note of the call that it is an argument of.
struct log_format {
  uint line, column;
  constexpr log_format(const char*, uint line = __builtin_LINE(), uint column = __builtin_COLUMN())
      : line(line), column(column) {}
};
}  // namespace __kiln

namespace metal {

enum os_log_type { os_log_type_default, os_log_type_debug, os_log_type_info, os_log_type_error, os_log_type_fault };

struct os_log {
  constexpr os_log() {}
  constexpr os_log(const char* subsystem, const char* category) {}

#define __KILN_LOG(NAME)                                                                  \
  template <class... T>                                                                   \
  __KILN_INLINE void NAME(__kiln::log_format format, const T&...) const {                 \
    __kiln::__kiln_unsupported(format.line, format.column, "'os_log': printing is not supported"); \
  }
  __KILN_LOG(log)
  __KILN_LOG(log_debug)
  __KILN_LOG(log_info)
  __KILN_LOG(log_error)
  __KILN_LOG(log_fault)
#undef __KILN_LOG
  template <class... T>
  __KILN_INLINE void log_with_type(os_log_type, __kiln::log_format format, const T&... arguments) const {
    log(format, arguments...);
  }
};

constexpr os_log os_log_default;

}  // namespace metal
