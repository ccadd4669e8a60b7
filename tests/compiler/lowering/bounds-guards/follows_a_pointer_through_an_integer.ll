; A body may compute an address as an integer. If one pointer goes into it, that pointer's bounds hold. With two there
; is no telling which one is meant: any argument whose address became an integer is allowed, and no other.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,in:4,in:4 %s | FileCheck %s

; CHECK-LABEL: define i32 @one(
; CHECK: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %a_bytes, i64 3)
; CHECK: [[IS_IN:%.*]] = icmp ult i64 {{.*}}, [[STARTS]]
; CHECK-NEXT: [[SOURCE:%.*]] = select i1 [[IS_IN]], ptr %p, ptr @__kiln_zeros
; CHECK-NEXT: %x = load i32, ptr [[SOURCE]]
define i32 @one(ptr %a, i64 %a_first, i64 %a_bytes, ptr %b, i64 %b_first, i64 %b_bytes, ptr %c, i64 %c_first,
                i64 %c_bytes, i64 %i) {
  %address = ptrtoint ptr %a to i64
  %moved = add i64 %address, %i
  %aligned = and i64 %moved, -16
  %p = inttoptr i64 %aligned to ptr
  %x = load i32, ptr %p
  ret i32 %x
}

; CHECK-LABEL: define i32 @two(
; CHECK-NOT: usub.sat.i64(i64 %c_bytes
; CHECK-DAG: [[A_STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %a_bytes, i64 3)
; CHECK-DAG: [[B_STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %b_bytes, i64 3)
; CHECK: [[IN_A:%.*]] = icmp ult i64 {{.*}}, [[A_STARTS]]
; CHECK: [[IN_A_OR_NONE:%.*]] = or i1 {{.*}}, [[IN_A]]
; CHECK: [[IN_B:%.*]] = icmp ult i64 {{.*}}, [[B_STARTS]]
; CHECK: [[IN_ANY:%.*]] = or i1 [[IN_A_OR_NONE]], [[IN_B]]
; CHECK: [[IS_IN:%.*]] = select i1 true, i1 [[IN_ANY]],
; CHECK: select i1 [[IS_IN]], ptr %p, ptr @__kiln_zeros
; CHECK-NOT: usub.sat.i64(i64 %c_bytes
; CHECK: ret i32
define i32 @two(ptr %a, i64 %a_first, i64 %a_bytes, ptr %b, i64 %b_first, i64 %b_bytes, ptr %c, i64 %c_first,
                i64 %c_bytes) {
  %x = ptrtoint ptr %a to i64
  %y = ptrtoint ptr %b to i64
  %sum = add i64 %x, %y
  %p = inttoptr i64 %sum to ptr
  %v = load i32, ptr %p
  ret i32 %v
}
