; The stride of an address is the distance between adjacent lanes in bytes: of sums, products with constants, array
; indices and loops' addresses. A piece has one everywhere but at a border.
; RUN: kiln-opt --passes=access-shapes %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; CHECK: ; same: uniform{{$}}
; CHECK: ; next: stride 4{{$}}
; CHECK: ; third: stride 12{{$}}
; CHECK: ; member: stride 16{{$}}
; CHECK: ; before: stride 4, from a negative offset, may wrap{{$}}
; CHECK: ; clamped: stride 4, but at a border, may wrap{{$}}
; CHECK: ; wrapped: stride 4, but at a border, may wrap{{$}}
define void @strides(ptr %x, i32 %first, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %same = load float, ptr %x
  %next_at = getelementptr float, ptr %x, i64 %lane64
  %next = load float, ptr %next_at
  %three = mul i64 %lane64, 3
  %third_at = getelementptr float, ptr %x, i64 %three
  %third = load float, ptr %third_at
  %member_at = getelementptr [4 x float], ptr %x, i64 %lane64, i64 1
  %member = load float, ptr %member_at
  %i = add i32 %first, %lane
  %less = sub i32 %i, 1
  %less64 = sext i32 %less to i64
  %before_at = getelementptr float, ptr %x, i64 %less64
  %before = load float, ptr %before_at
  %at_least = call i32 @llvm.smax.i32(i32 %i, i32 %n)
  %at_least64 = sext i32 %at_least to i64
  %clamped_at = getelementptr float, ptr %x, i64 %at_least64
  %clamped = load float, ptr %clamped_at
  %rest = urem i32 %i, %n
  %rest64 = zext i32 %rest to i64
  %wrapped_at = getelementptr float, ptr %x, i64 %rest64
  %wrapped = load float, ptr %wrapped_at
  ret void
}

; A loop's address keeps the stride of its start, if each iteration adds what is uniform.
; CHECK: ; in_loop: stride 4, may wrap{{$}}
; CHECK: ; by_lane: unknown{{$}}
define void @loops(ptr %x, i64 %step, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %start = getelementptr float, ptr %x, i64 %lane64
  br label %loop
loop:
  %at = phi ptr [ %start, %entry ], [ %next, %loop ]
  %other = phi ptr [ %start, %entry ], [ %other_next, %loop ]
  %k = phi i64 [ 0, %entry ], [ %k_next, %loop ]
  %in_loop = load float, ptr %at
  %by_lane = load float, ptr %other
  %next = getelementptr float, ptr %at, i64 %step
  %other_next = getelementptr float, ptr %other, i64 %lane64
  %k_next = add i64 %k, 1
  %more = icmp ult i64 %k_next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
