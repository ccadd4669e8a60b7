; One half is converted and compared by the code generator as well.
; RUN: kiln-opt --passes=half-operations %s | FileCheck %s

; CHECK-LABEL: define i1 @one(
; CHECK-NEXT: fcmp oeq half %x, %y
define i1 @one(half %x, half %y) {
  %c = fcmp oeq half %x, %y
  ret i1 %c
}
