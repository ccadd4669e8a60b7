; A few large tiles may take twice the 16 KiB of a batch: two of 16 KiB.
; RUN: kiln-opt --passes=tile-multibuffering --threadgroup-bytes=16384 %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK: @__kiln_tiles = internal global [32768 x i8]
; CHECK-LABEL: @sums(
; CHECK: icmp ne i64 %{{.+}}, 2
define void @sums(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes) {
entry:
  %data = load ptr, ptr %launch, !invariant.load !0
  %tile.at = getelementptr i8, ptr %record, i64 104
  %tile = load ptr, ptr %tile.at, !invariant.load !0
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi <8 x float> [ zeroinitializer, %entry ], [ %sum.next, %loop ]
  %part.at = getelementptr <8 x float>, ptr %data, i32 %k
  %part = load <8 x float>, ptr %part.at
  %own = getelementptr float, ptr %tile, i32 %x
  store <8 x float> %part, ptr %own
  call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  %others = load <8 x float>, ptr %tile
  %sum.next = fadd <8 x float> %sum, %others
  call i64 @__kiln_wait(i32 1, i64 0, i64 0)
  %next = add i32 %k, 1
  %more = icmp ult i32 %next, 100
  br i1 %more, label %loop, label %exit
exit:
  store <8 x float> %sum.next, ptr %data
  ret void
}

!0 = !{}
