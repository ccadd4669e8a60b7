; A simdgroup's function with one barrier becomes a threadgroup's with two loops over its simdgroups. A value of each
; simdgroup that is used behind the barrier is in its frame; frames lie 64 bytes apart.
; RUN: kiln-opt --passes=simdgroup-loops %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK: simdgroup-loops: frame of 64 bytes
; CHECK-NOT: define void @simdgroup
; CHECK-LABEL: define void @__kiln_threadgroup(
; CHECK-SAME: ptr %[[LAUNCH:[^,]+]], ptr %[[RECORD:[^,]+]], ptr noalias %[[FRAMES:[^,]+]], ptr %[[PLACES:[^,]+]], i32 %[[COUNT:[^,)]+]])
; CHECK: %[[FIRST:.+]] = phi i32 [ 0, %{{.+}} ], [ %[[FIRST_NEXT:.+]], %{{.+}} ]
; CHECK: %[[FIRST_WIDE:.+]] = zext i32 %[[FIRST]] to i64
; CHECK: %[[DISTANCE:.+]] = mul nuw i64 %[[FIRST_WIDE]], 64
; CHECK: %[[FRAME:.+]] = getelementptr inbounds i8, ptr %[[FRAMES]], i64 %[[DISTANCE]]
; CHECK: %data = load ptr, ptr %[[LAUNCH]]
; CHECK: %value = load <8 x float>
; CHECK: store <8 x float> %value, ptr
; CHECK: %[[FIRST_NEXT]] = add nuw nsw i32 %[[FIRST]], 1
; CHECK: icmp ult i32 %[[FIRST_NEXT]], %[[COUNT]]
; CHECK-NOT: __kiln_wait
; CHECK: %[[SECOND:.+]] = phi i32 [ 0, %{{.+}} ]
; CHECK: %[[VALUE:.+]] = load <8 x float>
; CHECK: fadd <8 x float> %[[VALUE]], %[[VALUE]]
; CHECK: ret void
define void @simdgroup(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes) {
  %data = load ptr, ptr %launch, !invariant.load !0
  %own = getelementptr float, ptr %data, i32 %x
  %value = load <8 x float>, ptr %own
  %unused = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  %twice = fadd <8 x float> %value, %value
  store <8 x float> %twice, ptr %own
  ret void
}

!0 = !{}
