; A number that is clamped, chosen or wrapped at a border is a pattern everywhere else: lanes share elements in pairs,
; or go backwards. The lanes' numbers are compared with the pattern when the code runs; then the elements between the lowest
; and the highest lane's are loaded and permuted.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)

; Two lanes share an element. All numbers are tested once, also for the row below.
; CHECK-LABEL: define void @halves(
; CHECK: icmp eq <{{8|16}} x i32> %{{.+}}, <i32 0, i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3
; CHECK: br i1 %{{.+}}, label %pattern, label %lanes
; CHECK: {{^}}pattern:
; CHECK: load <{{8|16}} x float>
; CHECK: shufflevector
; CHECK: {{^}}lanes:
; CHECK-NOT: icmp eq <{{8|16}} x i32> %{{.+}}, <i32 0
; CHECK: {{^}}pattern{{.+}}:
; CHECK: load <{{8|16}} x float>
; CHECK: ret void
define void @halves(ptr %x, ptr %y, i32 %group, i32 %n, i32 %width) {
  %first = shl i32 %group, 5
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %first, %lane
  %half = lshr i32 %i, 1
  %next = add i32 %half, 1
  %clamped = call i32 @llvm.smin.i32(i32 %next, i32 %n)
  %at = sext i32 %clamped to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %below = add i32 %clamped, %width
  %below.at = sext i32 %below to i64
  %below.from = getelementptr float, ptr %x, i64 %below.at
  %w = load float, ptr %below.from
  %sum = fadd float %v, %w
  %to = getelementptr float, ptr %y, i32 %lane
  store float %sum, ptr %to
  ret void
}

; One is added before the shift: the first lane has an element of its own. A subtraction rounds down.
; CHECK-LABEL: define void @odd_halves(
; CHECK: icmp eq <{{8|16}} x i32> %{{.+}}, <i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3, i32 4
; CHECK: icmp eq <{{8|16}} x i32> %{{.+}}, <i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3, i32 4
; CHECK: ret void
define void @odd_halves(ptr %x, ptr %y, i32 %group, i32 %n) {
  %first = shl i32 %group, 5
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %first, %lane
  %after = add i32 %i, 1
  %half = lshr i32 %after, 1
  %at = zext i32 %half to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %before = add i32 %i, -1
  %other = sdiv i32 %before, 2
  %clamped = call i32 @llvm.smax.i32(i32 %other, i32 0)
  %other.at = sext i32 %clamped to i64
  %other.from = getelementptr float, ptr %x, i64 %other.at
  %w = load float, ptr %other.from
  %sum = fadd float %v, %w
  %to = getelementptr float, ptr %y, i32 %lane
  store float %sum, ptr %to
  ret void
}

; Backwards: the last lane's number is the lowest.
; CHECK-LABEL: define void @mirrored(
; CHECK: %[[LOWEST:.+]] = extractelement <32 x i32> %{{.+}}, i64 31
; CHECK: icmp eq <{{8|16}} x i32> %{{.+}}, <i32 31, i32 30, i32 29, i32 28
; CHECK: ret void
define void @mirrored(ptr %x, ptr %y, i32 %group, i32 %n) {
  %first = shl i32 %group, 5
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %first, %lane
  %back = sub i32 %n, %i
  %clamped = call i32 @llvm.smax.i32(i32 %back, i32 0)
  %at = sext i32 %clamped to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; Lanes of odd positions take the next element.
; CHECK-LABEL: define void @chosen_by_parity(
; CHECK: icmp eq <{{8|16}} x i32> %{{.+}}, <i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3, i32 4
; CHECK: ret void
define void @chosen_by_parity(ptr %x, ptr %y, i32 %group, i32 %n) {
  %first = shl i32 %group, 5
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %first, %lane
  %half = lshr i32 %i, 1
  %next = add i32 %half, 1
  %clamped = call i32 @llvm.smin.i32(i32 %next, i32 %n)
  %bit = and i32 %lane, 1
  %is.even = icmp eq i32 %bit, 0
  %chosen = select i1 %is.even, i32 %half, i32 %clamped
  %at = sext i32 %chosen to i64
  %from = getelementptr i8, ptr %x, i64 %at
  %v = load i8, ptr %from
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %v, ptr %to
  ret void
}
