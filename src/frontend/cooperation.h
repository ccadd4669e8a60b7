// Whether a body's threads can wait for one another or tell threadgroups apart, as far as its text tells.
//
// Which launches get code of their own is part of the key under which code is found, so this has to be known before
// anything is compiled. It is decided by names: what a text does not name it cannot call. A name that is there and is
// never called costs code of its own for a few launches more, and no result depends on it. Rejected: knowing one
// dialect's names where keys are made; a CUDA body with barriers took four times the time of the same body in Metal.
#pragma once

#include "core/kernel_unit.h"
#include "frontend/usage.h"

namespace kiln {

struct Cooperation {
  bool waits_at_barriers = false;  // of a threadgroup
  bool has_collectives = false;    // of a threadgroup or a simdgroup

  bool operator==(const Cooperation&) const = default;
};

/// Linear in the number of the text's identifiers.
Cooperation cooperation_of(Dialect dialect, const KernelText& text);

/// Whether a thread may tell its threadgroup from another one that a launch could have: by an attribute, by memory or
/// work that threads share, or by waiting for what a thread of another threadgroup writes, which needs an atomic or a
/// volatile access. Results do depend on this: a launch may have other threadgroups where it is false. So whatever a
/// text may hide, in pasted tokens and reserved names, counts. Linear in the number of the text's identifiers.
bool sees_threadgroups(Dialect dialect, const KernelText& text);

}  // namespace kiln
