; A sum of bytes over a loop that runs 257 times at most fits into 16 bits, and so does one over nested loops. With one
; iteration more it does not, nor where the number of iterations is not known. Differences are numbers with a sign.
; RUN: kiln-opt --passes=narrow-integers %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.abs.i32(i32, i1)

; CHECK-LABEL: define void @the_most(
; CHECK: %[[SUM:.*]] = phi i16 [ 0, %entry ], [ %[[NEXT:.*]], %loop ]
; CHECK: %[[NEXT]] = add i16 %[[SUM]],
; CHECK: end:
; CHECK: zext i16 %[[NEXT]] to i32
define void @the_most(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %start = zext i32 %lane to i64
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k_next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %next, %loop ]
  %at = add i64 %start, %k
  %address = getelementptr i8, ptr %x, i64 %at
  %byte = load i8, ptr %address
  %wide = zext i8 %byte to i32
  %next = add i32 %sum, %wide
  %k_next = add i64 %k, 1
  %more = icmp ult i64 %k_next, 257
  br i1 %more, label %loop, label %end
end:
  %place = getelementptr i32, ptr %y, i64 %start
  store i32 %next, ptr %place
  ret void
}

; CHECK-LABEL: define void @one_more(
; CHECK: phi i32 [ 0, %entry ], [ %next, %loop ]
; CHECK-NOT: i16
; CHECK: ret void
define void @one_more(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %start = zext i32 %lane to i64
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k_next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %next, %loop ]
  %at = add i64 %start, %k
  %address = getelementptr i8, ptr %x, i64 %at
  %byte = load i8, ptr %address
  %wide = zext i8 %byte to i32
  %next = add i32 %sum, %wide
  %k_next = add i64 %k, 1
  %more = icmp ult i64 %k_next, 258
  br i1 %more, label %loop, label %end
end:
  %place = getelementptr i32, ptr %y, i64 %start
  store i32 %next, ptr %place
  ret void
}

; CHECK-LABEL: define void @so_many(
; CHECK: phi i32 [ 0, %entry ], [ %next, %loop ]
; CHECK-NOT: i16
; CHECK: ret void
define void @so_many(ptr %x, ptr %y, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %start = zext i32 %lane to i64
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k_next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %next, %loop ]
  %at = add i64 %start, %k
  %address = getelementptr i8, ptr %x, i64 %at
  %byte = load i8, ptr %address
  %wide = zext i8 %byte to i32
  %next = add i32 %sum, %wide
  %k_next = add i64 %k, 1
  %more = icmp ult i64 %k_next, %n
  br i1 %more, label %loop, label %end
end:
  %place = getelementptr i32, ptr %y, i64 %start
  store i32 %next, ptr %place
  ret void
}

; 16 x 16 absolute differences, as for the motion of a block.
; CHECK-LABEL: define void @nested(
; CHECK: outer:
; CHECK: phi i16
; CHECK: inner:
; CHECK: phi i16
; CHECK: call i16 @llvm.abs.i16(
; CHECK: ret void
define void @nested(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %start = zext i32 %lane to i64
  br label %outer
outer:
  %j = phi i64 [ 0, %entry ], [ %j_next, %outer_latch ]
  %so_far = phi i32 [ 0, %entry ], [ %row, %outer_latch ]
  br label %inner
inner:
  %k = phi i64 [ 0, %outer ], [ %k_next, %inner ]
  %sum = phi i32 [ %so_far, %outer ], [ %next, %inner ]
  %place_in_x = add i64 %j, %k
  %at = add i64 %start, %place_in_x
  %address = getelementptr i8, ptr %x, i64 %at
  %byte = load i8, ptr %address
  %wide = zext i8 %byte to i32
  %other_address = getelementptr i8, ptr %address, i64 1
  %other_byte = load i8, ptr %other_address
  %other = zext i8 %other_byte to i32
  %difference = sub nsw i32 %wide, %other
  %distance = call i32 @llvm.abs.i32(i32 %difference, i1 true)
  %next = add i32 %sum, %distance
  %k_next = add i64 %k, 1
  %more = icmp ult i64 %k_next, 16
  br i1 %more, label %inner, label %outer_latch
outer_latch:
  %row = phi i32 [ %next, %inner ]
  %j_next = add i64 %j, 1
  %again = icmp ult i64 %j_next, 16
  br i1 %again, label %outer, label %end
end:
  %place = getelementptr i32, ptr %y, i64 %start
  store i32 %row, ptr %place
  ret void
}

; Of numbers with a sign, and only where a condition holds.
; CHECK-LABEL: define void @some_differences(
; CHECK: %[[SUM:.*]] = phi i16 [ 100, %entry ]
; CHECK: end:
; CHECK: sext i16 {{.*}} to i32
define void @some_differences(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %start = zext i32 %lane to i64
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k_next, %join ]
  %sum = phi i32 [ 100, %entry ], [ %next, %join ]
  %at = add i64 %start, %k
  %address = getelementptr i8, ptr %x, i64 %at
  %byte = load i8, ptr %address
  %wide = sext i8 %byte to i32
  %is_odd = trunc i8 %byte to i1
  br i1 %is_odd, label %odd, label %join
odd:
  %less = sub i32 %sum, %wide
  br label %join
join:
  %next = phi i32 [ %sum, %loop ], [ %less, %odd ]
  %k_next = add i64 %k, 1
  %more = icmp ult i64 %k_next, 200
  br i1 %more, label %loop, label %end
end:
  %place = getelementptr i32, ptr %y, i64 %start
  store i32 %next, ptr %place
  ret void
}

; The sum is doubled in each iteration: it is no sum of its own beginning and of others.
; CHECK-LABEL: define void @doubled(
; CHECK: phi i32 [ 0, %entry ], [ %next, %loop ]
; CHECK: ret void
define void @doubled(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %start = zext i32 %lane to i64
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k_next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %next, %loop ]
  %at = add i64 %start, %k
  %address = getelementptr i8, ptr %x, i64 %at
  %byte = load i8, ptr %address
  %wide = zext i8 %byte to i32
  %twice = add i32 %sum, %sum
  %next = add i32 %twice, %wide
  %k_next = add i64 %k, 1
  %more = icmp ult i64 %k_next, 12
  br i1 %more, label %loop, label %end
end:
  %place = getelementptr i32, ptr %y, i64 %start
  store i32 %next, ptr %place
  ret void
}

; Its user is in another loop, which may run as often: the sum is extended where it is made.
; CHECK-LABEL: define void @used_in_a_loop(
; CHECK: first:
; CHECK: zext i16 {{.*}} to i32
; CHECK: second:
; CHECK-NOT: zext
; CHECK: ret void
define void @used_in_a_loop(ptr %x, ptr %y, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %start = zext i32 %lane to i64
  br label %first
first:
  %k = phi i64 [ 0, %entry ], [ %k_next, %first ]
  %sum = phi i32 [ 0, %entry ], [ %next, %first ]
  %at = add i64 %start, %k
  %address = getelementptr i8, ptr %x, i64 %at
  %byte = load i8, ptr %address
  %wide = zext i8 %byte to i32
  %other_address = getelementptr i8, ptr %address, i64 99
  %other_byte = load i8, ptr %other_address
  %other = zext i8 %other_byte to i32
  %difference = sub i32 %wide, %other
  %distance = call i32 @llvm.abs.i32(i32 %difference, i1 false)
  %next = add i32 %sum, %distance
  %k_next = add i64 %k, 1
  %more = icmp ult i64 %k_next, 20
  br i1 %more, label %first, label %second
second:
  %j = phi i64 [ 0, %first ], [ %j_next, %second ]
  %product = mul i32 %next, 1000003
  %place = getelementptr i32, ptr %y, i64 %j
  store i32 %product, ptr %place
  %j_next = add i64 %j, 1
  %again = icmp ult i64 %j_next, %n
  br i1 %again, label %second, label %end
end:
  ret void
}
