// Products of matrices that a simdgroup holds together (device/metal_stdlib/simdgroup_matrix.h).
//
// A thread computes two elements of a row of the product, from the row of `a` and two columns of `b`. The lanes that
// hold those are the same for all products. There is a step for each k, in which a lane takes one element of `a` and
// two of `b` from other lanes. An engine that has all lanes in vectors permutes them (widener_matrices.cpp); a GPU has
// instructions for whole matrices (nvptx/tensor_products.h). For threads that run independently the steps are ordinary
// collectives.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <utility>

namespace kiln {

inline constexpr unsigned kMatrixSize = 8;

// The elements of one thread: two of each of a, b and c.
struct MatrixElements {
  llvm::Value* a[2];
  llvm::Value* b[2];
  llvm::Value* c[2];
};

// The type of elements before they became floats; as in device/engine/thread.h.
enum class MatrixType : uint32_t { kFloat = 0, kHalf = 1, kBfloat = 2 };

bool is_matrix_product(const llvm::Instruction& instruction);

/// Operands of a call of `__kiln_matrix_product`.
MatrixElements elements_of(const llvm::CallInst& product);
std::pair<MatrixType, MatrixType> types_of(const llvm::CallInst& product);

// Maps lanes to elements: two adjacent columns of a row.
enum class MatrixMap {
  kApple,   // the bits of lane l: row (l4 l2 l1), columns (l3 l0 ·)
  kTensor,  // row (l4 l3 l2), columns (l1 l0 ·), the layout of GPUs' instructions for matrices
};

/// Replaces `__kiln_matrix_lane`, from which threads compute their elements.
void assign_matrix_elements(llvm::Module& module, MatrixMap map);

/// The lane that has the element (row, k) of a, for a lane of that row; the element is its `k % 2`th.
constexpr unsigned lane_in_row(unsigned lane, unsigned k) { return (lane & 0x16) | (k & 4) << 1 | (k >> 1 & 1); }
/// The lane that has the elements (k, column) of b, for a lane of those columns.
constexpr unsigned lane_in_column(unsigned lane, unsigned k) { return (lane & 9) | (k & 4) << 2 | (k & 3) << 1; }

// For each k, the lane that has a's element of a lane's row, and the lane that has b's elements of its columns.
struct MatrixSources {
  llvm::Value* row[kMatrixSize];
  llvm::Value* columns[kMatrixSize];
};
MatrixSources matrix_sources(llvm::Value* lane, MatrixMap map, llvm::IRBuilder<>& builder);

/// a b + c, in float, of ascending k with one fma each; `shuffle` gives the value of another lane. Returns both
/// elements.
std::pair<llvm::Value*, llvm::Value*> multiply_by_lanes(
    const MatrixElements& elements, const MatrixSources& sources, llvm::IRBuilder<>& builder,
    llvm::function_ref<llvm::Value*(llvm::Value* value, llvm::Value* source)> shuffle);

/// Packs both elements as the result of a call.
llvm::Value* packed(llvm::Value* first, llvm::Value* second, llvm::IRBuilder<>& builder);

/// Replaces all products by collectives, for number_convergence_points().
void expand_matrix_products(llvm::Function& function);

}  // namespace kiln
