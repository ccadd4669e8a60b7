// An output for which there is no memory.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "core/text.h"
#include "runtime/kernel_object.h"

namespace kiln {

// A std::bad_alloc that says for what. Programs in Python see a MemoryError.
class OutputTooLarge : public std::bad_alloc {
 public:
  OutputTooLarge(const KernelObject& kernel, std::string_view output, int64_t bytes)
      : message_(std::make_shared<const std::string>(concat("[", interface_name(kernel.spec().dialect),
                                                            "] There is no memory for the ", bytes,
                                                            " bytes of output `", output, "`."))) {}
  const char* what() const noexcept override { return message_->c_str(); }

 private:
  std::shared_ptr<const std::string> message_;  // so that copying throws nothing
};

}  // namespace kiln
