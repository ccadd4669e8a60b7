#include "compiler/ir/remarks.h"

#include <algorithm>

namespace kiln {

void RemarkCollector::add(const char* pass, const llvm::DILocation* at, std::string message) {
  CompileRemark remark;
  remark.pass = pass;
  remark.message = std::move(message);
  if (at) locate_(*at, remark);
  const bool is_known = std::ranges::any_of(remarks_, [&](const CompileRemark& other) {
    return other.pass == remark.pass && other.message == remark.message &&
           (remark.line == 0 || (other.line == remark.line && other.text == remark.text && other.file == remark.file));
  });
  if (!is_known) remarks_.push_back(std::move(remark));
}

}  // namespace kiln
