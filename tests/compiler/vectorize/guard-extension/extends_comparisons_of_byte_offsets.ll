; InstCombine narrows a guard whose offset and limit are small. Where the address is a base plus the extended offset, the
; comparison is extended to 64 bits again, whichever operand the offset is, for zeros of loads and sinks of stores.
; RUN: kiln-opt --passes=guard-extension %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer
@__kiln_sink.4 = internal global [4 x i8] zeroinitializer

declare i32 @__kiln_lane()

; CHECK-LABEL: define i8 @load(
; CHECK: %[[OFFSET:.*]] = zext i32 %from to i64
; CHECK: %[[LIMIT:.*]] = zext i32 %limit to i64
; CHECK: icmp ult i64 %[[OFFSET]], %[[LIMIT]]
define i8 @load(ptr %x, i32 %limit) {
  %lane = call i32 @__kiln_lane()
  %from = xor i32 %lane, 1
  %in_bounds = icmp ult i32 %from, %limit
  %i = zext nneg i32 %from to i64
  %element = getelementptr i8, ptr %x, i64 %i
  %address = select i1 %in_bounds, ptr %element, ptr @__kiln_zeros.64
  %v = load i8, ptr %address
  ret i8 %v
}

; An offset in bytes of larger elements, below another address, in 16 bits.
; CHECK-LABEL: define void @store(
; CHECK: %[[OFFSET:.*]] = zext i16 %bytes to i64
; CHECK: icmp ugt i64 60, %[[OFFSET]]
define void @store(ptr %x, float %v) {
  %lane = call i32 @__kiln_lane()
  %narrow = trunc i32 %lane to i16
  %bytes = mul i16 %narrow, 4
  %in_bounds = icmp ugt i16 60, %bytes
  %i = zext i16 %bytes to i64
  %row = getelementptr i8, ptr %x, i64 %i
  %element = getelementptr i8, ptr %row, i64 8
  %address = select i1 %in_bounds, ptr %element, ptr @__kiln_sink.4
  store float %v, ptr %address
  ret void
}

; A load that is the same for all lanes is part of an offset, such as the number of elements in `n - 1 - lane`.
; CHECK-LABEL: define i8 @reversed(
; CHECK: icmp ult i64 %{{.*}}, 40
define i8 @reversed(ptr %x, ptr %arguments) {
  %lane = call i32 @__kiln_lane()
  %count = load i32, ptr %arguments, !invariant.load !0
  %last = add i32 %count, -1
  %from = sub i32 %last, %lane
  %in_bounds = icmp ult i32 %from, 40
  %i = zext i32 %from to i64
  %element = getelementptr i8, ptr %x, i64 %i
  %address = select i1 %in_bounds, ptr %element, ptr @__kiln_zeros.64
  %v = load i8, ptr %address
  ret i8 %v
}

; Of elements' indices both sides are multiplied by an element's size.
; CHECK-LABEL: define float @index(
; CHECK: %[[INDEX:.*]] = zext i32 %lane to i64
; CHECK: %[[OFFSET:.*]] = mul i64 %[[INDEX]], 4
; CHECK: icmp ult i64 %[[OFFSET]], 64
define float @index(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %in_bounds = icmp ult i32 %lane, 16
  %i = zext nneg i32 %lane to i64
  %element = getelementptr float, ptr %x, i64 %i
  %address = select i1 %in_bounds, ptr %element, ptr @__kiln_zeros.64
  %v = load float, ptr %address
  ret float %v
}

!0 = !{}
