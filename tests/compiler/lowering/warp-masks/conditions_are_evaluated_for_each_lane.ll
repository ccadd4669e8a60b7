; Conditions that send lanes 0 to 15 to one side, in the ways in which programs compute them. Each is evaluated for each
; lane; a condition that cannot be evaluated may send any lane there.
; RUN: kiln-opt --passes=warp-masks %s | FileCheck %s

; CHECK-DAG: ; differences: masks name the lanes that are together
; CHECK-DAG: ; products: masks name the lanes that are together
; CHECK-DAG: ; bits: masks name the lanes that are together
; CHECK-DAG: ; shifts: masks name the lanes that are together
; CHECK-DAG: ; signed_quotients: masks name the lanes that are together
; CHECK-DAG: ; unsigned_quotients: masks name the lanes that are together
; CHECK-DAG: ; remainders: masks name the lanes that are together
; CHECK-DAG: ; wider_numbers: masks name the lanes that are together
; CHECK-DAG: ; choices: masks name the lanes that are together
; CHECK-DAG: ; shift_too_far: lanes that the mask of a _sync function names may wait at another call
; CHECK-DAG: ; division_by_zero: lanes that the mask of a _sync function names may wait at another call
; CHECK-DAG: ; unknown_number: lanes that the mask of a _sync function names may wait at another call

declare i32 @__kiln_lane()
declare void @__kiln_mask(i32) convergent

define void @differences() {
entry:
  %lane = call i32 @__kiln_lane()
  %d = sub i32 31, %lane
  %low = icmp ugt i32 %d, 15
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @products() {
entry:
  %lane = call i32 @__kiln_lane()
  %p = mul i32 %lane, 3
  %low = icmp ult i32 %p, 48
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @bits() {
entry:
  %lane = call i32 @__kiln_lane()
  %o = or i32 %lane, 16
  %x = xor i32 %o, %lane
  %low = icmp eq i32 %x, 16
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @shifts() {
entry:
  %lane = call i32 @__kiln_lane()
  %l = shl i32 %lane, 27
  %a = ashr i32 %l, 31
  %low = icmp eq i32 %a, 0
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @signed_quotients() {
entry:
  %lane = call i32 @__kiln_lane()
  %n = sub i32 0, %lane
  %q = sdiv i32 %n, 16
  %low = icmp eq i32 %q, 0
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @unsigned_quotients() {
entry:
  %lane = call i32 @__kiln_lane()
  %q = udiv i32 %lane, 16
  %low = icmp eq i32 %q, 0
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @remainders() {
entry:
  %lane = call i32 @__kiln_lane()
  %n = add i32 %lane, 32
  %s = srem i32 %n, 32
  %u = urem i32 %s, 32
  %low = icmp slt i32 %u, 16
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @wider_numbers() {
entry:
  %lane = call i32 @__kiln_lane()
  %z = zext i32 %lane to i64
  %t = trunc i64 %z to i8
  %s = sext i8 %t to i64
  %low = icmp ult i64 %s, 16
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @choices() {
entry:
  %lane = call i32 @__kiln_lane()
  %c = icmp ult i32 %lane, 16
  %n = select i1 %c, i32 1, i32 2
  %r = lshr i32 %n, 1
  %low = icmp eq i32 %r, 0
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @shift_too_far() {
entry:
  %lane = call i32 @__kiln_lane()
  %s = shl i32 %lane, 32
  %low = icmp ult i32 %s, 16
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @division_by_zero() {
entry:
  %lane = call i32 @__kiln_lane()
  %s = sdiv i32 %lane, 0
  %low = icmp ult i32 %s, 16
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @unknown_number(i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %s = add i32 %lane, %n
  %low = icmp ult i32 %s, 16
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}
