// The function of one thread: the front end's output and each engine's input.
#pragma once

namespace kiln {

// The target that Clang compiles for, whatever the kernel's target is: the device library is precompiled for it.
inline constexpr const char* kFrontendTriple = "x86_64-unknown-linux-gnu";

// The function that the generated entry defines (extern "C").
//
// `void __kiln_body(void* data, int64 first_byte, int64 end_byte, …, void* thread)`: three arguments for each parameter
// of the unit, then one for the engine's data of the thread. It calls the kernel's function with the attributes'
// values.
inline constexpr const char* kBodyFunction = "__kiln_body";

}  // namespace kiln
