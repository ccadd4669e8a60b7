#include "compiler/clang/dialects/cuda_tokens.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringSwitch.h>

#include <utility>

namespace kiln {
namespace {

namespace tok = clang::tok;
using llvm::StringRef;

bool begins_with_any(StringRef name, std::initializer_list<StringRef> beginnings) {
  return llvm::any_of(beginnings, [&](StringRef beginning) { return name.starts_with(beginning); });
}

const char* unsupported_keyword(tok::TokenKind keyword, tok::TokenKind before) {
  switch (keyword) {
    case tok::kw_asm: return "inline PTX is not supported on the CPU";
    case tok::kw_new: return "a kernel cannot allocate memory on the CPU";
    // `= delete` is a deleted function.
    case tok::kw_delete: return before == tok::equal ? nullptr : "a kernel cannot allocate memory on the CPU";
    case tok::kw_try:
    case tok::kw_catch:
    case tok::kw_throw: return "exceptions are not supported";
    case tok::kw_goto: return "jumps to labels are not supported on the CPU";
    case tok::kw_virtual: return "virtual functions are not supported on the CPU";
    case tok::kw_dynamic_cast:
    case tok::kw_typeid: return "types are not known when a kernel runs";
    case tok::kw___float128: return "floats of 128 bits are not supported on the CPU";
    case tok::kw_thread_local: return "static variables of a thread are not supported";
    default: return nullptr;
  }
}

}  // namespace

const char* unsupported_in_cuda(tok::TokenKind token, tok::TokenKind before, StringRef name, tok::TokenKind next) {
  if (const char* reason = unsupported_keyword(token, before)) return reason;
  if (token != tok::identifier) return nullptr;
  bool is_call = next == tok::l_paren || next == tok::less;
  bool is_namespace = next == tok::coloncolon || before == tok::kw_namespace;
  if (is_call && begins_with_any(name, {"tex1D", "tex2D", "tex3D", "texCubemap", "surf1D", "surf2D", "surf3D"}))
    return "textures and surfaces are not supported on the CPU";
  if (name == "cudaTextureObject_t" || name == "cudaSurfaceObject_t" || (name == "texture" && next == tok::less))
    return "textures and surfaces are not supported on the CPU";
  if (is_namespace && (name == "nvcuda" || name == "wmma")) return "tensor cores are not supported on the CPU";
  if (is_namespace && (name == "cuda" || name == "cub" || name == "thrust"))
    return "CUDA's C++ libraries are not supported on the CPU";
  if (begins_with_any(name, {"__nv_fp8", "__nv_fp6", "__nv_fp4"}))
    return "floats of 8 bits are not supported on the CPU";
  if (is_call && begins_with_any(name, {"__pipeline_", "__mbarrier_"}))
    return "asynchronous copies are not supported on the CPU";
  if (is_call && (name == "malloc" || name == "free")) return "a kernel cannot allocate memory on the CPU";
  if (name == "__cluster_dims__" || (is_call && name == "this_cluster"))
    return "clusters of blocks are not supported on the CPU";
  if (name == "__managed__") return "managed variables are not supported on the CPU";
  return nullptr;
}

bool is_cuda_convergent_operation(StringRef name) {
  return name == "cg" || name == "cooperative_groups" ||
         begins_with_any(name, {"__shfl_", "__ballot_sync", "__any_sync", "__all_sync", "__activemask", "__match_",
                                "__reduce_", "__sync"});
}

bool is_known_cuda_header(StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases("cuda_fp16.h", "cuda_bf16.h", "cooperative_groups.h", "cooperative_groups/reduce.h",
             "cooperative_groups/scan.h", "cooperative_groups/memcpy_async.h", true)
      .Cases("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "math_constants.h", true)
      .Case("cuComplex.h", true)
      .Cases("vector_types.h", "vector_functions.h", "device_functions.h", "math_functions.h", "sm_20_intrinsics.h",
             true)
      .Cases("math.h", "cmath", "stdint.h", "cstdint", "float.h", "cfloat", "limits.h", "climits", true)
      .Cases("stdio.h", "cstdio", "assert.h", "cassert", "stddef.h", "cstddef", true)
      .Case("mlx/backend/cuda/device/utils.cuh", true)
      .Default(false);
}

bool is_unsupported_cuda_header(StringRef name) {
  return name.starts_with("cuda/") || name.starts_with("cub/") || name.starts_with("thrust/") ||
         name.starts_with("cooperative_groups/") || name.starts_with("cute/") || name.starts_with("cutlass/") ||
         name.starts_with("curand") || name.starts_with("mlx/") || name.starts_with("cuda_") || name == "mma.h";
}

std::string in_cuda_words(std::string message) {
  constexpr std::pair<StringRef, StringRef> kNames[] = {{"mlx::core::cu::", ""},
                                                        {"__kiln_long_long", "long long"},
                                                        {"__kiln_unsigned_long_long", "unsigned long long"},
                                                        {"__kiln_unsigned_short", "unsigned short"},
                                                        {"__kiln_unsigned", "unsigned int"}};
  for (auto [internal_name, cuda_name] : kNames)
    for (size_t at; (at = message.find(internal_name.str())) != std::string::npos;)
      message.replace(at, internal_name.size(), cuda_name.str());
  // The types of `threadIdx` and its like (device/cuda/vectors.h), whatever the template argument.
  for (auto [internal_name, cuda_name] :
       {std::pair("__kiln::uint3_of<", "uint3"), std::pair("__kiln::dim3_of<", "dim3")})
    for (size_t at; (at = message.find(internal_name)) != std::string::npos;)
      message.replace(at, message.find('>', at) + 1 - at, cuda_name);
  return message;
}

}  // namespace kiln
