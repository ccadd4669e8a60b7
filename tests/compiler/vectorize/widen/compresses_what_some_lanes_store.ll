; Lanes that store where votes for the lanes before them say: their elements are compressed in registers and stored in a
; row, if the votes are those of the active lanes and the row is in bounds. Without such an instruction a table has the
; permutation for each mask. Where the lanes' places are further apart, this is a scatter.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefix=AVX2

declare i32 @__kiln_lane()
declare i32 @llvm.ctpop.i32(i32)

; CHECK-LABEL: define void @kept(
; CHECK: icmp eq i32 %votes, %{{.+}}
; CHECK: {{^}}compressed:
; CHECK: call <16 x float> @llvm.x86.avx512.mask.compress.v16f32(
; CHECK: call void @llvm.masked.store.v16f32.p0(
; CHECK: call <16 x float> @llvm.x86.avx512.mask.compress.v16f32(
; CHECK: call void @llvm.masked.store.v16f32.p0(
; CHECK: {{^}}scattered:
; CHECK: call void @llvm.masked.scatter.v32f32.v32p0(
; AVX2-LABEL: define void @kept(
; AVX2: {{^}}compressed:
; AVX2: getelementptr inbounds i64, ptr @__kiln_lanes_of_masks, i64 %{{.+}}
; AVX2: call <8 x i32> @llvm.x86.avx2.permd(
; AVX2: icmp slt <8 x i32> <i32 0, i32 1,
; AVX2: call void @llvm.masked.store.v8f32.p0(
; AVX2: {{^}}scattered:
define void @kept(ptr %x, ptr %y, i32 %votes, i32 %first, i64 %end) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %is.wanted = fcmp ogt float %v, 0.5
  br i1 %is.wanted, label %then, label %end.if
then:
  %bit = shl i32 1, %lane
  %below = sub i32 %bit, 1
  %before = and i32 %votes, %below
  %rank = call i32 @llvm.ctpop.i32(i32 %before)
  %at = add i32 %first, %rank
  %at64 = sext i32 %at to i64
  %to = getelementptr float, ptr %y, i64 %at64
  store float %v, ptr %to
  br label %end.if
end.if:
  ret void
}

; Every second element of the output.
; CHECK-LABEL: define void @kept_apart(
; CHECK-NOT: compress
; CHECK: ret void
define void @kept_apart(ptr %x, ptr %y, i32 %votes, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %is.wanted = fcmp ogt float %v, 0.5
  br i1 %is.wanted, label %then, label %end.if
then:
  %bit = shl i32 1, %lane
  %below = sub i32 %bit, 1
  %before = and i32 %votes, %below
  %rank = call i32 @llvm.ctpop.i32(i32 %before)
  %twice = shl i32 %rank, 1
  %at = add i32 %first, %twice
  %at64 = sext i32 %at to i64
  %to = getelementptr float, ptr %y, i64 %at64
  store float %v, ptr %to
  br label %end.if
end.if:
  ret void
}

; Votes that are counted up to the lane's own, or of which some are left out.
; CHECK-LABEL: define void @other_counts(
; CHECK-NOT: compress
; CHECK: ret void
define void @other_counts(ptr %x, ptr %y, i32 %votes) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %is.wanted = fcmp ogt float %v, 0.5
  br i1 %is.wanted, label %then, label %end.if
then:
  %bit = shl i32 2, %lane
  %below = sub i32 %bit, 1
  %before = and i32 %votes, %below
  %rank = call i32 @llvm.ctpop.i32(i32 %before)
  %to = getelementptr float, ptr %y, i32 %rank
  store float %v, ptr %to
  br label %end.if
end.if:
  ret void
}
