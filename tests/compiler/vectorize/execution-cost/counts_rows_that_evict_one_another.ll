; Each lane walks a row of its own. Rows at a multiple of 2048 bytes are in two of the cache's 64 sets, and evict one
; another. Rows at another distance do not; nor do accesses outside of a loop, which read each line once anyway, and those
; that will be beside others of their row.
; RUN: kiln-opt --passes=execution-cost --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK: ; walk_2048: vectors would not pay: each thread walks a row of its own, and the rows evict one another from the cache (estimated cycles of a simdgroup: {{[0-9]+}}, of its threads one after the other: {{[0-9]+}}){{$}}
; CHECK: ; walk_2052: vectors pay{{$}}
; CHECK: ; walk_1024: vectors pay{{$}}
; CHECK: ; once: vectors pay{{$}}
; CHECK: ; parts: vectors pay{{$}}
define void @walk_2048(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %first = mul i64 %lane64, 512
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %loop ]
  %sum = phi float [ 0.0, %0 ], [ %more, %loop ]
  %index = add i64 %first, %k
  %at = getelementptr float, ptr %x, i64 %index
  %value = load float, ptr %at
  %more = fadd float %sum, %value
  %square = fmul float %more, %more
  store float %square, ptr %at
  %next = add i64 %k, 1
  %again = icmp ult i64 %next, 512
  br i1 %again, label %loop, label %end
end:
  ret void
}

define void @walk_2052(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %first = mul i64 %lane64, 513
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %loop ]
  %sum = phi float [ 0.0, %0 ], [ %more, %loop ]
  %index = add i64 %first, %k
  %at = getelementptr float, ptr %x, i64 %index
  %value = load float, ptr %at
  %more = fadd float %sum, %value
  %square = fmul float %more, %more
  store float %square, ptr %at
  %next = add i64 %k, 1
  %again = icmp ult i64 %next, 512
  br i1 %again, label %loop, label %end
end:
  ret void
}

; Four sets of eight ways have room for 32 lines.
define void @walk_1024(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %first = mul i64 %lane64, 256
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %loop ]
  %sum = phi float [ 0.0, %0 ], [ %more, %loop ]
  %index = add i64 %first, %k
  %at = getelementptr float, ptr %x, i64 %index
  %value = load float, ptr %at
  %more = fadd float %sum, %value
  %square = fmul float %more, %more
  store float %square, ptr %at
  %next = add i64 %k, 1
  %again = icmp ult i64 %next, 512
  br i1 %again, label %loop, label %end
end:
  ret void
}

define void @once(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %index = mul i64 %lane64, 512
  %at = getelementptr float, ptr %x, i64 %index
  %value = load float, ptr %at
  %a = fmul float %value, %value
  %b = fadd float %a, %value
  %c = fmul float %b, %value
  %d = fadd float %c, %value
  %e = fmul float %d, %value
  %f = fadd float %e, %value
  %g = fmul float %f, %value
  store float %g, ptr %at
  ret void
}

define void @parts(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %first = mul i64 %lane64, 512
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %loop ]
  %sum = phi float [ 0.0, %0 ], [ %more, %loop ]
  %index = add i64 %first, %k
  %at = getelementptr float, ptr %x, i64 %index
  %value = load float, ptr %at, !kiln.row-part !0
  %more = fadd float %sum, %value
  %square = fmul float %more, %more
  store float %square, ptr %at, !kiln.row-block !0
  %next = add i64 %k, 1
  %again = icmp ult i64 %next, 512
  br i1 %again, label %loop, label %end
end:
  ret void
}

!0 = !{}
