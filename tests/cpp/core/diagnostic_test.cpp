#include "core/diagnostic.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

Diagnostic at(int line, int column, std::string source_line, std::string message = "no such thing",
              Severity severity = Severity::kError, SourceText text = SourceText::kBody) {
  return {severity, std::move(message), text, line, column, std::move(source_line)};
}

TEST(Render, PointsAtTheCallersLine) {
  EXPECT_EQ(render(at(3, 12, "    out[i] = elme;")),
            "source:3:12: error: no such thing\n"
            "      out[i] = elme;\n"
            "             ^");
}

TEST(Render, NamesTheTextAndTheSeverity) {
  EXPECT_EQ(render(at(1, 1, "x", "m", Severity::kWarning, SourceText::kHeader)), "header:1:1: warning: m\n  x\n  ^");
  EXPECT_EQ(render(at(7, 2, "xy", "m", Severity::kNote, SourceText::kGenerated)), "generated:7:2: note: m\n  xy\n   ^");
}

TEST(Render, KeepsTabsSoThatTheCaretStandsBelowItsColumn) {
  EXPECT_EQ(render(at(2, 4, "\ta\tb")), "source:2:4: error: no such thing\n  \ta\tb\n  \t \t^");
}

TEST(Render, CountsCharactersOfSeveralBytesOnce) {
  // Columns are in bytes, and the caret stands below a character.
  EXPECT_EQ(render(at(1, 13, "/* \xc3\xa9\xe2\x82\xac */ x")),
            "source:1:13: error: no such thing\n  /* \xc3\xa9\xe2\x82\xac */ x\n           ^");
}

TEST(Render, PointsJustBehindALine) {
  EXPECT_EQ(render(at(1, 4, "abc")), "source:1:4: error: no such thing\n  abc\n     ^");
}

TEST(Render, HasNoCaretForAColumnPastTheEnd) {
  EXPECT_EQ(render(at(1, 5, "abc")), "source:1:5: error: no such thing\n  abc");
  EXPECT_EQ(render(at(1, 2000000000, "abc")), "source:1:2000000000: error: no such thing\n  abc");
}

TEST(Render, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(render(at(0, 0, "")), "error: no such thing");
  EXPECT_EQ(render(at(0, 5, "abc")), "error: no such thing");
  EXPECT_EQ(render(at(4, 0, "abc")), "source:4: error: no such thing\n  abc");
  EXPECT_EQ(render(at(4, 1, "")), "source:4:1: error: no such thing");
}

TEST(Summary, ShowsTheFirstErrorWithItsNotesAndCountsTheOthers) {
  std::vector<Diagnostic> diagnostics = {at(9, 1, "w", "a warning", Severity::kWarning),
                                         at(1, 1, "a", "first"),
                                         at(2, 1, "b", "because", Severity::kNote),
                                         at(3, 1, "c", "and", Severity::kNote),
                                         at(4, 1, "d", "second"),
                                         at(5, 1, "e", "not of the first", Severity::kNote)};
  const std::string shown =
      "[metal_kernel] `k` does not compile.\n"
      "source:1:1: error: first\n  a\n  ^\n"
      "source:2:1: note: because\n  b\n  ^\n"
      "source:3:1: note: and\n  c\n  ^";
  EXPECT_EQ(summarize("metal_kernel", "k", diagnostics), shown + "\n1 more error.");
  diagnostics.push_back(at(6, 1, "f", "third"));
  EXPECT_EQ(summarize("metal_kernel", "k", diagnostics), shown + "\n2 more errors.");
  diagnostics.resize(4);
  EXPECT_EQ(summarize("metal_kernel", "k", diagnostics), shown);
}

TEST(Summary, SaysThatThereIsNoReasonWhereThereIsNoError) {
  EXPECT_EQ(summarize("cuda_kernel", "k", {}), "[cuda_kernel] `k` does not compile.\nThe compiler gave no reason.");
  EXPECT_EQ(summarize("cuda_kernel", "k", {at(1, 1, "", "w", Severity::kWarning)}),
            "[cuda_kernel] `k` does not compile.\nThe compiler gave no reason.");
}

}  // namespace
}  // namespace kiln
