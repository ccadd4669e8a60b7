; Lanes whose elements are consecutive in another order load one vector and permute it, where the guards of all lanes
; allow it; otherwise each lane loads by itself. InstCombine may have narrowed a guard's comparison to any width: the
; limit of the whole vector is computed in 64 bits.
; RUN: kiln-opt --passes=widen --full %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @swapped_i32(
; CHECK: %[[LIMIT:.*]] = zext i32 %limit to i64
; CHECK: %[[REDUCED:.*]] = call i64 @llvm.usub.sat.i64(i64 %[[LIMIT]], i64 31)
; CHECK: %[[IN_BOUNDS:.*]] = icmp ult i64 %{{.*}}, %[[REDUCED]]
; CHECK: %[[V:.*]] = load <32 x i8>, ptr
; CHECK: shufflevector <32 x i8> %[[V]], <32 x i8> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, {{.*}}, i32 31, i32 30>
define void @swapped_i32(ptr %x, ptr %y, i32 %limit) {
  %lane = call i32 @__kiln_lane()
  %from = xor i32 %lane, 1
  %in_bounds = icmp ult i32 %from, %limit
  %i = zext nneg i32 %from to i64
  %element = getelementptr i8, ptr %x, i64 %i
  %address = select i1 %in_bounds, ptr %element, ptr @__kiln_zeros.64
  %v = load i8, ptr %address
  %j = zext i32 %lane to i64
  %to = getelementptr i8, ptr %y, i64 %j
  store i8 %v, ptr %to
  ret void
}

; In 8 bits the distance from the first element to the last, 248 bytes, would be a negative number.
; CHECK-LABEL: define void @swapped_i8(
; CHECK: %[[LIMIT:.*]] = zext i8 %limit to i64
; CHECK: call i64 @llvm.usub.sat.i64(i64 %[[LIMIT]], i64 248)
; CHECK: load <32 x i64>, ptr
define void @swapped_i8(ptr %x, ptr %y, i8 %limit) {
  %lane = call i32 @__kiln_lane()
  %from = xor i32 %lane, 1
  %bytes = mul i32 %from, 8
  %narrow = trunc i32 %bytes to i8
  %in_bounds = icmp ult i8 %narrow, %limit
  %i = zext nneg i32 %bytes to i64
  %element = getelementptr i8, ptr %x, i64 %i
  %address = select i1 %in_bounds, ptr %element, ptr @__kiln_zeros.64
  %v = load i64, ptr %address
  %j = zext i32 %lane to i64
  %to = getelementptr i64, ptr %y, i64 %j
  store i64 %v, ptr %to
  ret void
}
