; A load of elements in a row, or of a copy of single elements in scratch, where a branch chooses between them: the load
; reads the tile. A tile that is written at an index from such scratch stays, for the index changes.
; RUN: kiln-opt --passes=tile-multibuffering --threadgroup-bytes=1024 %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK-LABEL: @reads(
; CHECK: {{^}}loop{{[0-9]+}}:
; CHECK: [[TILE:%.+]] = getelementptr inbounds i8, ptr @__kiln_tiles
; CHECK: [[FROM:%.+]] = phi ptr [ [[TILE]], %{{.+}} ], [ %scratch, %{{.+}} ]
; CHECK: load <8 x float>, ptr [[FROM]]
define void @reads(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %y) {
entry:
  %scratch = alloca <8 x float>, !kiln.scratch !0
  %data = load ptr, ptr %launch, !invariant.load !0
  %tile.at = getelementptr i8, ptr %record, i64 104
  %tile = load ptr, ptr %tile.at, !invariant.load !0
  %in.a.row = icmp ult i32 %x, 7
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %sums ]
  %sum = phi <8 x float> [ zeroinitializer, %entry ], [ %sum.next, %sums ]
  %part.at = getelementptr <8 x float>, ptr %data, i32 %k
  %part = load <8 x float>, ptr %part.at
  %own = getelementptr float, ptr %tile, i32 %x
  store <8 x float> %part, ptr %own
  call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  br i1 %in.a.row, label %sums, label %one
one:
  %other = getelementptr float, ptr %tile, i32 %y
  %element = load float, ptr %other
  %copy = getelementptr float, ptr %scratch, i32 1
  store float %element, ptr %copy
  br label %sums
sums:
  %from = phi ptr [ %tile, %loop ], [ %scratch, %one ]
  %others = load <8 x float>, ptr %from
  %sum.next = fadd <8 x float> %sum, %others
  call i64 @__kiln_wait(i32 1, i64 0, i64 0)
  %next = add i32 %k, 1
  %more = icmp ult i32 %next, 100
  br i1 %more, label %loop, label %exit
exit:
  store <8 x float> %sum.next, ptr %data
  ret void
}

; CHECK-LABEL: @writes_where_scratch_says(
; CHECK-NOT: batch:
; CHECK: {{^}}loop:
; CHECK: ret void
define void @writes_where_scratch_says(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %y) {
entry:
  %scratch = alloca i32, !kiln.scratch !0
  %data = load ptr, ptr %launch, !invariant.load !0
  %tile.at = getelementptr i8, ptr %record, i64 104
  %tile = load ptr, ptr %tile.at, !invariant.load !0
  %is.known = icmp ult i32 %x, 7
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %write ]
  %sum = phi <8 x float> [ zeroinitializer, %entry ], [ %sum.next, %write ]
  %part.at = getelementptr <8 x float>, ptr %data, i32 %k
  %part = load <8 x float>, ptr %part.at
  br i1 %is.known, label %write, label %one
one:
  store i32 %k, ptr %scratch
  br label %write
write:
  %from = phi ptr [ %data, %loop ], [ %scratch, %one ]
  %index = load i32, ptr %from
  %own = getelementptr float, ptr %tile, i32 %index
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
