#include "compiler/ir/abandonment.h"

#include <utility>

namespace kiln {

thread_local WhenAbandoned* WhenAbandoned::t_last = nullptr;

void WhenAbandoned::abandon(bool calls) noexcept {
  while (WhenAbandoned* last = t_last) {
    t_last = last->next_;
    if (calls) last->free_();
  }
}

}  // namespace kiln
