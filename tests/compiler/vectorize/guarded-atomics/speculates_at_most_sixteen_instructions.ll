; Up to 16 instructions beside the update are worth executing for lanes that the guard forbids.
; RUN: kiln-opt --passes=guarded-atomics %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @sixteen(
; CHECK-NOT: br i1
; CHECK: atomicrmw fadd ptr %{{.*}}, float %a16
define void @sixteen(ptr %y, i64 %end, float %a0) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ult i64 %wide, %end
  br i1 %allowed, label %add, label %done
add:
  %a1 = fadd float %a0, 1.0
  %a2 = fadd float %a1, 1.0
  %a3 = fadd float %a2, 1.0
  %a4 = fadd float %a3, 1.0
  %a5 = fadd float %a4, 1.0
  %a6 = fadd float %a5, 1.0
  %a7 = fadd float %a6, 1.0
  %a8 = fadd float %a7, 1.0
  %a9 = fadd float %a8, 1.0
  %a10 = fadd float %a9, 1.0
  %a11 = fadd float %a10, 1.0
  %a12 = fadd float %a11, 1.0
  %a13 = fadd float %a12, 1.0
  %a14 = fadd float %a13, 1.0
  %a15 = fadd float %a14, 1.0
  %a16 = fadd float %a15, 1.0
  %old = atomicrmw fadd ptr %y, float %a16 monotonic
  br label %done
done:
  ret void
}

; CHECK-LABEL: define void @seventeen(
; CHECK: br i1 %allowed, label %add, label %done
define void @seventeen(ptr %y, i64 %end, float %a0) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ult i64 %wide, %end
  br i1 %allowed, label %add, label %done
add:
  %a1 = fadd float %a0, 1.0
  %a2 = fadd float %a1, 1.0
  %a3 = fadd float %a2, 1.0
  %a4 = fadd float %a3, 1.0
  %a5 = fadd float %a4, 1.0
  %a6 = fadd float %a5, 1.0
  %a7 = fadd float %a6, 1.0
  %a8 = fadd float %a7, 1.0
  %a9 = fadd float %a8, 1.0
  %a10 = fadd float %a9, 1.0
  %a11 = fadd float %a10, 1.0
  %a12 = fadd float %a11, 1.0
  %a13 = fadd float %a12, 1.0
  %a14 = fadd float %a13, 1.0
  %a15 = fadd float %a14, 1.0
  %a16 = fadd float %a15, 1.0
  %a17 = fadd float %a16, 1.0
  %old = atomicrmw fadd ptr %y, float %a17 monotonic
  br label %done
done:
  ret void
}
