; Indices of 32 bits may wrap between `x[3 * i]` and `x[3 * i + 1]`. One check for the group shows that they do not; it
; is below the end of the extended numbers. Without guards there is no check, and each member has its own address.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()
@__kiln_zeros.64 = external global [64 x i8]

; CHECK-LABEL: define void @guarded(
; CHECK: call i64 @llvm.umin.i64(i64 %limit, i64 4294967296)
; CHECK: call i64 @llvm.usub.sat.i64(i64 %{{.+}}, i64 95)
; CHECK-COUNT-6: load <16 x i8>, ptr
; CHECK-NOT: load <16 x i8>, ptr
; CHECK: ret void
define void @guarded(ptr %x, ptr %y, i64 %limit, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %n0 = mul i32 %i, 3
  %n1 = add i32 %n0, 1
  %n2 = add i32 %n0, 2
  %o0 = zext i32 %n0 to i64
  %o1 = zext i32 %n1 to i64
  %o2 = zext i32 %n2 to i64
  %p0 = getelementptr i8, ptr %x, i64 %o0
  %p1 = getelementptr i8, ptr %x, i64 %o1
  %p2 = getelementptr i8, ptr %x, i64 %o2
  %in0 = icmp ult i64 %o0, %limit
  %in1 = icmp ugt i64 %limit, %o1
  %in2 = icmp ult i64 %o2, %limit
  %g0 = select i1 %in0, ptr %p0, ptr @__kiln_zeros.64
  %g1 = select i1 %in1, ptr %p1, ptr @__kiln_zeros.64
  %g2 = select i1 %in2, ptr %p2, ptr @__kiln_zeros.64
  %a = load i8, ptr %g0
  %b = load i8, ptr %g1
  %c = load i8, ptr %g2
  %ab = xor i8 %a, %b
  %s = xor i8 %ab, %c
  %l = zext i32 %lane to i64
  %to = getelementptr i8, ptr %y, i64 %l
  store i8 %s, ptr %to
  ret void
}

; CHECK-LABEL: define void @without_guards(
; CHECK-COUNT-8: load <{{32|16}} x i8>, ptr
; CHECK: ret void
define void @without_guards(ptr %x, ptr %y, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %n0 = mul i32 %i, 3
  %n1 = add i32 %n0, 1
  %o0 = zext i32 %n0 to i64
  %o1 = zext i32 %n1 to i64
  %p0 = getelementptr i8, ptr %x, i64 %o0
  %p1 = getelementptr i8, ptr %x, i64 %o1
  %a = load i8, ptr %p0
  %b = load i8, ptr %p1
  %s = xor i8 %a, %b
  %l = zext i32 %lane to i64
  %to = getelementptr i8, ptr %y, i64 %l
  store i8 %s, ptr %to
  ret void
}

; The guard compares another index than that of the address.
; CHECK-LABEL: define void @another_offset(
; CHECK-NOT: i64 4294967296
; CHECK: ret void
define void @another_offset(ptr %x, ptr %y, i64 %limit, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %n0 = mul i32 %i, 3
  %n1 = add i32 %n0, 1
  %o0 = zext i32 %n0 to i64
  %o1 = sext i32 %n1 to i64
  %u1 = zext i32 %n1 to i64
  %p0 = getelementptr i8, ptr %x, i64 %o0
  %p1 = getelementptr i8, ptr %x, i64 %u1
  %in1 = icmp ult i64 %o1, %limit
  %g1 = select i1 %in1, ptr %p1, ptr @__kiln_zeros.64
  %b = load i8, ptr %g1
  %l = zext i32 %lane to i64
  %to = getelementptr i8, ptr %y, i64 %l
  store i8 %b, ptr %to
  ret void
}
