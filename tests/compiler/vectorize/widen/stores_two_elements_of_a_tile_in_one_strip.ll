; A thread stores two elements of a matrix whose rows are at a distance that is known at run time. Both elements of four
; lanes are eight elements in a row, so a row is one store, at the address and with the bound of its own first lane.
; RUN: kiln-opt --passes=widen,instsimplify --full --cpu=x86-64-v4 %s | FileCheck %s

@__kiln_sink = external global [4 x i8]

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @rows(
; CHECK: br i1 %{{.*}}, label %tile, label %lanes
; CHECK: {{^}}tile:
; CHECK-NEXT: store <8 x float> <float 0.0{{.*}}, float 2.0{{.*}}, float 1.0{{.*}}, float 2.0{{.*}}>, ptr %x, align 4
; CHECK-NEXT: %[[PITCH:.*]] = shl i64 %pitch, 2
; CHECK-NEXT: %[[SECOND:.*]] = getelementptr i8, ptr %x, i64 %[[PITCH]]
; CHECK-NEXT: store <8 x float> <float 4.0{{.*}}, float 2.0{{.*}}, float 5.0{{.*}}>, ptr %[[SECOND]], align 4
; CHECK-COUNT-6: store <8 x float>
; CHECK: {{^}}lanes1:
define void @rows(ptr %x, i64 %pitch, i64 %size, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %value = sitofp i32 %lane to float
  %lane64 = zext i32 %lane to i64
  %row = lshr i64 %lane64, 2
  %pair = and i64 %lane64, 3
  %begin = mul i64 %row, %pitch
  %column = shl i64 %pair, 1
  %index = add i64 %begin, %column
  %offset = shl i64 %index, 2
  %next_offset = add i64 %offset, 4
  %first = getelementptr i8, ptr %x, i64 %offset
  %second = getelementptr i8, ptr %x, i64 %next_offset
  %first_allowed = icmp ult i64 %offset, %size
  %second_allowed = icmp ult i64 %next_offset, %size
  %first_to = select i1 %first_allowed, ptr %first, ptr @__kiln_sink
  %second_to = select i1 %second_allowed, ptr %second, ptr @__kiln_sink
  store float %value, ptr %first_to
  store float 2.0, ptr %second_to
  ret void
}
