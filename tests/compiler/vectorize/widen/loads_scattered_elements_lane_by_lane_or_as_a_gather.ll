; A load whose index each lane has read is a gather where the processor has good ones, else, as of bytes with AVX2, a loop
; over the active lanes. An inactive lane does not load, and gets zero.
; RUN: kiln-opt --passes=widen --cpu=x86-64-v4 %s | FileCheck %s --check-prefix=GATHER
; RUN: kiln-opt --passes=widen --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=GATHER,LOOP
; RUN: kiln-opt --passes=widen --cpu=x86-64-v4 --remarks %s 2>&1 | FileCheck %s --check-prefix=GATHER-REMARK
; RUN: kiln-opt --passes=widen --cpu=x86-64-v3 --remarks %s 2>&1 | FileCheck %s --check-prefix=LOOP-REMARK

; LOOP-REMARK: remark: widen: gather: the load's stride from thread to thread is not known
; LOOP-REMARK: remark: widen: gather lane by lane: the load's stride from thread to thread is not known
; LOOP-REMARK-NOT: remark:

; GATHER-REMARK: remark: widen: gather: the load's stride from thread to thread is not known
; GATHER-REMARK-NOT: remark:

declare i32 @__kiln_lane()

; GATHER-LABEL: define void @gather(
; GATHER: %[[MASK:.*]] = icmp ult <32 x i32>
; GATHER: %[[K:.*]] = call <32 x i32> @llvm.masked.load
; GATHER: %[[FROM:.*]] = getelementptr float, ptr %x, <32 x i32> %[[K]]
; GATHER: %[[V:.*]] = call <32 x float> @llvm.masked.gather{{.*}}(<32 x ptr> %[[FROM]], i32 4, <32 x i1> %[[MASK]], <32 x float> zeroinitializer)
; GATHER: call void @llvm.masked.store{{.*}}(<32 x float> %[[V]],

define void @gather(ptr %x, ptr %indices, ptr %y, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %from = getelementptr float, ptr %x, i32 %k
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; LOOP-LABEL: define void @bytes(
; LOOP: %[[SLOTS:.*]] = alloca <32 x i8>
; LOOP: %[[MASK:.*]] = icmp ult <32 x i32>
; LOOP: store <32 x i8> zeroinitializer, ptr %[[SLOTS]]
; LOOP: %[[BITS:.*]] = bitcast <32 x i1> %[[MASK]] to i32
; LOOP: %[[REST:.*]] = phi i32 [ %[[BITS]], {{.*}} ], [ %[[NEXT:.*]], {{.*}} ]
; LOOP: %[[LESS:.*]] = sub i32 %[[REST]], 1
; LOOP-NEXT: %[[NEXT]] = and i32 %[[REST]], %[[LESS]]
; LOOP-NEXT: %[[LANE:.*]] = call i32 @llvm.cttz.i32(i32 %[[REST]]
; LOOP: %[[ONE:.*]] = load i8, ptr
; LOOP-NEXT: %[[SLOT:.*]] = getelementptr i8, ptr %[[SLOTS]], i32 %[[LANE]]
; LOOP-NEXT: store i8 %[[ONE]], ptr %[[SLOT]]
; LOOP: %[[V:.*]] = load <32 x i8>, ptr %[[SLOTS]]
; LOOP: zext <32 x i8> %[[V]] to <32 x i32>
define void @bytes(ptr %x, ptr %indices, ptr %y, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %from = getelementptr i8, ptr %x, i32 %k
  %v = load i8, ptr %from
  %wide = zext i8 %v to i32
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %wide, ptr %to
  ret void
}
