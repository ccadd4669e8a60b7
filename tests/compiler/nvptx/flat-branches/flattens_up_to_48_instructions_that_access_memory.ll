; 48 instructions are flattened, 49 are not: all threads would execute them. A side without any access stays, too, since
; nothing would be waited for.
; RUN: kiln-opt --passes=flat-branches %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16

; CHECK-LABEL: @has_48(
; CHECK-NOT: br
; CHECK: ret void
define void @has_48(ptr %p, i1 %inside, i32 %x0, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %x1 = mul i32 %x0, %x0
  %x2 = mul i32 %x1, %x1
  %x3 = mul i32 %x2, %x2
  %x4 = mul i32 %x3, %x3
  %x5 = mul i32 %x4, %x4
  %x6 = mul i32 %x5, %x5
  %x7 = mul i32 %x6, %x6
  %x8 = mul i32 %x7, %x7
  %x9 = mul i32 %x8, %x8
  %x10 = mul i32 %x9, %x9
  %x11 = mul i32 %x10, %x10
  %x12 = mul i32 %x11, %x11
  %x13 = mul i32 %x12, %x12
  %x14 = mul i32 %x13, %x13
  %x15 = mul i32 %x14, %x14
  %x16 = mul i32 %x15, %x15
  %x17 = mul i32 %x16, %x16
  %x18 = mul i32 %x17, %x17
  %x19 = mul i32 %x18, %x18
  %x20 = mul i32 %x19, %x19
  %x21 = mul i32 %x20, %x20
  %x22 = mul i32 %x21, %x21
  %x23 = mul i32 %x22, %x22
  %x24 = mul i32 %x23, %x23
  %x25 = mul i32 %x24, %x24
  %x26 = mul i32 %x25, %x25
  %x27 = mul i32 %x26, %x26
  %x28 = mul i32 %x27, %x27
  %x29 = mul i32 %x28, %x28
  %x30 = mul i32 %x29, %x29
  %x31 = mul i32 %x30, %x30
  %x32 = mul i32 %x31, %x31
  %x33 = mul i32 %x32, %x32
  %x34 = mul i32 %x33, %x33
  %x35 = mul i32 %x34, %x34
  %x36 = mul i32 %x35, %x35
  %x37 = mul i32 %x36, %x36
  %x38 = mul i32 %x37, %x37
  %x39 = mul i32 %x38, %x38
  %x40 = mul i32 %x39, %x39
  %x41 = mul i32 %x40, %x40
  %x42 = mul i32 %x41, %x41
  %x43 = mul i32 %x42, %x42
  %x44 = mul i32 %x43, %x43
  %x45 = mul i32 %x44, %x44
  %x46 = mul i32 %x45, %x45
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 %x46, ptr %guarded
  br label %end
end:
  ret void
}

; CHECK-LABEL: @has_49(
; CHECK: br i1 %taken
define void @has_49(ptr %p, i1 %inside, i32 %x0, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %x1 = mul i32 %x0, %x0
  %x2 = mul i32 %x1, %x1
  %x3 = mul i32 %x2, %x2
  %x4 = mul i32 %x3, %x3
  %x5 = mul i32 %x4, %x4
  %x6 = mul i32 %x5, %x5
  %x7 = mul i32 %x6, %x6
  %x8 = mul i32 %x7, %x7
  %x9 = mul i32 %x8, %x8
  %x10 = mul i32 %x9, %x9
  %x11 = mul i32 %x10, %x10
  %x12 = mul i32 %x11, %x11
  %x13 = mul i32 %x12, %x12
  %x14 = mul i32 %x13, %x13
  %x15 = mul i32 %x14, %x14
  %x16 = mul i32 %x15, %x15
  %x17 = mul i32 %x16, %x16
  %x18 = mul i32 %x17, %x17
  %x19 = mul i32 %x18, %x18
  %x20 = mul i32 %x19, %x19
  %x21 = mul i32 %x20, %x20
  %x22 = mul i32 %x21, %x21
  %x23 = mul i32 %x22, %x22
  %x24 = mul i32 %x23, %x23
  %x25 = mul i32 %x24, %x24
  %x26 = mul i32 %x25, %x25
  %x27 = mul i32 %x26, %x26
  %x28 = mul i32 %x27, %x27
  %x29 = mul i32 %x28, %x28
  %x30 = mul i32 %x29, %x29
  %x31 = mul i32 %x30, %x30
  %x32 = mul i32 %x31, %x31
  %x33 = mul i32 %x32, %x32
  %x34 = mul i32 %x33, %x33
  %x35 = mul i32 %x34, %x34
  %x36 = mul i32 %x35, %x35
  %x37 = mul i32 %x36, %x36
  %x38 = mul i32 %x37, %x37
  %x39 = mul i32 %x38, %x38
  %x40 = mul i32 %x39, %x39
  %x41 = mul i32 %x40, %x40
  %x42 = mul i32 %x41, %x41
  %x43 = mul i32 %x42, %x42
  %x44 = mul i32 %x43, %x43
  %x45 = mul i32 %x44, %x44
  %x46 = mul i32 %x45, %x45
  %x47 = mul i32 %x46, %x46
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 %x47, ptr %guarded
  br label %end
end:
  ret void
}

; CHECK-LABEL: @computes(
; CHECK: br i1 %taken
; CHECK: phi i32
define i32 @computes(i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %square = mul i32 %x, %x
  br label %end
end:
  %result = phi i32 [ %x, %entry ], [ %square, %then ]
  ret i32 %result
}

; Two sides: only a branch with one is flattened.
; CHECK-LABEL: @two_sides(
; CHECK: br i1 %taken
define void @two_sides(ptr %p, i1 %inside, i1 %taken) {
entry:
  br i1 %taken, label %then, label %else
then:
  %one = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 1, ptr %one
  br label %end
else:
  %two = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 2, ptr %two
  br label %end
end:
  ret void
}
