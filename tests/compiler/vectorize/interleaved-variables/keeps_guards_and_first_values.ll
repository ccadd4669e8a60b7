; A guard chooses between an element and memory of zeros, which all lanes share: it has no lane's base. A first value is
; stored to each element, and by active lanes alone.
; RUN: kiln-opt --passes=interleaved-variables %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; CHECK-LABEL: define i16 @guarded(
; CHECK: %[[OWN:.*]] = getelementptr i8, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NOT: memset
; CHECK: store i16 257, ptr
; CHECK: %[[SECOND:.*]] = getelementptr i8, ptr %[[OWN]], i64 64
; CHECK: store i16 257, ptr %[[SECOND]]
; CHECK: store i16 257, ptr
; CHECK-NOT: store
; CHECK: %[[AT:.*]] = getelementptr i8, ptr %[[OWN]]
; CHECK: select i1 %inside, ptr %[[AT]], ptr @__kiln_zeros.64
define i16 @guarded(i64 %i) {
  %w = alloca [3 x i16], align 2
  call void @llvm.memset.p0.i64(ptr %w, i8 1, i64 6, i1 false)
  %inside = icmp ult i64 %i, 3
  %at = getelementptr i16, ptr %w, i64 %i
  %address = select i1 %inside, ptr %at, ptr @__kiln_zeros.64
  %r = load i16, ptr %address
  ret i16 %r
}
