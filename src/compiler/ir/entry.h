// The function of one thread, which the front end makes and every engine takes.
#pragma once

namespace kiln {

// The target that Clang compiles for, whatever the kernel's target is: the device library is precompiled for it.
inline constexpr const char* kFrontendTriple = "x86_64-unknown-linux-gnu";

// The function that the generated entry defines (extern "C").
//
// `void __kiln_body(void* data, int64 first_byte, int64 end_byte, …, void* thread)`, three arguments for each parameter
// of the unit and one for what the engine knows of the thread. It calls the kernel's function with the attributes'
// values.
inline constexpr const char* kBodyFunction = "__kiln_body";

}  // namespace kiln
