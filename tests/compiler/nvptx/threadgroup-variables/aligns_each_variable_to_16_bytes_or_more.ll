; The widest access has 16 bytes. A larger alignment of the kernel's own stays.
; RUN: kiln-opt --passes=threadgroup-variables %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-DAG: global [3 x i8] poison, section "kiln.threadgroup", align 16
; CHECK-DAG: global [4 x i8] poison, section "kiln.threadgroup", align 16
; CHECK-DAG: global [5 x i8] poison, section "kiln.threadgroup", align 128
@unaligned = internal global [3 x i8] undef, section "kiln.threadgroup"
@aligned_to_8 = internal global [4 x i8] undef, section "kiln.threadgroup", align 8
@aligned_to_128 = internal global [5 x i8] undef, section "kiln.threadgroup", align 128
