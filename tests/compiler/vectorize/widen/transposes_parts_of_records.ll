; Members of records at indices that data choose. Four words are 16 bytes of each lane, which are transposed. Three are
; with AVX2, whose gathers take longer; two are gathered.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,V4
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,V3

declare i32 @__kiln_lane()
@__kiln_zeros.64 = external global [64 x i8]

; CHECK-LABEL: define void @four_words(
; CHECK-NOT: gather
; CHECK-COUNT-32: load <4 x float>, ptr %{{.*}}, align 4
; CHECK-NOT: load <4 x float>
; CHECK-NOT: gather
; CHECK: ret void
define void @four_words(ptr %x, ptr noalias %y, ptr %index) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %n = sext i32 %j to i64
  %p0 = getelementptr [4 x float], ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %p0, i64 4
  %p2 = getelementptr i8, ptr %p0, i64 8
  %p3 = getelementptr i8, ptr %p0, i64 12
  %a = load float, ptr %p0
  %b = load float, ptr %p1
  %c = load float, ptr %p2
  %d = load float, ptr %p3
  %ab = fadd float %a, %b
  %cd = fadd float %c, %d
  %s = fadd float %ab, %cd
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}

; Without a guard nothing beyond the last member is read: two words and one.
; CHECK-LABEL: define void @three_words(
; V4-COUNT-3: call <32 x float> @llvm.masked.gather
; V3-NOT: gather
; V3-COUNT-32: load <1 x float>
; V3-NOT: load <4 x float>
; CHECK: ret void
define void @three_words(ptr %x, ptr noalias %y, ptr %index) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %n = sext i32 %j to i64
  %p0 = getelementptr [3 x float], ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %p0, i64 4
  %p2 = getelementptr i8, ptr %p0, i64 8
  %a = load float, ptr %p0
  %b = load float, ptr %p1
  %c = load float, ptr %p2
  %ab = fadd float %a, %b
  %s = fadd float %ab, %c
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}

; CHECK-LABEL: define void @two_words(
; CHECK-COUNT-2: call <32 x float> @llvm.masked.gather
; CHECK: ret void
define void @two_words(ptr %x, ptr noalias %y, ptr %index) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %n = sext i32 %j to i64
  %p0 = getelementptr [2 x float], ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %p0, i64 4
  %a = load float, ptr %p0
  %b = load float, ptr %p1
  %s = fadd float %a, %b
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}

; A store in between may change the third word and the fourth: two groups of two.
; CHECK-LABEL: define void @store_between(
; CHECK-COUNT-2: call <32 x float> @llvm.masked.gather
; CHECK: store
; CHECK-COUNT-2: call <32 x float> @llvm.masked.gather
; CHECK: ret void
define void @store_between(ptr %x, ptr %y, ptr %index) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %n = sext i32 %j to i64
  %p0 = getelementptr [4 x float], ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %p0, i64 4
  %p2 = getelementptr i8, ptr %p0, i64 8
  %p3 = getelementptr i8, ptr %p0, i64 12
  %a = load float, ptr %p0
  %b = load float, ptr %p1
  %ab = fadd float %a, %b
  %to = getelementptr float, ptr %y, i32 %lane
  store float %ab, ptr %to
  %c = load float, ptr %p2
  %d = load float, ptr %p3
  %cd = fadd float %c, %d
  store float %cd, ptr %to
  ret void
}

; Lanes whose guard, one for all members, fails read zeros: no check is needed.
; CHECK-LABEL: define void @one_guard(
; CHECK-NOT: usub.sat
; CHECK: select <32 x i1> %{{.*}}, <32 x ptr> %{{.*}}, <32 x ptr> <ptr @__kiln_zeros.64, ptr @__kiln_zeros.64
; CHECK-NOT: gather
; CHECK-COUNT-32: load <4 x float>
; CHECK: ret void
define void @one_guard(ptr %x, ptr noalias %y, ptr %index, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %n = sext i32 %j to i64
  %offset = shl i64 %n, 4
  %in = icmp ult i64 %offset, %limit
  %p0 = getelementptr i8, ptr %x, i64 %offset
  %p1 = getelementptr i8, ptr %p0, i64 4
  %p2 = getelementptr i8, ptr %p0, i64 8
  %p3 = getelementptr i8, ptr %p0, i64 12
  %q0 = select i1 %in, ptr %p0, ptr @__kiln_zeros.64
  %q1 = select i1 %in, ptr %p1, ptr @__kiln_zeros.64
  %q2 = select i1 %in, ptr %p2, ptr @__kiln_zeros.64
  %q3 = select i1 %in, ptr %p3, ptr @__kiln_zeros.64
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
