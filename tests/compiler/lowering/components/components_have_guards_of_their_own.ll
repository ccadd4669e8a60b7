; The guard of a vector's address becomes one of each component's. An address that is guarded otherwise stays as it is.
; RUN: kiln-opt --passes=components %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: define void @guarded(
; CHECK: %[[P:.*]] = getelementptr <2 x float>, ptr %x, i64 %i
; CHECK: getelementptr {{.*}}, ptr %[[P]], i{{32|64}} {{1|4}}
; CHECK: select i1 %c, ptr %{{.*}}, ptr @__kiln_zeros.64
; CHECK: load float
define void @guarded(ptr %x, ptr %y, i64 %i, i1 %c) {
  %p = getelementptr <2 x float>, ptr %x, i64 %i
  %from = select i1 %c, ptr %p, ptr @__kiln_zeros.64
  %v = load <2 x float>, ptr %from, align 4
  store <2 x float> %v, ptr %y, align 4
  ret void
}

; CHECK-LABEL: define void @chosen(
; CHECK: %[[P:.*]] = select i1 %c, ptr %x, ptr %z
; CHECK: getelementptr {{.*}}, ptr %[[P]], i{{32|64}} {{1|4}}
; CHECK-NOT: select
; CHECK: ret void
define void @chosen(ptr %x, ptr %z, ptr %y, i1 %c) {
  %from = select i1 %c, ptr %x, ptr %z
  %v = load <2 x float>, ptr %from, align 4
  store <2 x float> %v, ptr %y, align 4
  ret void
}
