// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace heddle::engine {
namespace {

const Engine& TheEngine() {
  static const auto* const made = new Result<std::unique_ptr<Engine>>(Engine::Create());
  return ***made;
}

Matrix MatrixOf(const std::vector<double>& cells, int64_t columns, std::function<void()> release = nullptr) {
  const int64_t rows = static_cast<int64_t>(cells.size()) / columns;
  Result<Matrix> matrix =
      Matrix::AdoptDense(cells.data(), rows, columns, ElementType::kFloat64, std::move(release));
  EXPECT_TRUE(matrix.ok()) << matrix.status().ToString();
  return *matrix;
}

std::string MessageOf(const Status& status) { return status.ToString(); }

TEST(EngineTest, InputsAreReadWhereTheyAreAndOutputsMayShareThem) {
  const std::vector<double> cells = {1, 2, 3, 4, 5, 6};
  std::atomic<int> released = 0;
  {
    HostValues inputs;
    inputs["X"] = MatrixOf(cells, 2, [&] { ++released; });
    Result<RunResults> results = TheEngine().Run({.text = "Y = X\ns = sum(X)"}, inputs, {"Y", "s"});
    ASSERT_TRUE(results.ok()) << MessageOf(results.status());
    EXPECT_EQ(results->outputs.at("Y").value.matrix().data(), cells.data()) << "not a copy";
    EXPECT_EQ(results->outputs.at("s").value.scalar().AsDouble(), 21);
    inputs.clear();
    EXPECT_EQ(released, 0) << "the output still uses the cells";
  }
  EXPECT_EQ(released, 1);
}

// Assignments to cells, iterations of a parfor, and rows that are appended write in place where nobody else
// holds the cells.
TEST(EngineTest, WhatAScriptDoesToAnInputTheHostDoesNotSee) {
  const std::vector<std::pair<const char*, double>> scripts = {
      {"X[1, 1] = 99\nfor (i in 1:3) { X[i, 2] = i }\nX = rbind(X, X[1, ])\nX = X * 2", 198},
      {"parfor (i in 1:1000) { X[i, 1] = i }", 1},
      {"for (i in 1:20) { X = cbind(X, X[, 1]) }\nX[1, 1] = 5", 5},
      {"f = function(matrix[double] A) return (matrix[double] A) { A[1, 1] = 7 }\nX = f(X)", 7},
      {"l = list(X)\nY = as.matrix(l[1])\nY[1, 1] = 3\nX = Y", 3},
      {"while (as.scalar(X[1, 1]) < 50) { X[1, ] = X[1, ] + 25 }", 50},
  };
  for (const auto& [script, first] : scripts) {
    std::vector<double> cells(4000);
    std::iota(cells.begin(), cells.end(), 0);
    const std::vector<double> before = cells;
    HostValues inputs;
    inputs["X"] = MatrixOf(cells, 4);
    const Result<RunResults> results = TheEngine().Run({.text = script}, std::move(inputs), {"X"});
    ASSERT_TRUE(results.ok()) << script << MessageOf(results.status());
    EXPECT_EQ(results->outputs.at("X").value.matrix().At(0, 0), first) << script;
    EXPECT_EQ(cells, before) << script;
  }
}

TEST(EngineTest, SessionsAndOutputsOutliveTheirEngine) {
  Result<std::unique_ptr<Engine>> engine = Engine::Create();
  ASSERT_TRUE(engine.ok());
  const std::unique_ptr<InteractiveSession> session = (*engine)->NewSession();
  const Result<RunResults> results = (*engine)->Run({.text = "A = matrix(3, rows=100, cols=100)"}, {}, {"A"});
  engine->reset();
  ASSERT_TRUE(results.ok());
  ASSERT_TRUE(session->Set("A", results->outputs.at("A")).ok());
  ASSERT_TRUE(session->Run("source(\"nowhere.dml\") as n", nullptr).code() == StatusCode::kInvalidArgument);
  ASSERT_TRUE(session->Run("s = sum(A)", nullptr).ok());
  EXPECT_EQ(session->Get("s")->value.scalar().AsDouble(), 30000);
}

TEST(EngineTest, SparseMatricesAreAdoptedAndArraysThatAreNoneAreRefused) {
  const std::vector<double> values = {7, 1, 2, 3};  // the first belongs to a row before
  const std::vector<int32_t> columns = {0, 0, 2, 1};
  const std::vector<int64_t> offsets = {1, 3, 3, 4};
  const auto adopt = [&](const std::vector<int32_t>& j, const std::vector<int64_t>& i, int64_t width) {
    return Matrix::AdoptSparse(values.data(), j.data(), i.data(), 3, width, ElementType::kFloat64, nullptr);
  };
  const Result<Matrix> matrix = adopt(columns, offsets, 3);
  ASSERT_TRUE(matrix.ok()) << MessageOf(matrix.status());
  const Result<RunResults> results =
      TheEngine().Run({.text = "r = rowSums(S)\nT = t(S)"}, {{"S", *matrix}}, {"r", "T"});
  ASSERT_TRUE(results.ok()) << MessageOf(results.status());
  EXPECT_EQ(results->outputs.at("r").value.matrix().At(0, 0), 3);
  EXPECT_EQ(results->outputs.at("r").value.matrix().At(2, 0), 3);
  EXPECT_EQ(results->outputs.at("T").value.matrix().At(2, 0), 2);
  const Status unsorted = adopt({0, 2, 0, 1}, offsets, 3).status();
  EXPECT_EQ(unsorted.message(), "columns of row 1 are not ascending from 0 to 2: 0 stands behind 2");
  EXPECT_EQ(unsorted.notes()[0],
            "columns of entries count from 0; sort the entries of each row, and add up double ones");
  EXPECT_EQ(adopt(columns, offsets, 2).status().message(),
            "columns of row 1 are not ascending from 0 to 1: 2 stands behind 0");
  EXPECT_EQ(adopt(columns, {1, 3, 2, 4}, 3).status().message(),
            "row offsets fall: 3 of row 2, 2 of the next");
  EXPECT_EQ(adopt(columns, {-1, 3, 3, 4}, 3).status().message(), "the first row offset is negative: -1");
}

TEST(EngineTest, CellsAtOddAddressesAndAbsurdSizesAreRefused) {
  const std::vector<double> cells(4);
  const char* const odd = reinterpret_cast<const char*>(cells.data()) + 1;
  const auto type = ElementType::kFloat64;
  EXPECT_EQ(Matrix::AdoptDense(odd, 1, 1, type, nullptr).status().message(),
            "the cells are not aligned: an address of elements of 8 bytes is a multiple of 8");
  EXPECT_EQ(Matrix::AdoptDense(nullptr, 1, 1, type, nullptr).status().message(), "1 x 1 cells at no address");
  EXPECT_EQ(Matrix::AdoptDense(cells.data(), -1, 1, type, nullptr).status().message(),
            "no matrix has -1 x 1 cells");
  EXPECT_EQ(
      Matrix::AdoptDense(cells.data(), int64_t{1} << 40, int64_t{1} << 40, type, nullptr).status().code(),
      StatusCode::kInvalidArgument);
  EXPECT_TRUE(Matrix::AdoptDense(nullptr, 0, 3, type, nullptr).ok());
  HostValues inputs;
  inputs["X"] = Value(*Matrix::AdoptDense(nullptr, 0, int64_t{1} << 32, type, nullptr));
  EXPECT_EQ(TheEngine().Run({.text = "s = ncol(X)"}, inputs, {"s"}).status().message(),
            "input 'X': 0x4294967296 is more than a matrix or frame of a script has");
  EXPECT_EQ(
      Matrix::AdoptSparse(nullptr, nullptr, nullptr, 0, int64_t{1} << 31, type, nullptr).status().message(),
      "a sparse matrix has at most 2147483647 columns, not 2147483648");
}

TEST(EngineTest, FramesComeAndGo) {
  const std::vector<int64_t> ages = {31, 0};
  const std::vector<uint8_t> missing = {0, 1};
  const std::vector<int64_t> offsets = {0, 3, 6};
  const std::string texts = "eveb\xc3\xb6";
  Result<Column> age =
      Column::Adopt(ColumnType::kInteger64, 2, ages.data(), nullptr, missing.data(), nullptr);
  Result<Column> name = Column::Adopt(ColumnType::kString, 2, offsets.data(), texts.data(), nullptr, nullptr);
  ASSERT_TRUE(age.ok() && name.ok());
  const Result<Frame> frame = Frame::Of({"age", "name"}, {*age, *name});
  ASSERT_TRUE(frame.ok());
  const Result<RunResults> results =
      TheEngine().Run({.text = "G = rbind(F, F)\nn = as.scalar(F[2, 2])"}, {{"F", *frame}}, {"G", "n"});
  ASSERT_TRUE(results.ok()) << MessageOf(results.status());
  const Frame& doubled = results->outputs.at("G").value.frame();
  EXPECT_EQ(doubled.shape(), (Shape{4, 2}));
  EXPECT_TRUE(doubled.IsMissing(3, 0));
  EXPECT_EQ(doubled.schema()->names, (std::vector<std::string>{"age", "name"}));
  EXPECT_EQ(results->outputs.at("n").value.scalar().AsString(), "b\xc3\xb6");
}

TEST(EngineTest, ColumnsThatNoFrameHoldsAreRefused) {
  const std::vector<int64_t> integers = {int64_t{1} << 40, 5};
  const std::vector<uint8_t> marks = {1, 2};
  const std::vector<double> doubles = {0.1, 1};
  const std::vector<int64_t> falling = {0, 3, 1};
  const std::string bytes = "ab\xff";
  const std::vector<int64_t> offsets = {0, 2, 3};
  const auto message = [](ColumnType type, const void* cells, const char* texts, const uint8_t* missing) {
    return Column::Adopt(type, 2, cells, texts, missing, nullptr).status().message();
  };
  EXPECT_EQ(message(ColumnType::kInteger32, integers.data(), nullptr, nullptr),
            "the cell in row 1 of a column of INT32 is no integer of 32 bits");
  EXPECT_EQ(message(ColumnType::kFloat32, doubles.data(), nullptr, nullptr),
            "the cell in row 1 of a column of FP32 is no float");
  EXPECT_EQ(message(ColumnType::kInteger64, integers.data(), nullptr, marks.data()),
            "the missing cell in row 1 holds something; 0 or the empty text stands there");
  EXPECT_EQ(message(ColumnType::kString, falling.data(), bytes.data(), nullptr),
            "offsets of texts fall: 3 of row 2, 1 of the next");
  EXPECT_EQ(message(ColumnType::kString, offsets.data(), bytes.data(), nullptr),
            "the cell in row 2 of a column of STRING is not UTF-8");
  const std::vector<uint8_t> truth = {7, 0};
  EXPECT_EQ(message(ColumnType::kInteger64, integers.data(), nullptr, truth.data()),
            "the mark of row 1 is neither 0 nor 1: 7");
  const std::vector<int64_t> negative = {-1, 0, 1};
  EXPECT_EQ(message(ColumnType::kString, negative.data(), bytes.data(), nullptr),
            "the first offset of texts is negative: -1");
  EXPECT_EQ(message(ColumnType::kString, offsets.data(), nullptr, nullptr),
            "the texts of a column are at no address");
  EXPECT_EQ(message(ColumnType::kInteger64, nullptr, nullptr, nullptr),
            "the cells of a column are at no address");
  EXPECT_EQ(
      message(ColumnType::kInteger64, reinterpret_cast<const char*>(integers.data()) + 1, nullptr, nullptr),
      "the cells of a column are not aligned to their own size");
  EXPECT_EQ(Column::Adopt(ColumnType::kInteger64, -3, integers.data(), nullptr, nullptr, nullptr)
                .status()
                .message(),
            "no column has -3 rows");
  const Result<Column> column = Column::OfDoubles(doubles);
  const std::vector<double> one = {1};
  EXPECT_EQ(Frame::Of({}, {*column, *Column::OfDoubles(one)}).status().message(),
            "column 2 of a frame has 1 rows, the first has 2");
  EXPECT_EQ(Frame::Of({"a", "b"}, {*column}).status().message(), "a frame has 1 columns and 2 names");
}

TEST(EngineTest, ListsComeAndGo) {
  const std::vector<double> cells = {1, 2};
  HostValue list;
  list.list = std::make_shared<ListOf<HostValue>>();
  ASSERT_TRUE(list.list->Add("W", MatrixOf(cells, 2)).ok());
  ASSERT_TRUE(list.list->Add("rate", Scalar(0.5)).ok());
  const Result<RunResults> results = TheEngine().Run(
      {.text = "m[\"W\"] = as.matrix(m[\"W\"]) * as.scalar(m[\"rate\"])"}, {{"m", list}}, {"m"});
  ASSERT_TRUE(results.ok()) << MessageOf(results.status());
  const auto& out = results->outputs.at("m").list;
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out->names, (std::vector<std::string>{"W", "rate"}));
  EXPECT_EQ(out->elements[0].value.matrix().At(0, 1), 1);
}

TEST(EngineTest, AnOutputThatNobodyAssignsIsAnErrorBeforeTheRunOrBehindIt) {
  std::string printed;
  RunCallbacks callbacks;
  callbacks.print = [&](std::string_view text) { printed += text; };
  EXPECT_EQ(
      MessageOf(TheEngine().Run({.text = "weights = 1\nprint(weights)"}, {}, {"weight"}, callbacks).status()),
      "script.dml: error: there is no variable 'weight' at the end of the script\n"
      "it is asked for as an output; nothing assigns it\n"
      "did you mean 'weights'?");
  EXPECT_EQ(printed, "");
  const Result<RunResults> late =
      TheEngine().Run({.text = "if ($x > 1) { w = 1 }", .parameters = {{"x", "0"}}}, {}, {"w"});
  EXPECT_EQ(late.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(late.status().message(), "the output 'w' has no value at the end of the script");
  EXPECT_EQ(late.status().notes()[0], "no statement that ran has assigned it");
}

TEST(EngineTest, NamesAndOptionsAreChecked) {
  const Status name = TheEngine().Run({.text = "x = 1"}, {{"2x", Scalar(1)}}).status();
  EXPECT_EQ(name.message(), "'2x' is no name of a variable");
  EXPECT_EQ(name.notes()[0], "a name has letters, digits, '_' and '.', and begins with a letter");
  EXPECT_EQ(TheEngine().Run({.text = "x = 1"}, {{"while", Scalar(1)}}).status().message(),
            "'while' is no name of a variable");
  EngineOptions options;
  options.session.fusion = "some";
  EXPECT_EQ(Engine::Create(options).status().message(),
            "fusion takes off, all, no-redundancy or cost, not 'some'");
  options = {};
  options.libraries = {"/no/such/folder"};
  EXPECT_EQ(Engine::Create(options).status().message(), "library: there is no folder '/no/such/folder'");
  options = {};
  options.session.disabled_passes = {"fusse"};
  EXPECT_EQ(Engine::Create(options).status().code(), StatusCode::kUsage);
}

TEST(EngineTest, ChecksAndExplains) {
  const compiler::Diagnostics found = TheEngine().Check({.text = "a = b + 1\nc = nosuch(a)"});
  EXPECT_EQ(found.errors(), 2u);
  EXPECT_FALSE(TheEngine().Check({.text = "a = b + 1"}, {{"b", Scalar(1)}}).HasErrors());
  const Result<std::string> text =
      TheEngine().Explain({.text = "print(sum(t(t(rand(rows=3, cols=4, seed=1)))))"});
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("%2 = sum(%1)"), std::string::npos) << *text;
  EXPECT_TRUE(TheEngine().Explain({.text = "print(1)"}, "cost").ok());
  EXPECT_EQ(TheEngine().Explain({.text = "print(1)"}, "coast").status().code(), StatusCode::kUsage);
}

TEST(EngineTest, ASessionKeepsVariablesOfTheHost) {
  const std::vector<double> cells = {1, 2, 3};
  std::string printed;
  RunCallbacks callbacks;
  callbacks.print = [&](std::string_view text) { printed += text; };
  const std::unique_ptr<InteractiveSession> session = TheEngine().NewSession(callbacks);
  ASSERT_TRUE(session->Set("x", MatrixOf(cells, 1)).ok());
  ASSERT_TRUE(session->Run("s = sum(x)\ns * 2", nullptr).ok());
  EXPECT_EQ(printed, "12.0\n");
  EXPECT_EQ(session->Get("s")->value.scalar().AsDouble(), 6);
  EXPECT_EQ(session->Get("x")->value.matrix().data(), cells.data());
  EXPECT_EQ(session->Get("X").status().message(), "there is no variable 'X'; did you mean 'x'?");
}

TEST(EngineTest, ACancelledRunEndsWithItsReason) {
  Cancellation cancellation;
  RunCallbacks callbacks;
  callbacks.print = [&](std::string_view) { cancellation.Request(Cancelled("enough")); };
  callbacks.cancellation = &cancellation;
  const Status status =
      TheEngine().Run({.text = "print(1)\nwhile (TRUE) { x = 1 }"}, {}, {}, callbacks).status();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(status.message(), "enough");
}

// Runs side by side do not see each other, and give what each gives alone.
TEST(EngineTest, ManyRunsAtOnceGiveTheSameBytes) {
  std::vector<double> cells(200 * 30);
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<double>(i * 7919 % 1009) / 17;
  const Matrix x = MatrixOf(cells, 30);
  const Script script = {.text =
                             "A = t(X) %*% X + diag(matrix(k, rows=30, cols=1))\n"
                             "w = solve(A, t(X) %*% rowSums(X))\n"
                             "for (i in 1:5) { w = w - 0.1 * (A %*% w) / sum(abs(A)) }"};
  const auto run = [&](int k) {
    Result<RunResults> results = TheEngine().Run(script, {{"X", x}, {"k", Scalar(k)}}, {"w"});
    EXPECT_TRUE(results.ok()) << MessageOf(results.status());
    return results->outputs.at("w").value.matrix();
  };
  std::vector<Matrix> alone, together(8);
  for (int k = 0; k < 8; ++k) alone.push_back(run(k));
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k) threads.emplace_back([&, k] { together[static_cast<size_t>(k)] = run(k); });
  for (std::thread& thread : threads) thread.join();
  for (size_t k = 0; k < 8; ++k) EXPECT_TRUE(Matrix::SameCells(alone[k], together[k])) << k;
  EXPECT_FALSE(Matrix::SameCells(alone[0], alone[7]));
}

TEST(EngineTest, AnEngineOfFloatsRoundsItsInputs) {
  EngineOptions options;
  options.session.element_type = ElementType::kFloat32;
  const Result<std::unique_ptr<Engine>> engine = Engine::Create(options);
  ASSERT_TRUE(engine.ok());
  const std::vector<double> cells = {0.1, 0, 3};
  const Result<RunResults> results =
      (*engine)->Run({.text = "Y = X * 2"}, {{"X", MatrixOf(cells, 3)}}, {"Y"});
  ASSERT_TRUE(results.ok()) << MessageOf(results.status());
  const Matrix& y = results->outputs.at("Y").value.matrix();
  EXPECT_EQ(y.element_type(), ElementType::kFloat32);
  EXPECT_EQ(y.At(0, 0), static_cast<double>(0.1F * 2));
}

}  // namespace
}  // namespace heddle::engine
