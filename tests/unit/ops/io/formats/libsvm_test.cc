// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class LibsvmTest : public FormatsTest {
 protected:
  Result<Matrix> Of(const std::string& text) {
    Put("a", text);
    return Read("a", {{"format", "libsvm"}});
  }
  std::string FaultOf(const std::string& text) {
    const Result<Matrix> matrix = Of(text);
    return matrix.ok() ? "it is read" : std::string(matrix.status().message());
  }
};

TEST_F(LibsvmTest, Comments) {
  ExpectCells(Of("1 1:0.5 # first\n-1 2:2 #second\n"), 2, 3, {0.5, 0, 1, 0, 2, -1});
  ExpectCells(Of("# all of it\n1 1:2#3:4\n\n#\n2\r\n"), 2, 2, {2, 1, 0, 2});
  EXPECT_EQ(FaultOf("# nothing\n"), "cannot read 'a': it holds no data");
}

TEST_F(LibsvmTest, BlanksAroundColons) {
  ExpectCells(Of("0   1:1.00   3: .50"), 1, 4, {1, 0, 0.5, 0});
  ExpectCells(Of("1 1 :2 2 : 3 3\t:\t4"), 1, 4, {2, 3, 4, 1});
  Put("b", "1,1-> 2,2->3");
  ExpectCells(Read("b", {{"format", "libsvm"}, {"indSep", "->"}}), 1, 3, {2, 3, 1});
}

TEST_F(LibsvmTest, Queries) {
  ExpectCells(Of("2 qid:1 1:0.5\n1 qid: 20 2:1\n0 qid:3\n"), 3, 3, {0.5, 0, 2, 0, 1, 1, 0, 0, 0});
  EXPECT_EQ(FaultOf("2 qid:x 1:0.5\n"), "cannot read 'a': line 1: 'qid:x' is not index:value");
  EXPECT_EQ(FaultOf("2 1:0.5 qid:1\n"), "cannot read 'a': line 1: 'qid:1' is not index:value");
}

TEST_F(LibsvmTest, Numbers) { ExpectCells(Of("+1 1:nan 2:-Inf"), 1, 3, {kNaN, -kInf, 1}); }

TEST_F(LibsvmTest, FaultsNameTheLineInTheFile) {
  EXPECT_EQ(FaultOf("# one\n1 1:2\n# three\n1 1:2:3\n"),
            "cannot read 'a': line 4: '1:2:3' is not index:value");
  EXPECT_EQ(FaultOf("1 3 5\n"), "cannot read 'a': line 1: '3' is not index:value");
  EXPECT_EQ(FaultOf("1 3:\n"), "cannot read 'a': line 1: '3:' is not index:value");
  EXPECT_EQ(FaultOf("1 3: 4:5\n"), "cannot read 'a': line 1: '3:' is not index:value");
  EXPECT_EQ(FaultOf("1 -1:5\n"), "cannot read 'a': line 1: index -1 is negative");
  EXPECT_EQ(FaultOf("1 1:1\n1 2147483647:5\n"),
            "cannot read 'a': line 2: index 2147483647 is too large, it is 2147483646 at most");
  EXPECT_EQ(FaultOf("x 1:5\n"), "cannot read 'a': line 1: the label 'x' is not a number");
}

// As scikit-learn's dump_svmlight_file and LightGBM write it: one index 0 anywhere, and all count from 0.
TEST_F(LibsvmTest, IndexesFromZero) {
  ExpectCells(Of("1 1:5\n-1 0:2 2:3\n"), 2, 4, {0, 5, 0, 1, 2, 0, 3, -1});
  ExpectCells(Of("1 0:0 2:3\n"), 1, 4, {0, 0, 3, 1});
  Put("b", "1 1:5\n2 2:6\n");
  ExpectCells(Read("b", {{"format", "libsvm"}}), 2, 3, {5, 0, 1, 0, 6, 2});
  ExpectCells(Read("b", {{"format", "libsvm"}, {"zero_based", true}}), 2, 4, {0, 5, 0, 1, 0, 0, 6, 2});
  ExpectCells(Read("b", {{"format", "libsvm"}, {"zero_based", true}, {"cols", 5}}), 2, 6,
              {0, 5, 0, 0, 0, 1, 0, 0, 6, 0, 0, 2});
  Put("c", "1 0:5\n");
  EXPECT_EQ(Read("c", {{"format", "libsvm"}, {"zero_based", false}}).status().message(),
            "cannot read 'c': line 1: index 0, and zero_based=FALSE says that they begin at 1");
  // The index 0 is in a chunk of its own, far behind most rows.
  std::string text;
  std::vector<double> cells;
  for (int i = 0; i < 100'000; ++i) {
    text += "1 1:" + std::to_string(i % 7 + 1) + "\n";
    for (const double cell : {0.0, i % 7 + 1.0, 1.0}) cells.push_back(cell);
  }
  for (const double cell : {4.0, 0.0, 2.0}) cells.push_back(cell);
  ExpectCells(Of(text + "2 0:4\n"), 100'001, 3, cells);
}

TEST_F(LibsvmTest, SeveralLabelsOrNoneAreNamed) {
  EXPECT_EQ(FaultOf("1,3 2:0.5\n"),
            "cannot read 'a': line 1: it has several labels, '1' and '3'; a row has one");
  EXPECT_EQ(FaultOf("1 1:1\n2:0.5 3:1\n"),
            "cannot read 'a': line 2: it has no label, it begins with '2:0.5'");
  ExpectCells(Of("1,1:2,2:3\n"), 1, 3, {2, 3, 1});
}

TEST_F(LibsvmTest, IsFoundBehindLabelsAloneAndWithSeveralLabels) {
  Put("zeros", "# labels\n1\n0 # nothing\n-1 2:1\n");
  ExpectCells(Read("zeros"), 3, 3, {0, 0, 1, 0, 0, 0, 0, 1, -1});
  Put("several", "1,3 2:0.5\n");
  EXPECT_EQ(Fault("several"),
            "cannot read 'several': line 1: it has several labels, '1' and '3'; a row has one");
  Put("times", "1,2,12:30\n");
  EXPECT_EQ(Read("times", {{"header", false}}).status().message().substr(0, 43),
            "cannot read 'times': line 1, field 3: '12:3");
}

// Lines without a row in every chunk: rows and lines are numbered apart.
TEST_F(LibsvmTest, CommentsAcrossChunks) {
  std::string text;
  std::vector<double> cells;
  for (int i = 0; i < 150'000; ++i) {
    if (i % 3 == 0) text += "# comment " + std::to_string(i) + "\n";
    text += std::to_string(i) + " 1:" + std::to_string(i % 5 + 1) + "\n";
    cells.push_back(i % 5 + 1);
    cells.push_back(i);
  }
  ExpectCells(Of(text), 150'000, 2, cells);
  EXPECT_EQ(FaultOf(text + "1 x:1\n"), "cannot read 'a': line 200001: 'x:1' is not index:value");
}

}  // namespace
}  // namespace heddle::ops
