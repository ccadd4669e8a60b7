; The two sides of a branch of the writing part give the address of the tile's element. The batch's tiles have it, too.
; RUN: kiln-opt --passes=tile-multibuffering --threadgroup-bytes=1024 %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK-LABEL: @sums(
; CHECK: loop.written:
; CHECK: [[TILE:%.+]] = getelementptr inbounds i8, ptr @__kiln_tiles
; CHECK: [[LAST:%.+]] = getelementptr float, ptr [[TILE]], i32 %y
; CHECK: [[FIRST:%.+]] = getelementptr float, ptr [[TILE]], i32 %x
; CHECK: [[OWN:%.+]] = phi ptr [ [[FIRST]], %{{.+}} ], [ [[LAST]], %{{.+}} ]
; CHECK: store <8 x float> %{{.+}}, ptr [[OWN]]
define void @sums(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %y) {
entry:
  %data = load ptr, ptr %launch, !invariant.load !0
  %tile.at = getelementptr i8, ptr %record, i64 104
  %tile = load ptr, ptr %tile.at, !invariant.load !0
  %is.first = icmp ult i32 %x, 7
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %wait ]
  %sum = phi <8 x float> [ zeroinitializer, %entry ], [ %sum.next, %wait ]
  %part.at = getelementptr <8 x float>, ptr %data, i32 %k
  %part = load <8 x float>, ptr %part.at
  br i1 %is.first, label %one, label %other
one:
  %first = getelementptr float, ptr %tile, i32 %x
  br label %write
other:
  %last = getelementptr float, ptr %tile, i32 %y
  br label %write
write:
  %own = phi ptr [ %first, %one ], [ %last, %other ]
  store <8 x float> %part, ptr %own
  br label %wait
wait:
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
