; A loop loads a tile, waits, adds up the tile and waits. With buffers of 16 KiB it loads up to 16 tiles of 1 KiB,
; each into memory of its own, waits, and then reads them all with its sum in registers, before it waits again.
; RUN: kiln-opt --passes=tile-multibuffering --threadgroup-bytes=1024 %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK: @__kiln_tiles = internal global [16384 x i8] poison, align 64
; CHECK-LABEL: @sums(
; CHECK: batch:
; CHECK: phi <8 x float> [ zeroinitializer, %entry ]
; CHECK: loaded:
; CHECK: call i64 @__kiln_wait
; CHECK-NEXT: br label %[[READER:.+]]
; CHECK: read:
; CHECK: call i64 @__kiln_wait
; CHECK-NEXT: br i1 {{.+}}, label %batch, label %exit
; CHECK: loop.written:
; CHECK: %[[TILE:.+]] = phi i64 [ 0, %batch ]
; CHECK-NOT: phi <8 x float>
; CHECK: %[[OFFSET:.+]] = mul nuw i64 %[[TILE]], 1024
; CHECK: %[[MEMORY:.+]] = getelementptr inbounds i8, ptr @__kiln_tiles, i64 %[[OFFSET]]
; CHECK: %[[OWN:.+]] = getelementptr float, ptr %[[MEMORY]], i32 %x
; CHECK: store <8 x float> %{{.+}}, ptr %[[OWN]]
; CHECK-NOT: @__kiln_wait
; CHECK: %[[COUNT:.+]] = add nuw nsw i64 %[[TILE]], 1
; CHECK: icmp ne i64 %[[COUNT]], 16
; CHECK: br i1 {{.+}}, label %loop.written, label %loaded
; CHECK: [[READER]]:
; CHECK: %[[SUM:.+]] = phi <8 x float>
; CHECK-NOT: store
; CHECK-NOT: @__kiln_wait
; CHECK: %[[OTHERS:.+]] = load <8 x float>
; CHECK: fadd <8 x float> %[[SUM]], %[[OTHERS]]
; CHECK: icmp ne i64 %{{.+}}, %[[COUNT]]
; CHECK: br i1 {{.+}}, label %[[READER]], label %read
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
