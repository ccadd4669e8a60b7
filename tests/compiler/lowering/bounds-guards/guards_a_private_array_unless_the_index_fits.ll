; An access to a private array is guarded by its offset alone, without making an integer of the address. It needs no
; guard if the index is known to fit; the border is the first index that may be 8 in an array of 8. A store at a
; constant index outside is removed.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

; CHECK-LABEL: define void @any_index(
; CHECK: [[SINK:%.*]] = alloca [64 x i8]
; CHECK: %v = alloca [8 x i32]
; CHECK-NOT: ptrtoint
; CHECK: [[IS_IN:%.*]] = icmp ult i64 {{.*}}, 29
; CHECK: [[TARGET:%.*]] = select i1 [[IS_IN]], ptr %a, ptr [[SINK]]
; CHECK: store i32 1, ptr [[TARGET]]
define void @any_index(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %v = alloca [8 x i32]
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 %i
  store i32 1, ptr %a
  ret void
}

; CHECK-LABEL: define void @up_to_7(
; CHECK-NOT: select
; CHECK: store i32 1, ptr %a
define void @up_to_7(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %v = alloca [8 x i32]
  %m = and i64 %i, 7
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 %m
  store i32 1, ptr %a
  ret void
}

; CHECK-LABEL: define void @up_to_8(
; CHECK: [[TARGET:%.*]] = select i1 {{.*}}, ptr %a,
; CHECK: store i32 1, ptr [[TARGET]]
define void @up_to_8(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %v = alloca [8 x i32]
  %m = urem i64 %i, 9
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 %m
  store i32 1, ptr %a
  ret void
}

; CHECK-LABEL: define void @behind_a_comparison(
; CHECK-NOT: select
; CHECK: store i32 1, ptr %a
define void @behind_a_comparison(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %v = alloca [8 x i32]
  %c = icmp ult i64 %i, 8
  br i1 %c, label %inside, label %end

inside:
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 %i
  store i32 1, ptr %a
  br label %end

end:
  ret void
}

; CHECK-LABEL: define void @constants(
; CHECK: store i32 7, ptr %a
; CHECK-NOT: store i32 8
; CHECK: ret void
define void @constants(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out, i64 %out_first, i64 %out_bytes, ptr %thread) {
  %v = alloca [8 x i32]
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 7
  store i32 7, ptr %a
  %b = getelementptr [8 x i32], ptr %v, i64 0, i64 8
  store i32 8, ptr %b
  ret void
}
