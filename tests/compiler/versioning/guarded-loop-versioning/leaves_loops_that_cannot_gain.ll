; A loop is left as it is where threads wait for one another in it, where it has two iterations, where an index depends on
; what was loaded, and where an access is not made in each iteration.
; RUN: kiln-opt --passes=guarded-loop-versioning %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-NOT: .slow

define float @waits(ptr %x) {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  call void @llvm.nvvm.barrier0()
  %address = getelementptr float, ptr %x, i64 %k
  %inside = icmp ult i64 %k, 777
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded
  %total = fadd float %sum, %value
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

define float @has_two_iterations(ptr %x, i64 %first) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %i.next, %loop ]
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %address = getelementptr float, ptr %x, i64 %i
  %inside = icmp ult i64 %i, 777
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded
  %total = fadd float %sum, %value
  %i.next = add i64 %i, 1
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, 2
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

define i64 @follows_a_list(ptr %x, i64 %first) {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %i = phi i64 [ %first, %entry ], [ %value, %loop ]
  %address = getelementptr i64, ptr %x, i64 %i
  %inside = icmp ult i64 %i, 777
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %value = load i64, ptr %guarded
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %end
end:
  ret i64 %value
}

define float @skips_some(ptr %x, i64 %first, i64 %last) {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %latch ]
  %sum = phi float [ 0.0, %entry ], [ %total, %latch ]
  %i = add i64 %first, %k
  %is.used = icmp ult i64 %i, %last
  br i1 %is.used, label %use, label %latch
use:
  %address = getelementptr float, ptr %x, i64 %i
  %inside = icmp ult i64 %i, 777
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded
  br label %latch
latch:
  %term = phi float [ %value, %use ], [ 0.0, %loop ]
  %total = fadd float %sum, %term
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

declare void @llvm.nvvm.barrier0() convergent
