// SPDX-License-Identifier: Apache-2.0
// Random scripts print the same bytes whatever is fused, compiled, distributed or cut: shapes of a few
// columns (whose rows generated code unrolls), dense and CSR matrices, vectors beside them, products and
// their cells, ranges that may fail.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/scripts/script_case.h"
#include "tests/support/all_plans.h"

namespace heddle {
namespace {

using testing_support::Finished;

const char* const kVariants[] = {
    "run --fusion-strict",
    "run --threads 1 --cpu avx2 --fusion all --fusion-strict",
    "run --fusion no-redundancy --fusion-strict",
    "run --fusion-seed 7 --fusion-strict",
    "sim --workers 3 --min-distributed-bytes 0 --fusion-strict",
};

class RandomScript {
 public:
  explicit RandomScript(uint32_t seed) : random_(seed) {}

  std::string Make() {
    rows_ = Pick({2, 7, 64, 65, 300, 1000});
    columns_ = Pick({1, 2, 2, 3, 5, 5, 6, 6, 7, 9, 10, 13, 17, 40, 100});
    width_ = Pick({1, 3, 9, 20});
    Line("X = rand(rows={}, cols={}, min=-1, max=1, seed=1)", rows_, columns_);
    Line("Y = rand(rows={}, cols={}, min=1, max=2, seed=7)", rows_, columns_);
    Line("S = rand(rows={}, cols={}, sparsity={}, seed=2)", rows_, columns_, Below(2) == 0 ? 0.02 : 0.2);
    Line("u = rand(rows={}, cols=1, min=-1, max=1, seed=3)", rows_);
    Line("v = rand(rows=1, cols={}, min=-1, max=1, seed=4)", columns_);
    Line("W = rand(rows={}, cols={}, min=-1, max=1, seed=5)", columns_, width_);
    Line("U = rand(rows={}, cols={}, min=-1, max=1, seed=6)", rows_, width_);
    Line("k = as.integer(sum(u > 2)) + 1");
    for (int64_t statements = 3 + Below(10); statements > 0; --statements) AddStatement();
    for (const std::vector<std::string>* values : {&matrices_, &columns_of_rows_, &row_vectors_, &products_})
      Line("print(sum({0}) + \" \" + max({0}))", values->back());
    Line("print(toString(colSums({}), decimal=14))", One(matrices_));
    return text_;
  }

 private:
  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(bound)); }
  int64_t Pick(std::initializer_list<int64_t> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }
  const char* Pick(std::initializer_list<const char*> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }
  const std::string& One(const std::vector<std::string>& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(values.size())))];
  }
  std::string Scalar() { return Pick({"0.5", "2", "-1.5", "0", "1"}); }
  std::string MatrixOrScalar() { return Below(3) == 0 ? Scalar() : One(matrices_); }

  template <typename... Arguments>
  void Line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }
  void Assign(std::vector<std::string>& kind, const std::string& expression) {
    kind.push_back(fmt::format("t{}", ++count_));
    Line("{} = {}", kind.back(), expression);
  }
  // Cells of a value that nobody else reads.
  void PrintCells(const std::string& product, int64_t rows) {
    const std::string whole = fmt::format("t{}", ++count_);
    const int64_t first = 1 + Below(rows), last = first + Below(rows - first + 1);
    Line("{} = {}", whole, product);
    Line("{0}c = {0}[{1}:{2}, {3}]", whole, first, last, 1 + Below(width_));
    Line("{} = 0", whole);
    Line("print(sum({}c))", whole);
  }

  void AddStatement() {
    const std::string a = One(matrices_), b = One(matrices_);
    switch (Below(23)) {
      case 0: return Assign(matrices_, fmt::format("{} {} {}", a, Pick({"+", "-", "*", "/"}), b));
      case 1:
        return Assign(columns_of_rows_, fmt::format("{}({} {} {})", Pick({"rowSums", "rowMeans", "rowMaxs"}),
                                                    a, Pick({"/", "*", "-"}), b));
      case 2:
        return Assign(matrices_, fmt::format("{} {} {}", a, Pick({"%%", "%/%", "^"}), MatrixOrScalar()));
      case 3: return Assign(matrices_, fmt::format("{}({}, {})", Pick({"min", "max"}), a, MatrixOrScalar()));
      case 4:
        return Assign(matrices_, fmt::format("{}({})",
                                             Pick({"abs", "exp", "round", "sqrt", "sin", "sign", "log",
                                                   "tanh", "sigmoid", "floor"}),
                                             a));
      case 5:
        return Assign(matrices_, fmt::format("({} {} {}) {} {}", a, Pick({"<", ">=", "==", "!="}),
                                             MatrixOrScalar(), Pick({"*", "+", "&", "|"}), b));
      case 6:
        return Assign(matrices_, fmt::format("ifelse({} > {}, {}, {})", a, Scalar(), b, MatrixOrScalar()));
      case 7:
        return Assign(matrices_, fmt::format("replace(target={}, pattern={}, replacement={})", a,
                                             Pick({"0", "1", "NaN"}), Scalar()));
      case 8: return Assign(matrices_, fmt::format("S * {}", a));
      case 9:
        return Assign(matrices_,
                      fmt::format("{} {} {}", a, Pick({"+", "-", "*", "/"}), One(columns_of_rows_)));
      case 10:
        if (columns_ == 1) return;
        return Assign(matrices_, fmt::format("{} {} {}", a, Pick({"+", "-", "*"}), One(row_vectors_)));
      case 11:
        return Assign(matrices_, fmt::format("{} * outer({}, {}, \"{}\")", a, One(columns_of_rows_),
                                             One(row_vectors_), Pick({"+", "-", "*", "<"})));
      case 12:
        return Assign(matrices_, fmt::format("outer({}, {}, \"{}\")", One(columns_of_rows_),
                                             One(row_vectors_), Pick({"+", "-", "*", "=="})));
      case 13:
        return Assign(columns_of_rows_, fmt::format("{}({})",
                                                    Pick({"rowSums", "rowMaxs", "rowMeans", "rowMins",
                                                          "rowIndexMax", "rowVars", "rowSds", "rowProds"}),
                                                    a));
      case 14:
        return Assign(row_vectors_, fmt::format("{}({})", Pick({"colSums", "colMeans", "colMaxs"}), a));
      case 15: return Assign(products_, fmt::format("{} %*% W", a));
      case 16:
        return Assign(products_,
                      fmt::format("{} {} {}", One(products_), Pick({"+", "-", "*"}), One(products_)));
      case 17: return Assign(matrices_, fmt::format("{} %*% t(W)", One(products_)));
      case 18:
        return Assign(matrices_, fmt::format("(S != 0) * (U %*% t(W) {})", Pick({"+ 0.5", "* 2", "- 1"})));
      case 19: return PrintCells(fmt::format("t({}) %*% {}", a, One(products_)), columns_);
      case 20: return PrintCells(fmt::format("{} %*% W", a), rows_);
      case 21:  // A range that may fail, and what is printed behind it.
        Assign(row_vectors_, fmt::format("{}[k, ]", a));
        return Line("print(\"behind {}\")", row_vectors_.back());
      default:
        return Line("print({}({} * {}) + \" \" + sum(t({}) %*% ({} * {})))",
                    Pick({"sum", "min", "max", "mean"}), a, MatrixOrScalar(), b, One(products_),
                    One(columns_of_rows_));
    }
  }

  std::mt19937 random_;
  std::string text_;
  int count_ = 0;
  int64_t rows_ = 0, columns_ = 0, width_ = 0;
  std::vector<std::string> matrices_ = {"X", "Y", "S"}, columns_of_rows_ = {"u"}, row_vectors_ = {"v"},
                           products_ = {"U"};
};

TEST(RandomScriptsTest, PrintTheSameBytesHoweverTheyRun) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/random.dml";
  const uint32_t seeds = testing_support::RunsAllPlans() ? 300 : 20;
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    const std::string script = RandomScript(seed).Make();
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed << "\n" << script);
    testing_support::WriteText(path, script);
    for (const std::string precision : {"", " --precision single"}) {
      const Finished unfused = RunCase("run --fusion off" + precision, path);
      ASSERT_EQ(unfused.code, 0) << unfused.errors;
      for (const std::string variant : kVariants) {
        const Finished finished = RunCase(variant + precision, path);
        ASSERT_EQ(finished.code, 0) << variant << precision << "\n" << finished.errors;
        ASSERT_EQ(finished.output, unfused.output) << variant << precision;
      }
    }
  }
}

}  // namespace
}  // namespace heddle
