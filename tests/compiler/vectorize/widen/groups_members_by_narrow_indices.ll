; Members whose indices are extended one by one, as with a `uint`, which may wrap between them. Where the guard's offset
; is such an index too, its limit is less than where the index ends, by the reach of all members: no check is added.
; Without a guard the last lane's highest address is compared with the first lane's lowest one.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()
@__kiln_zeros.64 = external global [64 x i8]

; CHECK-LABEL: define void @guarded(
; 32 bits of index, 3 members of 4 bytes in 32 lanes: up to the last one's beginning there are 380 bytes, and a checked
; load reads whole structures.
; CHECK: [[END:%.+]] = call i64 @llvm.umin.i64(i64 %limit, i64 17179869184)
; CHECK: call i64 @llvm.usub.sat.i64(i64 [[END]], i64 380)
; CHECK: br i1 %{{.+}}, label %row, label %lanes
; CHECK: row:
; CHECK-COUNT-6: load <16 x float>
; CHECK-NOT: load <16 x float>
; CHECK: lanes:
; CHECK-COUNT-3: call <32 x float> @llvm.masked.gather
; CHECK: ret void
define void @guarded(ptr %x, ptr noalias %y, i32 %first, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %lane, %first
  %n0 = mul i32 %i, 3
  %n1 = add i32 %n0, 1
  %n2 = add i32 %n0, 2
  %w0 = zext i32 %n0 to i64
  %w1 = zext i32 %n1 to i64
  %w2 = zext i32 %n2 to i64
  %o0 = shl i64 %w0, 2
  %o1 = shl i64 %w1, 2
  %o2 = shl i64 %w2, 2
  %in0 = icmp ult i64 %o0, %limit
  %in1 = icmp ult i64 %o1, %limit
  %in2 = icmp ult i64 %o2, %limit
  %p0 = getelementptr float, ptr %x, i64 %w0
  %p1 = getelementptr float, ptr %x, i64 %w1
  %p2 = getelementptr float, ptr %x, i64 %w2
  %q0 = select i1 %in0, ptr %p0, ptr @__kiln_zeros.64
  %q1 = select i1 %in1, ptr %p1, ptr @__kiln_zeros.64
  %q2 = select i1 %in2, ptr %p2, ptr @__kiln_zeros.64
  %a = load float, ptr %q0
  %b = load float, ptr %q1
  %c = load float, ptr %q2
  %ab = fadd float %a, %b
  %s = fadd float %ab, %c
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}

; 31 strides of 8 bytes and one member of 4.
; CHECK-LABEL: define void @unguarded(
; CHECK: icmp eq i64 %{{.+}}, 252
; CHECK: br i1 %{{.+}}, label %row, label %lanes
; CHECK: row:
; CHECK-COUNT-4: store <16 x float>
; CHECK: lanes:
; CHECK-COUNT-2: call void @llvm.masked.scatter
define void @unguarded(ptr %x, i32 %first, float %v) {
  %lane = call i32 @__kiln_lane()
  %twice = shl i32 %lane, 1
  %n1 = add i32 %twice, %first
  %n0 = add i32 %n1, -1
  %w0 = zext i32 %n0 to i64
  %w1 = zext i32 %n1 to i64
  %p0 = getelementptr float, ptr %x, i64 %w0
  %p1 = getelementptr float, ptr %x, i64 %w1
  %f = uitofp i32 %lane to float
  store float %f, ptr %p0
  store float %v, ptr %p1
  ret void
}

; The second guard is another number's: each load has a check of its own.
; CHECK-LABEL: define void @guarded_by_another_number(
; CHECK-COUNT-2: label %row
define void @guarded_by_another_number(ptr %x, ptr noalias %y, i32 %first, i32 %other, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %lane, %first
  %j = add i32 %lane, %other
  %n0 = mul i32 %i, 3
  %n1 = add i32 %n0, 1
  %m1 = mul i32 %j, 3
  %w0 = zext i32 %n0 to i64
  %w1 = zext i32 %n1 to i64
  %g1 = zext i32 %m1 to i64
  %o0 = shl i64 %w0, 2
  %o1 = shl i64 %g1, 2
  %in0 = icmp ult i64 %o0, %limit
  %in1 = icmp ult i64 %o1, %limit
  %p0 = getelementptr float, ptr %x, i64 %w0
  %p1 = getelementptr float, ptr %x, i64 %w1
  %q0 = select i1 %in0, ptr %p0, ptr @__kiln_zeros.64
  %q1 = select i1 %in1, ptr %p1, ptr @__kiln_zeros.64
  %a = load float, ptr %q0
  %b = load float, ptr %q1
  %s = fadd float %a, %b
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}
