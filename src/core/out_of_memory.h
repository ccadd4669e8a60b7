// A std::bad_alloc that says what there was no memory for. Programs in Python see a MemoryError.
#pragma once

#include <memory>
#include <new>
#include <string>

namespace kiln {

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_(std::make_shared<const std::string>(std::move(message))) {}
  const char* what() const noexcept override { return message_->c_str(); }

 private:
  std::shared_ptr<const std::string> message_;  // so that copying throws nothing
};

}  // namespace kiln
