; Lane l of bits l4 to l0 has row (l4 l2 l1) and columns (l3 l0 ·). The element (row, k) of a is in a lane of the same
; row, whose other bits k gives; the elements (k, column) of b are in a lane of the same columns.
; RUN: kiln-opt --passes=matrix-products %s | FileCheck %s

declare i64 @__kiln_matrix_product(i32, i32, i32, float, float, float, float, float, float)

; CHECK-LABEL: @product(
; CHECK: %[[INDEX:.+]] = call i32 @__kiln_value(i32 18)
; CHECK: %[[LANE:.+]] = and i32 %[[INDEX]], 31
; CHECK: %[[ROW:.+]] = and i32 %[[LANE]], 22
; CHECK: %[[COLUMNS:.+]] = and i32 %[[LANE]], 9
; CHECK: %[[ROW0:.+]] = or i32 %[[ROW]], 0
; CHECK: %[[COLUMNS0:.+]] = or i32 %[[COLUMNS]], 0
; CHECK: %[[ROW1:.+]] = or i32 %[[ROW]], 0
; CHECK: %[[COLUMNS1:.+]] = or i32 %[[COLUMNS]], 2
; CHECK: %[[ROW2:.+]] = or i32 %[[ROW]], 1
; CHECK: %[[COLUMNS2:.+]] = or i32 %[[COLUMNS]], 4
; CHECK: %[[ROW3:.+]] = or i32 %[[ROW]], 1
; CHECK: %[[COLUMNS3:.+]] = or i32 %[[COLUMNS]], 6
; CHECK: %[[ROW4:.+]] = or i32 %[[ROW]], 8
; CHECK: %[[COLUMNS4:.+]] = or i32 %[[COLUMNS]], 16
; CHECK: %[[ROW5:.+]] = or i32 %[[ROW]], 8
; CHECK: %[[COLUMNS5:.+]] = or i32 %[[COLUMNS]], 18
; CHECK: %[[ROW6:.+]] = or i32 %[[ROW]], 9
; CHECK: %[[COLUMNS6:.+]] = or i32 %[[COLUMNS]], 20
; CHECK: %[[ROW7:.+]] = or i32 %[[ROW]], 9
; CHECK: %[[COLUMNS7:.+]] = or i32 %[[COLUMNS]], 22
; CHECK: %[[FROM0:.+]] = zext i32 %[[ROW0]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[FROM0]])
; CHECK: %[[S0:.+]] = zext i32 %[[COLUMNS0]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[S0]])
; CHECK: %[[T0:.+]] = zext i32 %[[COLUMNS0]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[T0]])
; CHECK: %[[FROM1:.+]] = zext i32 %[[ROW1]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[FROM1]])
; CHECK: %[[S1:.+]] = zext i32 %[[COLUMNS1]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[S1]])
; CHECK: %[[T1:.+]] = zext i32 %[[COLUMNS1]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[T1]])
; CHECK: %[[FROM2:.+]] = zext i32 %[[ROW2]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[FROM2]])
; CHECK: %[[S2:.+]] = zext i32 %[[COLUMNS2]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[S2]])
; CHECK: %[[T2:.+]] = zext i32 %[[COLUMNS2]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[T2]])
; CHECK: %[[FROM3:.+]] = zext i32 %[[ROW3]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[FROM3]])
; CHECK: %[[S3:.+]] = zext i32 %[[COLUMNS3]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[S3]])
; CHECK: %[[T3:.+]] = zext i32 %[[COLUMNS3]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[T3]])
; CHECK: %[[FROM4:.+]] = zext i32 %[[ROW4]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[FROM4]])
; CHECK: %[[S4:.+]] = zext i32 %[[COLUMNS4]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[S4]])
; CHECK: %[[T4:.+]] = zext i32 %[[COLUMNS4]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[T4]])
; CHECK: %[[FROM5:.+]] = zext i32 %[[ROW5]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[FROM5]])
; CHECK: %[[S5:.+]] = zext i32 %[[COLUMNS5]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[S5]])
; CHECK: %[[T5:.+]] = zext i32 %[[COLUMNS5]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[T5]])
; CHECK: %[[FROM6:.+]] = zext i32 %[[ROW6]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[FROM6]])
; CHECK: %[[S6:.+]] = zext i32 %[[COLUMNS6]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[S6]])
; CHECK: %[[T6:.+]] = zext i32 %[[COLUMNS6]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[T6]])
; CHECK: %[[FROM7:.+]] = zext i32 %[[ROW7]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[FROM7]])
; CHECK: %[[S7:.+]] = zext i32 %[[COLUMNS7]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[S7]])
; CHECK: %[[T7:.+]] = zext i32 %[[COLUMNS7]] to i64
; CHECK: call i64 @__kiln_exchange({{.+}}, i64 %[[T7]])
define i64 @product(float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) {
  %product = call i64 @__kiln_matrix_product(i32 7, i32 0, i32 0, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1)
  ret i64 %product
}
