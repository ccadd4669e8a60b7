; A long iteration waits for itself: where elements are gathered and scattered, and rows do not evict one another, nothing
; is gained. Rows at a multiple of 2048 bytes do.
; RUN: kiln-opt --passes=row-blocks --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=BOTH,GATHERS
; RUN: kiln-opt --passes=row-blocks --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=BOTH,LANES

declare i32 @__kiln_lane()

; BOTH-LABEL: define void @apart(
; GATHERS-NOT: row.block
; LANES: row.block:
; BOTH: ret void
define void @apart(ptr %x, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s0 = phi i32 [ 0, %entry ], [ %s60, %loop ]
  %p = getelementptr i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %s1 = mul i32 %s0, %v
  %s2 = add i32 %s1, %v
  %s3 = mul i32 %s2, %v
  %s4 = add i32 %s3, %v
  %s5 = mul i32 %s4, %v
  %s6 = add i32 %s5, %v
  %s7 = mul i32 %s6, %v
  %s8 = add i32 %s7, %v
  %s9 = mul i32 %s8, %v
  %s10 = add i32 %s9, %v
  %s11 = mul i32 %s10, %v
  %s12 = add i32 %s11, %v
  %s13 = mul i32 %s12, %v
  %s14 = add i32 %s13, %v
  %s15 = mul i32 %s14, %v
  %s16 = add i32 %s15, %v
  %s17 = mul i32 %s16, %v
  %s18 = add i32 %s17, %v
  %s19 = mul i32 %s18, %v
  %s20 = add i32 %s19, %v
  %s21 = mul i32 %s20, %v
  %s22 = add i32 %s21, %v
  %s23 = mul i32 %s22, %v
  %s24 = add i32 %s23, %v
  %s25 = mul i32 %s24, %v
  %s26 = add i32 %s25, %v
  %s27 = mul i32 %s26, %v
  %s28 = add i32 %s27, %v
  %s29 = mul i32 %s28, %v
  %s30 = add i32 %s29, %v
  %s31 = mul i32 %s30, %v
  %s32 = add i32 %s31, %v
  %s33 = mul i32 %s32, %v
  %s34 = add i32 %s33, %v
  %s35 = mul i32 %s34, %v
  %s36 = add i32 %s35, %v
  %s37 = mul i32 %s36, %v
  %s38 = add i32 %s37, %v
  %s39 = mul i32 %s38, %v
  %s40 = add i32 %s39, %v
  %s41 = mul i32 %s40, %v
  %s42 = add i32 %s41, %v
  %s43 = mul i32 %s42, %v
  %s44 = add i32 %s43, %v
  %s45 = mul i32 %s44, %v
  %s46 = add i32 %s45, %v
  %s47 = mul i32 %s46, %v
  %s48 = add i32 %s47, %v
  %s49 = mul i32 %s48, %v
  %s50 = add i32 %s49, %v
  %s51 = mul i32 %s50, %v
  %s52 = add i32 %s51, %v
  %s53 = mul i32 %s52, %v
  %s54 = add i32 %s53, %v
  %s55 = mul i32 %s54, %v
  %s56 = add i32 %s55, %v
  %s57 = mul i32 %s56, %v
  %s58 = add i32 %s57, %v
  %s59 = mul i32 %s58, %v
  %s60 = add i32 %s59, %v
  store i32 %s60, ptr %p, align 4
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}

; BOTH-LABEL: define void @in_few_sets(
; BOTH: row.block:
; BOTH: ret void
define void @in_few_sets(ptr %x, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 512
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s0 = phi i32 [ 0, %entry ], [ %s60, %loop ]
  %p = getelementptr i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %s1 = mul i32 %s0, %v
  %s2 = add i32 %s1, %v
  %s3 = mul i32 %s2, %v
  %s4 = add i32 %s3, %v
  %s5 = mul i32 %s4, %v
  %s6 = add i32 %s5, %v
  %s7 = mul i32 %s6, %v
  %s8 = add i32 %s7, %v
  %s9 = mul i32 %s8, %v
  %s10 = add i32 %s9, %v
  %s11 = mul i32 %s10, %v
  %s12 = add i32 %s11, %v
  %s13 = mul i32 %s12, %v
  %s14 = add i32 %s13, %v
  %s15 = mul i32 %s14, %v
  %s16 = add i32 %s15, %v
  %s17 = mul i32 %s16, %v
  %s18 = add i32 %s17, %v
  %s19 = mul i32 %s18, %v
  %s20 = add i32 %s19, %v
  %s21 = mul i32 %s20, %v
  %s22 = add i32 %s21, %v
  %s23 = mul i32 %s22, %v
  %s24 = add i32 %s23, %v
  %s25 = mul i32 %s24, %v
  %s26 = add i32 %s25, %v
  %s27 = mul i32 %s26, %v
  %s28 = add i32 %s27, %v
  %s29 = mul i32 %s28, %v
  %s30 = add i32 %s29, %v
  %s31 = mul i32 %s30, %v
  %s32 = add i32 %s31, %v
  %s33 = mul i32 %s32, %v
  %s34 = add i32 %s33, %v
  %s35 = mul i32 %s34, %v
  %s36 = add i32 %s35, %v
  %s37 = mul i32 %s36, %v
  %s38 = add i32 %s37, %v
  %s39 = mul i32 %s38, %v
  %s40 = add i32 %s39, %v
  %s41 = mul i32 %s40, %v
  %s42 = add i32 %s41, %v
  %s43 = mul i32 %s42, %v
  %s44 = add i32 %s43, %v
  %s45 = mul i32 %s44, %v
  %s46 = add i32 %s45, %v
  %s47 = mul i32 %s46, %v
  %s48 = add i32 %s47, %v
  %s49 = mul i32 %s48, %v
  %s50 = add i32 %s49, %v
  %s51 = mul i32 %s50, %v
  %s52 = add i32 %s51, %v
  %s53 = mul i32 %s52, %v
  %s54 = add i32 %s53, %v
  %s55 = mul i32 %s54, %v
  %s56 = add i32 %s55, %v
  %s57 = mul i32 %s56, %v
  %s58 = add i32 %s57, %v
  %s59 = mul i32 %s58, %v
  %s60 = add i32 %s59, %v
  store i32 %s60, ptr %p, align 4
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}
