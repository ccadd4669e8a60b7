; A select or phi may be any of its operands, each of which limits the alignment: a guard's zeros with 64 bytes do not.
; A pointer that moves in a loop is limited by its step.
; RUN: kiln-opt --passes=alignments %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: @guarded(
; CHECK: load i64, ptr %guarded, align 8
define i64 @guarded(ptr align 8 %x, i1 %inside) {
  %guarded = select i1 %inside, ptr %x, ptr @__kiln_zeros.64
  %value = load i64, ptr %guarded, align 8
  ret i64 %value
}

; CHECK-LABEL: @either(
; CHECK: load i64, ptr %either, align 4
define i64 @either(ptr align 8 %x, ptr align 4 %y, i1 %c) {
  %either = select i1 %c, ptr %x, ptr %y
  %value = load i64, ptr %either, align 8
  ret i64 %value
}

; CHECK-LABEL: @walks(
; CHECK: load <4 x float>, ptr %p, align 8
; CHECK: ret
define void @walks(ptr align 16 %x, ptr align 16 %out, i1 %more) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %x, %entry ], [ %next, %loop ]
  %value = load <4 x float>, ptr %p, align 16
  store volatile <4 x float> %value, ptr %out, align 16
  %next = getelementptr i8, ptr %p, i64 24
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @walks_by_16(
; CHECK: load <4 x float>, ptr %p, align 16
; CHECK: ret
define void @walks_by_16(ptr align 16 %x, ptr align 16 %out, i1 %more) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %x, %entry ], [ %next, %loop ]
  %value = load <4 x float>, ptr %p, align 16
  store volatile <4 x float> %value, ptr %out, align 16
  %next = getelementptr i8, ptr %p, i64 16
  br i1 %more, label %loop, label %end
end:
  ret void
}
