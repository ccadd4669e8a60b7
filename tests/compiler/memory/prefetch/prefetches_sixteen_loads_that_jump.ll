; Fewer bytes than a page are prefetched, too, where the hardware does not follow: from sixteen loads that jump by
; more than a line. It follows fifteen, and loads that leave out no line.
; RUN: kiln-opt --passes=prefetch %s | FileCheck %s

; CHECK-LABEL: @sixteen_that_jump(
; CHECK-COUNT-16: call void @llvm.prefetch.p0(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @sixteen_that_jump(ptr %data, ptr %record, ptr %sum) {
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 10
  %address = getelementptr i8, ptr %data, i64 %first
  %load0 = load <8 x float>, ptr %address, align 4
  store volatile <8 x float> %load0, ptr %sum
  %at1 = getelementptr i8, ptr %address, i64 128
  %load1 = load <8 x float>, ptr %at1, align 4
  store volatile <8 x float> %load1, ptr %sum
  %at2 = getelementptr i8, ptr %address, i64 256
  %load2 = load <8 x float>, ptr %at2, align 4
  store volatile <8 x float> %load2, ptr %sum
  %at3 = getelementptr i8, ptr %address, i64 384
  %load3 = load <8 x float>, ptr %at3, align 4
  store volatile <8 x float> %load3, ptr %sum
  %at4 = getelementptr i8, ptr %address, i64 512
  %load4 = load <8 x float>, ptr %at4, align 4
  store volatile <8 x float> %load4, ptr %sum
  %at5 = getelementptr i8, ptr %address, i64 640
  %load5 = load <8 x float>, ptr %at5, align 4
  store volatile <8 x float> %load5, ptr %sum
  %at6 = getelementptr i8, ptr %address, i64 768
  %load6 = load <8 x float>, ptr %at6, align 4
  store volatile <8 x float> %load6, ptr %sum
  %at7 = getelementptr i8, ptr %address, i64 896
  %load7 = load <8 x float>, ptr %at7, align 4
  store volatile <8 x float> %load7, ptr %sum
  %at8 = getelementptr i8, ptr %address, i64 1024
  %load8 = load <8 x float>, ptr %at8, align 4
  store volatile <8 x float> %load8, ptr %sum
  %at9 = getelementptr i8, ptr %address, i64 1152
  %load9 = load <8 x float>, ptr %at9, align 4
  store volatile <8 x float> %load9, ptr %sum
  %at10 = getelementptr i8, ptr %address, i64 1280
  %load10 = load <8 x float>, ptr %at10, align 4
  store volatile <8 x float> %load10, ptr %sum
  %at11 = getelementptr i8, ptr %address, i64 1408
  %load11 = load <8 x float>, ptr %at11, align 4
  store volatile <8 x float> %load11, ptr %sum
  %at12 = getelementptr i8, ptr %address, i64 1536
  %load12 = load <8 x float>, ptr %at12, align 4
  store volatile <8 x float> %load12, ptr %sum
  %at13 = getelementptr i8, ptr %address, i64 1664
  %load13 = load <8 x float>, ptr %at13, align 4
  store volatile <8 x float> %load13, ptr %sum
  %at14 = getelementptr i8, ptr %address, i64 1792
  %load14 = load <8 x float>, ptr %at14, align 4
  store volatile <8 x float> %load14, ptr %sum
  %at15 = getelementptr i8, ptr %address, i64 1920
  %load15 = load <8 x float>, ptr %at15, align 4
  store volatile <8 x float> %load15, ptr %sum
  ret void
}

; CHECK-LABEL: @fifteen_that_jump(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @fifteen_that_jump(ptr %data, ptr %record, ptr %sum) {
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 10
  %address = getelementptr i8, ptr %data, i64 %first
  %load0 = load <8 x float>, ptr %address, align 4
  store volatile <8 x float> %load0, ptr %sum
  %at1 = getelementptr i8, ptr %address, i64 128
  %load1 = load <8 x float>, ptr %at1, align 4
  store volatile <8 x float> %load1, ptr %sum
  %at2 = getelementptr i8, ptr %address, i64 256
  %load2 = load <8 x float>, ptr %at2, align 4
  store volatile <8 x float> %load2, ptr %sum
  %at3 = getelementptr i8, ptr %address, i64 384
  %load3 = load <8 x float>, ptr %at3, align 4
  store volatile <8 x float> %load3, ptr %sum
  %at4 = getelementptr i8, ptr %address, i64 512
  %load4 = load <8 x float>, ptr %at4, align 4
  store volatile <8 x float> %load4, ptr %sum
  %at5 = getelementptr i8, ptr %address, i64 640
  %load5 = load <8 x float>, ptr %at5, align 4
  store volatile <8 x float> %load5, ptr %sum
  %at6 = getelementptr i8, ptr %address, i64 768
  %load6 = load <8 x float>, ptr %at6, align 4
  store volatile <8 x float> %load6, ptr %sum
  %at7 = getelementptr i8, ptr %address, i64 896
  %load7 = load <8 x float>, ptr %at7, align 4
  store volatile <8 x float> %load7, ptr %sum
  %at8 = getelementptr i8, ptr %address, i64 1024
  %load8 = load <8 x float>, ptr %at8, align 4
  store volatile <8 x float> %load8, ptr %sum
  %at9 = getelementptr i8, ptr %address, i64 1152
  %load9 = load <8 x float>, ptr %at9, align 4
  store volatile <8 x float> %load9, ptr %sum
  %at10 = getelementptr i8, ptr %address, i64 1280
  %load10 = load <8 x float>, ptr %at10, align 4
  store volatile <8 x float> %load10, ptr %sum
  %at11 = getelementptr i8, ptr %address, i64 1408
  %load11 = load <8 x float>, ptr %at11, align 4
  store volatile <8 x float> %load11, ptr %sum
  %at12 = getelementptr i8, ptr %address, i64 1536
  %load12 = load <8 x float>, ptr %at12, align 4
  store volatile <8 x float> %load12, ptr %sum
  %at13 = getelementptr i8, ptr %address, i64 1664
  %load13 = load <8 x float>, ptr %at13, align 4
  store volatile <8 x float> %load13, ptr %sum
  %at14 = getelementptr i8, ptr %address, i64 1792
  %load14 = load <8 x float>, ptr %at14, align 4
  store volatile <8 x float> %load14, ptr %sum
  ret void
}

; CHECK-LABEL: @sixteen_in_a_row(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @sixteen_in_a_row(ptr %data, ptr %record, ptr %sum) {
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 10
  %address = getelementptr i8, ptr %data, i64 %first
  %load0 = load <8 x float>, ptr %address, align 4
  store volatile <8 x float> %load0, ptr %sum
  %at1 = getelementptr i8, ptr %address, i64 64
  %load1 = load <8 x float>, ptr %at1, align 4
  store volatile <8 x float> %load1, ptr %sum
  %at2 = getelementptr i8, ptr %address, i64 128
  %load2 = load <8 x float>, ptr %at2, align 4
  store volatile <8 x float> %load2, ptr %sum
  %at3 = getelementptr i8, ptr %address, i64 192
  %load3 = load <8 x float>, ptr %at3, align 4
  store volatile <8 x float> %load3, ptr %sum
  %at4 = getelementptr i8, ptr %address, i64 256
  %load4 = load <8 x float>, ptr %at4, align 4
  store volatile <8 x float> %load4, ptr %sum
  %at5 = getelementptr i8, ptr %address, i64 320
  %load5 = load <8 x float>, ptr %at5, align 4
  store volatile <8 x float> %load5, ptr %sum
  %at6 = getelementptr i8, ptr %address, i64 384
  %load6 = load <8 x float>, ptr %at6, align 4
  store volatile <8 x float> %load6, ptr %sum
  %at7 = getelementptr i8, ptr %address, i64 448
  %load7 = load <8 x float>, ptr %at7, align 4
  store volatile <8 x float> %load7, ptr %sum
  %at8 = getelementptr i8, ptr %address, i64 512
  %load8 = load <8 x float>, ptr %at8, align 4
  store volatile <8 x float> %load8, ptr %sum
  %at9 = getelementptr i8, ptr %address, i64 576
  %load9 = load <8 x float>, ptr %at9, align 4
  store volatile <8 x float> %load9, ptr %sum
  %at10 = getelementptr i8, ptr %address, i64 640
  %load10 = load <8 x float>, ptr %at10, align 4
  store volatile <8 x float> %load10, ptr %sum
  %at11 = getelementptr i8, ptr %address, i64 704
  %load11 = load <8 x float>, ptr %at11, align 4
  store volatile <8 x float> %load11, ptr %sum
  %at12 = getelementptr i8, ptr %address, i64 768
  %load12 = load <8 x float>, ptr %at12, align 4
  store volatile <8 x float> %load12, ptr %sum
  %at13 = getelementptr i8, ptr %address, i64 832
  %load13 = load <8 x float>, ptr %at13, align 4
  store volatile <8 x float> %load13, ptr %sum
  %at14 = getelementptr i8, ptr %address, i64 896
  %load14 = load <8 x float>, ptr %at14, align 4
  store volatile <8 x float> %load14, ptr %sum
  %at15 = getelementptr i8, ptr %address, i64 960
  %load15 = load <8 x float>, ptr %at15, align 4
  store volatile <8 x float> %load15, ptr %sum
  ret void
}

!0 = !{}
