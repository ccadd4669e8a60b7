; A uniform load whose address is a select between an address and the zeros needs no test whether any lane takes its
; side. If none does it reads the zeros, whatever the guard says: LLVM simplifies guards by the branch's condition, and
; the address may be poison.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

@__kiln_zeros.64 = external global [64 x i8]

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @guarded(
; CHECK-NOT: br i1
; CHECK: side:
; CHECK: %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
; CHECK: %[[ANY:.*]] = icmp ne i32 %{{.*}}, 0
; CHECK: %[[FROM:.*]] = select i1 %[[ANY]], ptr %guarded, ptr @__kiln_zeros.64
; CHECK: load i32, ptr %[[FROM]]
; CHECK: br label %join
; CHECK-NOT: br i1
; CHECK: ret void
define void @guarded(ptr %x, ptr %y, ptr %table, i64 %at, i64 %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  %odd = trunc i32 %v to i1
  br i1 %odd, label %side, label %join
side:
  %before = add nuw i64 %at, -4
  %inside = icmp ult i64 %before, %limit
  %address = getelementptr i8, ptr %table, i64 %before
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %t = load i32, ptr %guarded
  %sum = xor i32 %v, %t
  br label %join
join:
  %r = phi i32 [ %sum, %side ], [ %v, %entry ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

; The inner side's load reads the table if a lane takes that side.
; CHECK-LABEL: define void @nested(
; CHECK-NOT: br i1
; CHECK: side:
; CHECK: load i32, ptr
; CHECK: br label %inner
; CHECK: inner:
; CHECK: %[[ANY:.*]] = icmp ne i32 %{{.*}}, 0
; CHECK: %[[FROM:.*]] = select i1 %[[ANY]], ptr %{{.*}}, ptr @__kiln_zeros.64
; CHECK: load i32, ptr %[[FROM]]
; CHECK-NOT: br i1
; CHECK: ret void
define void @nested(ptr %x, ptr %y, ptr %table, i64 %at, i64 %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  %inside = icmp ult i64 %at, %limit
  %address = getelementptr i8, ptr %table, i64 %at
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %odd = trunc i32 %v to i1
  br i1 %odd, label %side, label %join
side:
  %t = load i32, ptr %guarded
  %sum = xor i32 %v, %t
  %negative = icmp slt i32 %sum, 0
  br i1 %negative, label %inner, label %inner_join
inner:
  %u = load i32, ptr %guarded
  %more = add i32 %u, %sum
  br label %inner_join
inner_join:
  %w = phi i32 [ %more, %inner ], [ %sum, %side ]
  br label %join
join:
  %r = phi i32 [ %w, %inner_join ], [ %v, %entry ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

; Without a guard, or with one that LLVM has proved by the branch, the side runs only if a lane takes it.
; CHECK-LABEL: define void @unguarded(
; CHECK: br i1 %{{.*}}, label %side, label %join
; CHECK: side:
; CHECK: load i32, ptr %address
define void @unguarded(ptr %x, ptr %y, ptr %table, i64 %at, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  %odd = trunc i32 %v to i1
  br i1 %odd, label %side, label %join
side:
  %address = getelementptr i8, ptr %table, i64 %at
  %t = load i32, ptr %address
  %sum = xor i32 %v, %t
  br label %join
join:
  %r = phi i32 [ %sum, %side ], [ %v, %entry ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

; CHECK-LABEL: define void @volatile(
; CHECK: br i1 %{{.*}}, label %side, label %join
; CHECK-LABEL: define void @atomic(
; CHECK: br i1 %{{.*}}, label %side, label %join
; CHECK-LABEL: define void @divergent(
; CHECK: br i1 %{{.*}}, label %side, label %join
define void @volatile(ptr %x, ptr %y, ptr %table, i1 %inside, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  %odd = trunc i32 %v to i1
  br i1 %odd, label %side, label %join
side:
  %guarded = select i1 %inside, ptr %table, ptr @__kiln_zeros.64
  %t = load volatile i32, ptr %guarded
  br label %join
join:
  %r = phi i32 [ %t, %side ], [ %v, %entry ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

define void @atomic(ptr %x, ptr %y, ptr %table, i1 %inside, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  %odd = trunc i32 %v to i1
  br i1 %odd, label %side, label %join
side:
  %guarded = select i1 %inside, ptr %table, ptr @__kiln_zeros.64
  %t = load atomic i32, ptr %guarded monotonic, align 4
  br label %join
join:
  %r = phi i32 [ %t, %side ], [ %v, %entry ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

define void @divergent(ptr %x, ptr %y, ptr %table, i64 %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %v = load i32, ptr %from
  %odd = trunc i32 %v to i1
  br i1 %odd, label %side, label %join
side:
  %wide = zext i32 %v to i64
  %inside = icmp ult i64 %wide, %limit
  %address = getelementptr i8, ptr %table, i64 %wide
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %t = load i32, ptr %guarded, align 1
  br label %join
join:
  %r = phi i32 [ %t, %side ], [ %v, %entry ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}
