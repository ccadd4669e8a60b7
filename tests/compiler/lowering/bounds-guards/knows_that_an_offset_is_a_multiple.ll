; An offset that is a multiple of the access's size ends at such a multiple: four numbers from 4 * k on, with 4 * k below
; 15 by an interval that ends at 14, end in an array of 16. From 2 * k on they may not, nor from 4 * k + 1 on.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

; CHECK-LABEL: define void @four(
; CHECK-NOT: select
; CHECK: store <4 x i32> zeroinitializer, ptr %a
define void @four(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %k) {
entry:
  %v = alloca [16 x i32]
  %i = shl i64 %k, 2
  %fits = icmp ult i64 %i, 15
  br i1 %fits, label %then, label %end
then:
  %a = getelementptr [16 x i32], ptr %v, i64 0, i64 %i
  store <4 x i32> zeroinitializer, ptr %a
  br label %end
end:
  ret void
}

; CHECK-LABEL: define void @two(
; CHECK: [[TARGET:%.*]] = select i1 {{.*}}, ptr %a,
; CHECK: store <4 x i32> zeroinitializer, ptr [[TARGET]]
define void @two(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %k) {
entry:
  %v = alloca [16 x i32]
  %i = shl i64 %k, 1
  %fits = icmp ult i64 %i, 15
  br i1 %fits, label %then, label %end
then:
  %a = getelementptr [16 x i32], ptr %v, i64 0, i64 %i
  store <4 x i32> zeroinitializer, ptr %a
  br label %end
end:
  ret void
}

; CHECK-LABEL: define void @one_further(
; CHECK: [[TARGET:%.*]] = select i1 {{.*}}, ptr %b,
; CHECK: store <4 x i32> zeroinitializer, ptr [[TARGET]]
define void @one_further(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %k) {
entry:
  %v = alloca [16 x i32]
  %i = shl i64 %k, 2
  %fits = icmp ult i64 %i, 15
  br i1 %fits, label %then, label %end
then:
  %a = getelementptr [16 x i32], ptr %v, i64 0, i64 %i
  %b = getelementptr i32, ptr %a, i64 1
  store <4 x i32> zeroinitializer, ptr %b
  br label %end
end:
  ret void
}

; Which object it is, is not known.
; CHECK-LABEL: define void @either(
; CHECK: select i1 {{.*}}, ptr %a,
define void @either(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %k, i1 %c) {
entry:
  %v = alloca [16 x i32]
  %w = alloca [16 x i32]
  %i = shl i64 %k, 2
  %fits = icmp ult i64 %i, 15
  br i1 %fits, label %then, label %end
then:
  %u = select i1 %c, ptr %v, ptr %w
  %a = getelementptr [16 x i32], ptr %u, i64 0, i64 %i
  store <4 x i32> zeroinitializer, ptr %a
  br label %end
end:
  ret void
}
