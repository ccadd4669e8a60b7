; A tile of one byte more than 16 KiB does not fit twice into 32 KiB, and a batch of one gains nothing.
; RUN: kiln-opt --passes=tile-multibuffering --threadgroup-bytes=16385 %s | FileCheck %s
; RUN: kiln-opt --passes=tile-multibuffering --threadgroup-bytes=16385 --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: tile-multibuffering: not this loop: two tiles have more than the bytes that the first-level cache has room for
; REMARK-NOT: remark:

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK-LABEL: @sums(
; CHECK-NOT: batch:
; CHECK: {{^}}loop:
; CHECK: ret void
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
