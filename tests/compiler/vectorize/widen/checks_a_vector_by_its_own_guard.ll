; One guard allows all members of a vector, as `offset < size - 7` does for four halves. If the last lane's offset passes,
; 31 * 8 bytes behind that of the first, so do its members: the array may end with them.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()
@__kiln_zeros.64 = external global [64 x i8]
@__kiln_sink = external global [64 x i8]

; CHECK-LABEL: define void @four(
; CHECK: call i64 @llvm.usub.sat.i64(i64 %limit, i64 248)
define void @four(ptr %x, ptr %y, i64 %first, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 3
  %o = add i64 %n, %first
  %inside = icmp ult i64 %o, %limit
  %at = getelementptr i8, ptr %x, i64 %o
  %p0 = select i1 %inside, ptr %at, ptr @__kiln_zeros.64
  %at1 = getelementptr i8, ptr %at, i64 2
  %p1 = select i1 %inside, ptr %at1, ptr @__kiln_zeros.64
  %at2 = getelementptr i8, ptr %at, i64 4
  %p2 = select i1 %inside, ptr %at2, ptr @__kiln_zeros.64
  %at3 = getelementptr i8, ptr %at, i64 6
  %p3 = select i1 %inside, ptr %at3, ptr @__kiln_zeros.64
  %a = load half, ptr %p0
  %b = load half, ptr %p1
  %c = load half, ptr %p2
  %d = load half, ptr %p3
  %ab = fadd half %a, %b
  %cd = fadd half %c, %d
  %s = fadd half %ab, %cd
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  ret void
}

; What is between the last lane's second member and the next lane's first is read, too: two elements more.
; CHECK-LABEL: define void @two(
; CHECK: call i64 @llvm.usub.sat.i64(i64 %limit, i64 252)
define void @two(ptr %x, ptr %y, i64 %first, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 3
  %o = add i64 %n, %first
  %inside = icmp ult i64 %o, %limit
  %at = getelementptr i8, ptr %x, i64 %o
  %p0 = select i1 %inside, ptr %at, ptr @__kiln_zeros.64
  %at1 = getelementptr i8, ptr %at, i64 2
  %p1 = select i1 %inside, ptr %at1, ptr @__kiln_zeros.64
  %a = load half, ptr %p0
  %b = load half, ptr %p1
  %s = fadd half %a, %b
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  ret void
}

; Stores do not write between members.
; CHECK-LABEL: define void @stores(
; CHECK: call i64 @llvm.usub.sat.i64(i64 %limit, i64 248)
define void @stores(ptr %y, i64 %first, i64 %limit, half %v) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 3
  %o = add i64 %n, %first
  %inside = icmp ult i64 %o, %limit
  %at = getelementptr i8, ptr %y, i64 %o
  %p0 = select i1 %inside, ptr %at, ptr @__kiln_sink
  %at1 = getelementptr i8, ptr %at, i64 2
  %p1 = select i1 %inside, ptr %at1, ptr @__kiln_sink
  store half %v, ptr %p0
  store half %v, ptr %p1
  ret void
}

; Members with guards of their own: the last one's must pass, too.
; CHECK-LABEL: define void @own_guards(
; CHECK: call i64 @llvm.usub.sat.i64(i64 %limit, i64 254)
define void @own_guards(ptr %x, ptr %y, i64 %first, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 3
  %o0 = add i64 %n, %first
  %o3 = add i64 %o0, 6
  %inside0 = icmp ult i64 %o0, %limit
  %inside3 = icmp ult i64 %o3, %limit
  %at0 = getelementptr i8, ptr %x, i64 %o0
  %at3 = getelementptr i8, ptr %x, i64 %o3
  %p0 = select i1 %inside0, ptr %at0, ptr @__kiln_zeros.64
  %p3 = select i1 %inside3, ptr %at3, ptr @__kiln_zeros.64
  %a = load half, ptr %p0
  %d = load half, ptr %p3
  %s = fadd half %a, %d
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  ret void
}
