; 16 words of each lane's row, which a vote has found in bounds: a register of 64 bytes is a row's part, and 16 of them are
; transposed; smaller registers have 16 bytes of two rows. The rows' distance is not known.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=BOTH,WIDE
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=BOTH,NARROW

declare i32 @__kiln_lane()

; BOTH-LABEL: define void @copied(
; BOTH-COUNT-32: extractelement <32 x ptr>
; BOTH-NOT: br i1
; WIDE-COUNT-32: load <16 x i32>, ptr
; NARROW-COUNT-128: load <4 x i32>, ptr
; BOTH-COUNT-32: extractelement <32 x ptr>
; WIDE-COUNT-32: store <16 x i32>
; NARROW-COUNT-128: store <4 x i32>
; BOTH-NOT: store
; BOTH: ret void
define void @copied(ptr %x, ptr %y, i64 %n) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %m = mul i64 %i, %n
  %p0 = getelementptr i32, ptr %x, i64 %m
  %p1 = getelementptr i32, ptr %p0, i64 1
  %p2 = getelementptr i32, ptr %p0, i64 2
  %p3 = getelementptr i32, ptr %p0, i64 3
  %p4 = getelementptr i32, ptr %p0, i64 4
  %p5 = getelementptr i32, ptr %p0, i64 5
  %p6 = getelementptr i32, ptr %p0, i64 6
  %p7 = getelementptr i32, ptr %p0, i64 7
  %p8 = getelementptr i32, ptr %p0, i64 8
  %p9 = getelementptr i32, ptr %p0, i64 9
  %p10 = getelementptr i32, ptr %p0, i64 10
  %p11 = getelementptr i32, ptr %p0, i64 11
  %p12 = getelementptr i32, ptr %p0, i64 12
  %p13 = getelementptr i32, ptr %p0, i64 13
  %p14 = getelementptr i32, ptr %p0, i64 14
  %p15 = getelementptr i32, ptr %p0, i64 15
  %v0 = load i32, ptr %p0, !invariant.load !0, !kiln.row-block !0
  %v1 = load i32, ptr %p1, !invariant.load !0, !kiln.row-block !0
  %v2 = load i32, ptr %p2, !invariant.load !0, !kiln.row-block !0
  %v3 = load i32, ptr %p3, !invariant.load !0, !kiln.row-block !0
  %v4 = load i32, ptr %p4, !invariant.load !0, !kiln.row-block !0
  %v5 = load i32, ptr %p5, !invariant.load !0, !kiln.row-block !0
  %v6 = load i32, ptr %p6, !invariant.load !0, !kiln.row-block !0
  %v7 = load i32, ptr %p7, !invariant.load !0, !kiln.row-block !0
  %v8 = load i32, ptr %p8, !invariant.load !0, !kiln.row-block !0
  %v9 = load i32, ptr %p9, !invariant.load !0, !kiln.row-block !0
  %v10 = load i32, ptr %p10, !invariant.load !0, !kiln.row-block !0
  %v11 = load i32, ptr %p11, !invariant.load !0, !kiln.row-block !0
  %v12 = load i32, ptr %p12, !invariant.load !0, !kiln.row-block !0
  %v13 = load i32, ptr %p13, !invariant.load !0, !kiln.row-block !0
  %v14 = load i32, ptr %p14, !invariant.load !0, !kiln.row-block !0
  %v15 = load i32, ptr %p15, !invariant.load !0, !kiln.row-block !0
  %q0 = getelementptr i32, ptr %y, i64 %m
  %q1 = getelementptr i32, ptr %q0, i64 1
  %q2 = getelementptr i32, ptr %q0, i64 2
  %q3 = getelementptr i32, ptr %q0, i64 3
  %q4 = getelementptr i32, ptr %q0, i64 4
  %q5 = getelementptr i32, ptr %q0, i64 5
  %q6 = getelementptr i32, ptr %q0, i64 6
  %q7 = getelementptr i32, ptr %q0, i64 7
  %q8 = getelementptr i32, ptr %q0, i64 8
  %q9 = getelementptr i32, ptr %q0, i64 9
  %q10 = getelementptr i32, ptr %q0, i64 10
  %q11 = getelementptr i32, ptr %q0, i64 11
  %q12 = getelementptr i32, ptr %q0, i64 12
  %q13 = getelementptr i32, ptr %q0, i64 13
  %q14 = getelementptr i32, ptr %q0, i64 14
  %q15 = getelementptr i32, ptr %q0, i64 15
  store i32 %v0, ptr %q0, !kiln.row-block !0
  store i32 %v1, ptr %q1, !kiln.row-block !0
  store i32 %v2, ptr %q2, !kiln.row-block !0
  store i32 %v3, ptr %q3, !kiln.row-block !0
  store i32 %v4, ptr %q4, !kiln.row-block !0
  store i32 %v5, ptr %q5, !kiln.row-block !0
  store i32 %v6, ptr %q6, !kiln.row-block !0
  store i32 %v7, ptr %q7, !kiln.row-block !0
  store i32 %v8, ptr %q8, !kiln.row-block !0
  store i32 %v9, ptr %q9, !kiln.row-block !0
  store i32 %v10, ptr %q10, !kiln.row-block !0
  store i32 %v11, ptr %q11, !kiln.row-block !0
  store i32 %v12, ptr %q12, !kiln.row-block !0
  store i32 %v13, ptr %q13, !kiln.row-block !0
  store i32 %v14, ptr %q14, !kiln.row-block !0
  store i32 %v15, ptr %q15, !kiln.row-block !0
  ret void
}

!0 = !{}
