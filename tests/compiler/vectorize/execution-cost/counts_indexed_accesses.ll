; A loop of accesses at indices that were loaded: a gather is cheaper than a loop over lanes, as AVX2 has it for bytes, and
; consecutive accesses are cheaper than both. Arithmetic between accesses makes vectors pay.
; RUN: kiln-opt --passes=execution-cost %s | FileCheck %s
; RUN: kiln-opt --passes=execution-cost --cpu=x86-64-v4 %s | FileCheck --check-prefix=GATHERS %s

declare i32 @__kiln_lane()

; CHECK: ; consecutive: vectors pay{{$}}
; CHECK: ; chased: vectors pay{{$}}
; CHECK: ; chased_bytes: vectors would not pay: most of its time is spent on accesses that differ from lane to lane (estimated cycles of a simdgroup: {{[0-9]+}}, of its threads one after the other: {{[0-9]+}}){{$}}
; CHECK: ; computed: vectors pay{{$}}
; GATHERS: ; consecutive: vectors pay{{$}}
; GATHERS: ; chased: vectors pay{{$}}
; GATHERS: ; chased_bytes: vectors pay{{$}}
; GATHERS: ; computed: vectors pay{{$}}
define void @consecutive(ptr %x, i64 %count) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %loop ]
  %index = add i64 %k, %lane64
  %at = getelementptr i32, ptr %x, i64 %index
  %value = load i32, ptr %at
  %more = xor i32 %value, 5
  store i32 %more, ptr %at
  %next = add i64 %k, 32
  %again = icmp ult i64 %next, %count
  br i1 %again, label %loop, label %end
end:
  ret void
}

define void @chased(ptr %x, i32 %count) {
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %k = phi i32 [ 0, %0 ], [ %next, %loop ]
  %index = phi i32 [ %lane, %0 ], [ %value, %loop ]
  %index64 = zext i32 %index to i64
  %at = getelementptr i32, ptr %x, i64 %index64
  %value = load i32, ptr %at
  %next = add i32 %k, 1
  %again = icmp ult i32 %next, %count
  br i1 %again, label %loop, label %end
end:
  ret void
}

define void @chased_bytes(ptr %x, i32 %count) {
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %k = phi i32 [ 0, %0 ], [ %next, %loop ]
  %index = phi i32 [ %lane, %0 ], [ %value, %loop ]
  %index64 = zext i32 %index to i64
  %at = getelementptr i8, ptr %x, i64 %index64
  %byte = load i8, ptr %at
  %value = zext i8 %byte to i32
  %next = add i32 %k, 1
  %again = icmp ult i32 %next, %count
  br i1 %again, label %loop, label %end
end:
  ret void
}

define void @computed(ptr %x, i32 %count) {
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %k = phi i32 [ 0, %0 ], [ %next, %loop ]
  %index = phi i32 [ %lane, %0 ], [ %g, %loop ]
  %index64 = zext i32 %index to i64
  %at = getelementptr i32, ptr %x, i64 %index64
  %value = load i32, ptr %at
  %a = xor i32 %value, %index
  %b = mul i32 %a, 77
  %c = lshr i32 %b, 7
  %d = xor i32 %c, %b
  %e = mul i32 %d, 99
  %f = xor i32 %e, %c
  %g = and i32 %f, 1023
  %next = add i32 %k, 1
  %again = icmp ult i32 %next, %count
  br i1 %again, label %loop, label %end
end:
  ret void
}
