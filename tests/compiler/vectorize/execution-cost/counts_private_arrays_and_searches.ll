; A stack in a private array, whose depth differs from thread to thread. And two loops over a list of halves: the first one is
; ended by its counter, the second one by what it finds, too, so that a simdgroup waits for its slowest lane.
; RUN: kiln-opt --passes=execution-cost %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK: ; stack: vectors would not pay: its threads index private arrays by numbers of their own (estimated cycles of a simdgroup: {{[0-9]+}}, of its threads one after the other: {{[0-9]+}}){{$}}
; CHECK: ; counted: vectors pay{{$}}
; CHECK: ; searched: vectors would not pay: most of its time is spent on accesses that differ from lane to lane (estimated cycles of a simdgroup: {{[0-9]+}}, of its threads one after the other: {{[0-9]+}}){{$}}
define void @stack(ptr %y) {
  %array = alloca [16 x i32]
  %other = alloca [16 x i32]
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %depth = phi i32 [ %lane, %0 ], [ %next, %loop ]
  %index = and i32 %depth, 15
  %at = getelementptr [16 x i32], ptr %array, i32 0, i32 %index
  %value = load i32, ptr %at
  %less = sub i32 %value, 1
  store i32 %less, ptr %at
  %up = add i32 %depth, 1
  %index.up = and i32 %up, 15
  %at.up = getelementptr [16 x i32], ptr %array, i32 0, i32 %index.up
  store i32 %less, ptr %at.up
  %second = getelementptr [16 x i32], ptr %other, i32 0, i32 %index
  store i32 %less, ptr %second
  %second.up = getelementptr [16 x i32], ptr %other, i32 0, i32 %index.up
  store i32 %less, ptr %second.up
  %next = xor i32 %depth, %less
  %again = icmp ne i32 %next, 7
  br i1 %again, label %loop, label %end
end:
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %next, ptr %to
  ret void
}

define void @counted(ptr %list, ptr %levels, i32 %end_of_list) {
  %lane = call i32 @__kiln_lane()
  %place = add i32 %lane, 3
  %first = mul i32 %place, 77
  br label %loop
loop:
  %e = phi i32 [ %first, %0 ], [ %next, %loop ]
  %sum = phi i8 [ 0, %0 ], [ %more, %loop ]
  %at = getelementptr i16, ptr %list, i32 %e
  %near = load i16, ptr %at
  %to = getelementptr i8, ptr %levels, i16 %near
  %level = load i8, ptr %to
  %more = xor i8 %sum, %level
  %next = add i32 %e, 1
  %again = icmp ult i32 %next, %end_of_list
  br i1 %again, label %loop, label %end
end:
  ret void
}

define void @searched(ptr %list, ptr %levels, i32 %end_of_list) {
  %lane = call i32 @__kiln_lane()
  %place = add i32 %lane, 3
  %first = mul i32 %place, 77
  br label %loop
loop:
  %e = phi i32 [ %first, %0 ], [ %next, %latch ]
  %sum = phi i8 [ 0, %0 ], [ %more, %latch ]
  %at = getelementptr i16, ptr %list, i32 %e
  %near = load i16, ptr %at
  %to = getelementptr i8, ptr %levels, i16 %near
  %level = load i8, ptr %to
  %more = xor i8 %sum, %level
  %found = icmp eq i8 %level, 5
  br i1 %found, label %end, label %latch
latch:
  %next = add i32 %e, 1
  %again = icmp ult i32 %next, %end_of_list
  br i1 %again, label %loop, label %end
end:
  ret void
}
