; Members with guards of their own at indices of 32 bits, which may wrap between them. One check of all lanes, against
; the guards' limit or the end of the indices, less the distance of the last member, selects the transposed parts. Lanes
; that are outside, or whose members wrap, make all load by themselves.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()
@__kiln_zeros.64 = external global [64 x i8]

; CHECK-LABEL: define void @unsigned(
; CHECK: %[[END:.*]] = call i64 @llvm.umin.i64(i64 %limit, i64 17179869184)
; CHECK: call i64 @llvm.usub.sat.i64(i64 %[[END]], i64 12)
; CHECK-NOT: usub.sat
; CHECK: br i1 %{{.*}}, label %records, label %members
; CHECK: records:
; CHECK-COUNT-32: load <4 x float>
; CHECK: members:
; CHECK-COUNT-4: call <32 x float> @llvm.masked.gather
; CHECK: ret void
define void @unsigned(ptr %x, ptr noalias %y, ptr %index, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %n0 = load i32, ptr %at, !invariant.load !0
  %n1 = add i32 %n0, 1
  %n2 = add i32 %n0, 2
  %n3 = add i32 %n0, 3
  %w0 = zext i32 %n0 to i64
  %w1 = zext i32 %n1 to i64
  %w2 = zext i32 %n2 to i64
  %w3 = zext i32 %n3 to i64
  %o0 = shl i64 %w0, 2
  %o1 = shl i64 %w1, 2
  %o2 = shl i64 %w2, 2
  %o3 = shl i64 %w3, 2
  %in0 = icmp ult i64 %o0, %limit
  %in1 = icmp ult i64 %o1, %limit
  %in2 = icmp ult i64 %o2, %limit
  %in3 = icmp ult i64 %o3, %limit
  %p0 = getelementptr float, ptr %x, i64 %w0
  %p1 = getelementptr float, ptr %x, i64 %w1
  %p2 = getelementptr float, ptr %x, i64 %w2
  %p3 = getelementptr float, ptr %x, i64 %w3
  %q0 = select i1 %in0, ptr %p0, ptr @__kiln_zeros.64
  %q1 = select i1 %in1, ptr %p1, ptr @__kiln_zeros.64
  %q2 = select i1 %in2, ptr %p2, ptr @__kiln_zeros.64
  %q3 = select i1 %in3, ptr %p3, ptr @__kiln_zeros.64
  %a = load float, ptr %q0
  %b = load float, ptr %q1
  %c = load float, ptr %q2
  %d = load float, ptr %q3
  %ab = fadd float %a, %b
  %cd = fadd float %c, %d
  %s = fadd float %ab, %cd
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}

; Guards that are uniform, each of its own member, are no check of the lanes: each lane's records lie in one of two
; arrays.
; CHECK-LABEL: define void @uniform_guards(
; CHECK-NOT: label %records
; CHECK-NOT: load <4 x float>
; CHECK: ret void
define void @uniform_guards(ptr %x, ptr %z, ptr noalias %y, ptr %index, i64 %offset, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %which = icmp eq i32 %j, 0
  %from = select i1 %which, ptr %x, ptr %z
  %o1 = add i64 %offset, 4
  %o2 = add i64 %offset, 8
  %o3 = add i64 %offset, 12
  %in0 = icmp ult i64 %offset, %limit
  %in1 = icmp ult i64 %o1, %limit
  %in2 = icmp ult i64 %o2, %limit
  %in3 = icmp ult i64 %o3, %limit
  %p0 = getelementptr i8, ptr %from, i64 %offset
  %p1 = getelementptr i8, ptr %from, i64 %o1
  %p2 = getelementptr i8, ptr %from, i64 %o2
  %p3 = getelementptr i8, ptr %from, i64 %o3
  %q0 = select i1 %in0, ptr %p0, ptr @__kiln_zeros.64
  %q1 = select i1 %in1, ptr %p1, ptr @__kiln_zeros.64
  %q2 = select i1 %in2, ptr %p2, ptr @__kiln_zeros.64
  %q3 = select i1 %in3, ptr %p3, ptr @__kiln_zeros.64
  %a = load float, ptr %q0
  %b = load float, ptr %q1
  %c = load float, ptr %q2
  %d = load float, ptr %q3
  %ab = fadd float %a, %b
  %cd = fadd float %c, %d
  %s = fadd float %ab, %cd
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}

!0 = !{}
