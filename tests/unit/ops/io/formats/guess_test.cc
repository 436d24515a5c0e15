// SPDX-License-Identifier: Apache-2.0
// Files whose format nobody says.
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using GuessTest = FormatsTest;

constexpr char kCells[] = "1 1 0.5\n1 2 0.25\n2 1 0.125\n2 2 1.5\n";

TEST_F(GuessTest, CellsOfAKnownSizeAreCells) {
  Put("a", kCells);
  ExpectCells(Read("a", {{"rows", 4}, {"cols", 3}}), 4, 3, {0.5, 0.25, 0, 0.125, 1.5, 0, 0, 0, 0, 0, 0, 0});
  ExpectCells(Read("a", {{"rows", 2}, {"cols", 2}}), 2, 2, {0.5, 0.25, 0.125, 1.5});
  ExpectCells(Read("a", {{"cols", 2}}), 2, 2, {0.5, 0.25, 0.125, 1.5});
  Put("a.mtd", "{\"rows\": 4, \"cols\": 3}");
  ExpectCells(Read("a"), 4, 3, {0.5, 0.25, 0, 0.125, 1.5, 0, 0, 0, 0, 0, 0, 0});
  Put("none", "0 0 0\n");
  ExpectCells(Read("none", {{"rows", 2}, {"cols", 2}}), 2, 2, {0, 0, 0, 0});
}

TEST_F(GuessTest, LinesOfCellsAreCellsWhereNothingSpeaksAgainstIt) {
  Put("a", kCells);
  ExpectCells(Read("a"), 2, 2, {0.5, 0.25, 0.125, 1.5});
}

TEST_F(GuessTest, CellsOrATableIsNotGuessed) {
  Put("a", kCells);
  const std::string fault =
      "cannot read 'a': its lines are cells (row column value) or rows of a table of 3 columns\n"
      "say which: format=\"text\" for cells, format=\"csv\", sep=\" \" for a table";
  EXPECT_EQ(Fault("a", {{"cols", 3}}), fault);
  EXPECT_EQ(Fault("a", {{"rows", 4}}), fault);
  const std::vector<double> table = {1, 1, 0.5, 1, 2, 0.25, 2, 1, 0.125, 2, 2, 1.5};
  ExpectCells(Read("a", {{"format", "csv"}, {"sep", " "}}), 4, 3, table);
  ExpectCells(Read("a", {{"sep", " "}}), 4, 3, table);
  ExpectCells(Read("a", {{"format", "text"}}), 2, 2, {0.5, 0.25, 0.125, 1.5});
  Put("twice", "1 1 0.5\n1 1 0.25\n");
  EXPECT_EQ(Fault("twice").substr(0, 40), "cannot read 'twice': its lines are cells");
  // The name says csv, the sizes say cells.
  Put("a.csv", kCells);
  EXPECT_EQ(Fault("a.csv", {{"rows", 4}, {"cols", 3}}).substr(0, 40),
            "cannot read 'a.csv': its lines are cells");
  Put("tabs", "1\t1\t0.5\n2\t2\t1\n");
  EXPECT_EQ(Fault("tabs", {{"rows", 4}, {"cols", 3}}).substr(0, 39),
            "cannot read 'tabs': its lines are cells");
}

TEST_F(GuessTest, TablesThatCannotBeCells) {
  Put("a", "1 1 0.5\n2 0 1\n");
  ExpectCells(Read("a"), 2, 3, {1, 1, 0.5, 2, 0, 1});
  Put("b", "1.0 1 0.5\n2 3 1\n");
  ExpectCells(Read("b", {{"rows", 2}, {"cols", 3}}), 2, 3, {1, 1, 0.5, 2, 3, 1});
  Put("c", "1,1,0.5\n2,2,1\n");
  ExpectCells(Read("c", {{"rows", 2}, {"cols", 3}}), 2, 3, {1, 1, 0.5, 2, 2, 1});
  Put("d", "1 1 0.5 1\n");
  ExpectCells(Read("d"), 1, 4, {1, 1, 0.5, 1});
}

TEST_F(GuessTest, ATableThatBeginsLikeCellsIsAnErrorWithAWayOut) {
  std::string text;
  for (int i = 1; i <= 200; ++i) text += std::to_string(i) + " 1 0.5\n";
  Put("a", text + "1 1.5 2\n");
  EXPECT_EQ(
      Fault("a", {{"rows", 201}, {"cols", 3}}),
      "cannot read 'a': line 201: '1 1.5 2' is not row column value\nif it is a table, say format=\"csv\"");
}

TEST_F(GuessTest, BannersInAnyCase) {
  Put("a", "%%matrixmarket MATRIX Coordinate REAL general\n2 2 1\n2 1 3\n");
  ExpectCells(Read("a"), 2, 2, {0, 0, 3, 0});
}

TEST_F(GuessTest, LibsvmBehindCommentsAndWithQueries) {
  Put("a", "# made by hand\n\n1 qid:3 1:0.5 3 : 2 # first\n-1 qid:3\n");
  ExpectCells(Read("a"), 2, 4, {0.5, 0, 2, 1, 0, 0, 0, -1});
}

}  // namespace
}  // namespace heddle::ops
