; No guard says where an array ends, and some lanes are inactive: the launch knows whether the elements of all lanes
; belong to its argument. Of other memory what is between the first and the last lane's element is there if both are
; active.
; RUN: kiln-opt --passes=widen --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @bytes(
; CHECK: %[[LAUNCH:.+]] = getelementptr i8, ptr %launch, i64 0
; CHECK: %[[ALL:.+]] = load ptr, ptr %[[LAUNCH]]
; CHECK: %[[FIRST_AT:.+]] = getelementptr i8, ptr %[[ALL]], i64 32
; CHECK: %[[FIRST:.+]] = load i64, ptr %[[FIRST_AT]]
; CHECK: %[[DATA_AT:.+]] = getelementptr i8, ptr %[[ALL]], i64 24
; CHECK: %[[DATA:.+]] = load ptr, ptr %[[DATA_AT]]
; CHECK: %[[BEGIN:.+]] = getelementptr i8, ptr %[[DATA]], i64 %[[FIRST]]
; CHECK: %[[FROM:.+]] = ptrtoint ptr %[[BEGIN]] to i64
; CHECK: %[[END_AT:.+]] = getelementptr i8, ptr %[[ALL]], i64 40
; CHECK: %[[END:.+]] = load i64, ptr %[[END_AT]]
; CHECK: %[[BYTES:.+]] = sub i64 %[[END]], %[[FIRST]]
; CHECK: %[[ROOM:.+]] = call i64 @llvm.usub.sat.i64(i64 %[[BYTES]], i64 31)
; CHECK: {{^}}then:
; CHECK: %[[ADDRESS:.+]] = ptrtoint ptr %{{.+}} to i64
; CHECK: %[[OFFSET:.+]] = sub i64 %[[ADDRESS]], %[[FROM]]
; CHECK: icmp ult i64 %[[OFFSET]], %[[ROOM]]
; CHECK-NOT: icmp eq i32 %{{.+}}, -1
; CHECK: {{^}}row:
; CHECK: load <32 x i8>
; CHECK: {{^}}lanes1:
define void @bytes(ptr %launch, ptr %record, ptr %y, i64 %at, i32 %width, i32 %lanes) {
  %arguments = load ptr, ptr %launch, !invariant.load !0
  %second = getelementptr i8, ptr %arguments, i64 24
  %x = load ptr, ptr %second, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %y, i32 %lane
  %some = load float, ptr %from
  %is.wanted = fcmp ogt float %some, 0.5
  br i1 %is.wanted, label %then, label %end
then:
  %wide = zext i32 %lane to i64
  %i = add i64 %at, %wide
  %p = getelementptr i8, ptr %x, i64 %i
  %v = load i8, ptr %p
  %f = uitofp i8 %v to float
  store float %f, ptr %from
  br label %end
end:
  ret void
}

; Three floats a lane: up to the last one of the last lane.
; CHECK-LABEL: define void @members(
; CHECK: %[[ROOM:.+]] = call i64 @llvm.usub.sat.i64(i64 %{{.+}}, i64 383)
; CHECK: {{^}}then:
; CHECK: icmp ult i64 %{{.+}}, %[[ROOM]]
define void @members(ptr %launch, ptr %record, ptr %y, i64 %at, i32 %width, i32 %lanes) {
  %arguments = load ptr, ptr %launch, !invariant.load !0
  %x = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %y, i32 %lane
  %some = load float, ptr %from
  %is.wanted = fcmp ogt float %some, 0.5
  br i1 %is.wanted, label %then, label %end
then:
  %wide = zext i32 %lane to i64
  %three = mul i64 %wide, 3
  %p = getelementptr float, ptr %x, i64 %three
  %q = getelementptr float, ptr %p, i64 1
  %r = getelementptr float, ptr %p, i64 2
  %a = load float, ptr %p
  %b = load float, ptr %q
  %c = load float, ptr %r
  %ab = fadd float %a, %b
  %sum = fadd float %ab, %c
  store float %sum, ptr %from
  br label %end
end:
  ret void
}

; CHECK-LABEL: define void @of_other_memory(
; CHECK: {{^}}then:
; CHECK: %[[ENDS:.+]] = and i32 %{{.+}}, -2147483647
; CHECK: icmp eq i32 %[[ENDS]], -2147483647
; CHECK: {{^}}row:
; CHECK: load <32 x i16>
define void @of_other_memory(ptr %launch, ptr %x, ptr %y, i64 %at, i32 %width, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %y, i32 %lane
  %some = load float, ptr %from
  %is.wanted = fcmp ogt float %some, 0.5
  br i1 %is.wanted, label %then, label %end
then:
  %wide = zext i32 %lane to i64
  %i = add i64 %at, %wide
  %p = getelementptr i16, ptr %x, i64 %i
  %v = load i16, ptr %p
  %f = uitofp i16 %v to float
  store float %f, ptr %from
  br label %end
end:
  ret void
}

; The last element of a pattern is not the last lane's: all lanes must be active.
; CHECK-LABEL: define void @pattern(
; CHECK: {{^}}then:
; CHECK: icmp eq i32 %{{.+}}, -1
; CHECK: {{^}}row:
; CHECK: load <8 x float>
define void @pattern(ptr %launch, ptr %x, ptr %y, i64 %at, i32 %width, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %y, i32 %lane
  %some = load float, ptr %from
  %is.wanted = fcmp ogt float %some, 0.5
  br i1 %is.wanted, label %then, label %end
then:
  %quarter = lshr i32 %lane, 2
  %three = mul i32 %quarter, 3
  %place = and i32 %three, 7
  %wide = zext i32 %place to i64
  %i = add i64 %at, %wide
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p
  store float %v, ptr %from
  br label %end
end:
  ret void
}

!0 = !{}
