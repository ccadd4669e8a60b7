; A short side that accesses no memory runs without a test whether any lane takes it, and so does a side with such
; branches in it. Selects at the joins discard the results of other lanes.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @nested(
; CHECK-NOT: br i1
; CHECK: outer:
; CHECK: br label %inner
; CHECK: inner:
; CHECK: br label %inner_join
; CHECK: inner_join:
; CHECK: br label %between
; CHECK: between:
; CHECK: br label %join
; CHECK: join:
; CHECK-NEXT: phi <32 x i32> [ %{{.*}}, %between ]
; CHECK-NOT: br i1
; CHECK: ret void
define void @nested(ptr %x, ptr %y, i32 %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  %c = icmp sgt i32 %v, %limit
  br i1 %c, label %outer, label %join
outer:
  %d = add i32 %v, 5
  %odd = trunc i32 %v to i1
  br i1 %odd, label %inner, label %inner_join
inner:
  %e = xor i32 %d, %limit
  br label %inner_join
inner_join:
  %f = phi i32 [ %e, %inner ], [ %d, %outer ]
  br label %between
between:
  %g = mul i32 %f, %v
  br label %join
join:
  %r = phi i32 [ %g, %between ], [ %v, %entry ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

; The inner branch is uniform, so the side runs only if a lane takes it.
; CHECK-LABEL: define void @uniform_branch(
; CHECK: br i1 %{{.*}}, label %outer, label %join
; CHECK: outer:
; CHECK: br i1 %{{.*}}, label %inner, label %inner_join
define void @uniform_branch(ptr %x, ptr %y, i32 %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  %c = icmp sgt i32 %v, %limit
  br i1 %c, label %outer, label %join
outer:
  %uniform = icmp sgt i32 %limit, 9
  br i1 %uniform, label %inner, label %inner_join
inner:
  %e = xor i32 %v, %limit
  br label %inner_join
inner_join:
  %f = phi i32 [ %e, %inner ], [ 7, %outer ]
  br label %join
join:
  %r = phi i32 [ %f, %inner_join ], [ %v, %entry ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

; The inner side divides, which takes longer than a test. Both branches stay.
; CHECK-LABEL: define void @long_inner_side(
; CHECK: br i1 %{{.*}}, label %outer, label %join
; CHECK: outer:
; CHECK: br i1 %{{.*}}, label %inner, label %inner_join
define void @long_inner_side(ptr %x, ptr %y, float %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %c = fcmp ogt float %v, %limit
  br i1 %c, label %outer, label %join
outer:
  %d = fmul float %v, 5.0
  %small = fcmp olt float %d, 9.0
  br i1 %small, label %inner, label %inner_join
inner:
  %e = fdiv float %d, %v
  br label %inner_join
inner_join:
  %f = phi float [ %e, %inner ], [ %d, %outer ]
  br label %join
join:
  %r = phi float [ %f, %inner_join ], [ %v, %entry ]
  %to = getelementptr float, ptr %y, i32 %lane
  store float %r, ptr %to
  ret void
}

; The mask of lanes in the loop has words with AVX2. Lanes keep the value with which they left.
; CHECK-LABEL: define void @in_a_loop(
; CHECK: loop:
; CHECK: br label %outer
; CHECK: outer:
; CHECK: br label %inner
; CHECK: inner:
; CHECK: br label %inner_join
; CHECK: inner_join:
; CHECK: br label %latch
; CHECK: latch:
; CHECK: br i1 %{{.*}}, label %loop, label %end
define void @in_a_loop(ptr %x, ptr %y, i32 %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %latch ]
  %s = phi i32 [ %v, %entry ], [ %r, %latch ]
  %c = icmp sgt i32 %s, %limit
  br i1 %c, label %outer, label %latch
outer:
  %d = add i32 %s, %k
  %odd = trunc i32 %s to i1
  br i1 %odd, label %inner, label %inner_join
inner:
  %e = xor i32 %d, %limit
  br label %inner_join
inner_join:
  %f = phi i32 [ %e, %inner ], [ %d, %outer ]
  br label %latch
latch:
  %r = phi i32 [ %f, %inner_join ], [ %s, %loop ]
  %next = add i32 %k, 1
  %stays = icmp slt i32 %next, %r
  br i1 %stays, label %loop, label %end
end:
  %last = phi i32 [ %r, %latch ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %last, ptr %to
  ret void
}
