// Implicit conversions between half and bfloat.
//
// Metal converts each to the other; Clang 19 has no such conversion ("currently not supported", says
// Sema::IsFloatingPointConversion, although code for it can be generated) and no option to allow it. Rejected: class
// types with operators, which would make two scalar types behave like classes in overloads, constants and vectors.
// Instead, before Clang converts one type to the other, this patch inserts a conversion to float, which is exact.
//
// The linker redirects calls between Clang's libraries to these functions (--wrap in CMakeLists.txt): every conversion
// by a cast or an initialisation goes through the first, every assignment through the second.
#include <clang/AST/ASTContext.h>
#include <clang/AST/Expr.h>
#include <clang/Sema/Initialization.h>
#include <clang/Sema/Sema.h>

namespace {

bool are_half_and_bfloat(clang::QualType a, clang::QualType b) {
  return (a->isFloat16Type() && b->isBFloat16Type()) || (a->isBFloat16Type() && b->isFloat16Type());
}

// Converts the expression to float if it has one of the two types and `to` is the other.
clang::Expr* through_float(clang::Sema& sema, clang::Expr* from, clang::QualType to) {
  if (!from || from->isTypeDependent() || to.isNull() || to->isDependentType()) return from;
  if (to->isReferenceType() || !are_half_and_bfloat(from->getType(), to)) return from;
  clang::ExprResult value = sema.DefaultLvalueConversion(from);
  if (value.isInvalid()) return from;
  clang::ASTContext& context = sema.getASTContext();
  value = sema.ImpCastExprToType(value.get(), context.FloatTy, clang::CK_FloatingCast);
  // The parentheses keep Clang from merging two consecutive conversions into one.
  return new (context) clang::ParenExpr(from->getBeginLoc(), from->getEndLoc(), value.get());
}

}  // namespace

// By the ABI, member functions are called like functions whose first parameter is the object.
#define KILN_INITIALIZATION                             \
  "_ZN5clang22InitializationSequenceC1ERNS_4SemaERKNS_" \
  "17InitializedEntityERKNS_18InitializationKindEN4llvm15MutableArrayRefIPNS_4ExprEEEbb"
#define KILN_ASSIGNMENT "_ZN5clang4Sema25PerformImplicitConversionEPNS_4ExprENS_8QualTypeENS0_16AssignmentActionEb"

void initialize(clang::InitializationSequence*, clang::Sema&, const clang::InitializedEntity&,
                const clang::InitializationKind&, clang::MultiExprArg, bool, bool) asm("__real_" KILN_INITIALIZATION);
clang::ExprResult assign(clang::Sema*, clang::Expr*, clang::QualType, clang::Sema::AssignmentAction,
                         bool) asm("__real_" KILN_ASSIGNMENT);

void initialize_through_float(clang::InitializationSequence*, clang::Sema&, const clang::InitializedEntity&,
                              const clang::InitializationKind&, clang::MultiExprArg, bool,
                              bool) asm("__wrap_" KILN_INITIALIZATION);
clang::ExprResult assign_through_float(clang::Sema*, clang::Expr*, clang::QualType, clang::Sema::AssignmentAction,
                                       bool) asm("__wrap_" KILN_ASSIGNMENT);

// Clang's caller owns the array and continues with the expression stored here.
void initialize_through_float(clang::InitializationSequence* self, clang::Sema& sema,
                              const clang::InitializedEntity& entity, const clang::InitializationKind& kind,
                              clang::MultiExprArg from, bool is_list, bool unavailable_is_invalid) {
  if (from.size() == 1) from[0] = through_float(sema, from[0], entity.getType());
  initialize(self, sema, entity, kind, from, is_list, unavailable_is_invalid);
}

clang::ExprResult assign_through_float(clang::Sema* sema, clang::Expr* from, clang::QualType to,
                                       clang::Sema::AssignmentAction action, bool allow_explicit) {
  return assign(sema, through_float(*sema, from, to), to, action, allow_explicit);
}
