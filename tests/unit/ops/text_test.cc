// SPDX-License-Identifier: Apache-2.0
#include "ops/text/text.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/values/value.h"
#include "ops/base/operator.h"
#include "ops/catalog.h"
#include "ops/text/java_format.h"

namespace heddle::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string Format(std::string_view format, const std::vector<Scalar>& arguments) {
  std::vector<const Scalar*> pointers;
  for (const Scalar& argument : arguments) pointers.push_back(&argument);
  const Result<std::string> text = JavaFormat(format, pointers);
  return text.ok() ? *text : "error: " + text.status().message();
}

// Expected texts are what Java's String.format gives.
TEST(JavaFormatTest, Integers) {
  EXPECT_EQ(Format("%d items", {3}), "3 items");
  EXPECT_EQ(Format("%5d|%-5d|%05d|%+d|% d|%(d", {42, 42, 42, 42, 42, -42}), "   42|42   |00042|+42| 42|(42)");
  EXPECT_EQ(Format("%,d", {1234567}), "1,234,567");
  EXPECT_EQ(Format("%,d %,d", {-123, 100000}), "-123 100,000");
  EXPECT_EQ(Format("%x %X %o %#x %08x", {255, 255, 8, 255, 255}), "ff FF 10 0xff 000000ff");
  EXPECT_EQ(Format("%x", {-1}), "ffffffffffffffff");
  EXPECT_EQ(Format("%d", {std::numeric_limits<int64_t>::min()}), "-9223372036854775808");
  EXPECT_EQ(Format("%c%c", {72, 8364}), "H€");
}

TEST(JavaFormatTest, PlainDoublesRoundHalfUp) {
  EXPECT_EQ(Format("%f", {1.5}), "1.500000");
  EXPECT_EQ(Format("%.3f|%8.2f|%-8.2f|%08.2f", {3.14159, 2.5, 2.5, -2.5}),
            "3.142|    2.50|2.50    |-0002.50");
  EXPECT_EQ(Format("%.0f %.0f %.0f", {0.5, 1.5, 2.5}), "1 2 3");
  EXPECT_EQ(Format("%.1f", {0.25}), "0.3");
  EXPECT_EQ(Format("%.2f", {1.005}), "1.01");
  EXPECT_EQ(Format("%.2f", {9.999}), "10.00");
  EXPECT_EQ(Format("%.2f %.2f", {0.001, -0.001}), "0.00 -0.00");
  EXPECT_EQ(Format("%.1f", {123456789012.0}), "123456789012.0");
  EXPECT_EQ(Format("%,.2f", {1234567.891}), "1,234,567.89");
  EXPECT_EQ(Format("%f %5f %f", {kInfinity, std::nan(""), -kInfinity}), "Infinity   NaN -Infinity");
  EXPECT_EQ(Format("%010f", {kInfinity}), "  Infinity");
  EXPECT_EQ(Format("%f", {1e20}), "100000000000000000000.000000");
}

TEST(JavaFormatTest, ScientificAndGeneralDoubles) {
  EXPECT_EQ(Format("%e", {12345.678}), "1.234568e+04");
  EXPECT_EQ(Format("%.2e %E", {0.000123456, 0.0}), "1.23e-04 0.000000E+00");
  EXPECT_EQ(Format("%.0e", {9.6}), "1e+01");
  EXPECT_EQ(Format("%e", {1e-300}), "1.000000e-300");
  EXPECT_EQ(Format("%g", {123456.0}), "123456");
  EXPECT_EQ(Format("%g", {1234567.0}), "1.23457e+06");
  EXPECT_EQ(Format("%g %g", {0.0001, 0.00001}), "0.000100000 1.00000e-05");
  EXPECT_EQ(Format("%g", {0.0}), "0.00000");
  EXPECT_EQ(Format("%.3g", {999.9}), "1.00e+03");
}

TEST(JavaFormatTest, AnythingElse) {
  EXPECT_EQ(Format("%s %s %s %s", {"text", 1, 1.5, true}), "text 1 1.5 true");
  EXPECT_EQ(Format("%6s|%-6s|%.2s|%S", {"ab", "ab", "abcd", "ab"}), "    ab|ab    |ab|AB");
  EXPECT_EQ(Format("%b %B %b", {true, false, "x"}), "true FALSE true");
  EXPECT_EQ(Format("100%% sure%n", {}), "100% sure\n");
  EXPECT_EQ(Format("%2$s %1$s %<s %s", {"a", "b"}), "b a a a");
}

TEST(JavaFormatTest, MisfitsNameTheSpecifier) {
  EXPECT_EQ(Format("%d", {1.5}), "error: format: %d needs an integer, not the double 1.5");
  EXPECT_EQ(Format("%.2f", {3}), "error: format: %.2f needs a double, not the integer 3");
  EXPECT_EQ(Format("%s and %s", {1}), "error: format: there is no argument for %s");
  EXPECT_EQ(Format("%i", {1}), "error: format: unknown conversion %i");
  EXPECT_EQ(Format("%-d", {1}), "error: format: a width is missing in %-d");
  EXPECT_EQ(Format("50%", {}), "error: format: the text ends inside %");
  EXPECT_EQ(Format("%.f", {1.0}), "error: format: a precision is missing in %.");
  EXPECT_EQ(Format("%.2d", {1}), "error: format: %.2d takes no precision");
}

Matrix Sample() {
  Matrix matrix = *Matrix::Dense(2, 3);
  const double cells[] = {0.5, -1, 0.0005, -0.0, std::nan(""), kInfinity};
  std::copy(std::begin(cells), std::end(cells), matrix.mutable_data());
  return matrix;
}

TEST(MatrixToTextTest, RowsEndWithTheLineEnd) {
  EXPECT_EQ(MatrixToText(Sample(), {}), "0.500 -1.000 0.001\n0.000 NaN Infinity\n");
  TextLayout layout;
  layout.decimals = 1;
  layout.separator = ",";
  layout.line_end = ";";
  EXPECT_EQ(MatrixToText(Sample(), layout), "0.5,-1.0,0.0;0.0,NaN,Infinity;");
  layout.rows = 1;
  layout.columns = 2;
  EXPECT_EQ(MatrixToText(Sample(), layout), "0.5,-1.0;");
  EXPECT_EQ(MatrixToText(*ToSparse(Sample()), layout), "0.5,-1.0;");
  layout.rows = layout.columns = 100;
  layout.sparse = true;
  EXPECT_EQ(MatrixToText(Sample(), layout), "1,1,0.5;1,2,-1.0;1,3,0.0;2,2,NaN;2,3,Infinity;");
  EXPECT_EQ(MatrixToText(*Matrix::Dense(0, 3), {}), "");
}

TEST(MatrixToTextTest, BothFormatsReadTheSame) {
  Matrix cells = *FilledMatrix(5, 4, 0);
  cells.mutable_data()[7] = 3.25;
  cells.mutable_data()[12] = -1;
  EXPECT_EQ(MatrixToText(*ToSparse(cells), {}), MatrixToText(cells, {}));
  const Matrix rows = ToSparse(cells)->Rows(1, 4);
  EXPECT_EQ(MatrixToText(rows, {}),
            "0.000 0.000 0.000 3.250\n0.000 0.000 0.000 0.000\n-1.000 0.000 0.000 0.000\n");
}

// Runs an operator of ops/text/text.cc; what it prints goes to *out.
Result<Value> RunText(std::string_view name, const std::vector<Value>& arguments, std::string* out) {
  Node node;
  node.op = name;
  std::vector<ValueInfo> infos;
  std::vector<const Value*> inputs;
  for (const Value& argument : arguments) {
    infos.push_back(argument.IsMatrix() ? ValueInfo::OfMatrix(argument.matrix().shape())
                                        : ValueInfo::OfScalar(argument.scalar().type()));
    inputs.push_back(&argument);
    node.inputs.push_back(static_cast<NodeId>(node.inputs.size()));
  }
  const std::vector<const Scalar*> scalars(infos.size(), nullptr);
  KernelContext context;
  context.print = [out](std::string_view text) { out->append(text); };
  for (const Operator& op : TextOperators()) {
    if (op.name != name) continue;
    Result<ValueInfo> info = op.infer({node, infos, scalars});
    if (!info.ok()) return info.status();
    return op.run({node, Phase::kWhole, inputs, infos, 0, 0, 0, context});
  }
  std::abort();
}

TEST(TextOperatorsTest, PrintWritesTheTextAndANewline) {
  std::string out;
  EXPECT_TRUE(RunText("print", {Value(Scalar("hello"))}, &out).ok());
  EXPECT_TRUE(RunText("print", {Value(Scalar(1.0))}, &out).ok());
  EXPECT_TRUE(RunText("print", {Value(Scalar(true))}, &out).ok());
  EXPECT_TRUE(RunText("print", {Value(*FilledMatrix(1, 2, 1.0))}, &out).ok());
  EXPECT_EQ(out, "hello\n1.0\nTRUE\n1.000 1.000\n\n");
}

TEST(TextOperatorsTest, StopAndAssertAbort) {
  std::string out;
  const Status stopped = RunText("stop", {Value(Scalar("no data"))}, &out).status();
  EXPECT_EQ(stopped.code(), StatusCode::kAborted);
  EXPECT_EQ(stopped.message(), "no data");
  EXPECT_EQ(RunText("assert", {Value(Scalar(false))}, &out).status().message(), "assertion failed");
  EXPECT_TRUE(RunText("assert", {Value(Scalar(1.0))}, &out).ok());
  EXPECT_FALSE(RunText("assert", {Value(*FilledMatrix(1, 1, 1.0))}, &out).ok());
}

TEST(TextOperatorsTest, ToStringReadsItsArgumentsInOrder) {
  std::string out;
  const Value matrix(Sample());
  EXPECT_EQ(RunText("toString",
                    {matrix, Value(Scalar(1)), Value(Scalar(2)), Value(Scalar(0)), Value(Scalar(false)),
                     Value(Scalar("|")), Value(Scalar("$"))},
                    &out)
                ->scalar(),
            Scalar("0|-1$"));
  EXPECT_EQ(RunText("toString", {Value(Scalar(2))}, &out)->scalar(), Scalar("2"));
  EXPECT_EQ(RunText("format", {Value(Scalar("%d/%s")), Value(Scalar(1)), Value(Scalar("x"))}, &out)->scalar(),
            Scalar("1/x"));
}

// In pieces, none of which ends inside a character.
TEST(TextOperatorsTest, ALongTextIsPrintedInPiecesOfWholeCharacters) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "a\u20ac\u00e4\U0001f600";
  Node node;
  node.op = "print";
  node.inputs = {0};
  std::string all;
  size_t pieces = 0;
  KernelContext context;
  context.print = [&](std::string_view piece) {
    EXPECT_LE(piece.size(), (size_t{256} << 10) + 1);
    EXPECT_NE(static_cast<unsigned char>(piece.front()) & 0xc0, 0x80);
    all += piece;
    ++pieces;
  };
  const Value value{Scalar(text)};
  const Value* inputs[] = {&value};
  const ValueInfo infos[] = {ValueInfo::OfScalar(ValueType::kString)};
  ASSERT_TRUE(CatalogKernels()
                  .Run({.node = node,
                        .phase = Phase::kWhole,
                        .inputs = inputs,
                        .input_infos = infos,
                        .context = context})
                  .ok());
  EXPECT_TRUE(all == text + "\n");
  EXPECT_GE(pieces, text.size() >> 18);
}

// Expected texts are what SystemDS prints.
TEST(FrameTextTest, BeginsWithSizeNamesAndTypes) {
  const Frame frame(
      std::make_shared<const Schema>(Schema{
          {ColumnType::kBoolean, ColumnType::kFloat32, ColumnType::kInteger32, ColumnType::kFloat64}, {}}),
      {*Column::OfBooleans(std::array<bool, 3>{true, false, true}),
       *Column::OfDoubles(std::array<double, 3>{2.5, 3.25, -1}, ColumnType::kFloat32),
       *Column::OfIntegers(std::array<int64_t, 3>{3, 4, 5}, ColumnType::kInteger32),
       *Column::OfDoubles(std::array<double, 3>{0.1, 0.2, 0.3333333333333})});
  EXPECT_EQ(FrameToText(frame, {}),
            "# FRAME: nrow = 3, ncol = 4\n# C1 C2 C3 C4\n# BOOLEAN FP32 INT32 FP64\n"
            "TRUE 2.5 3 0.100\nFALSE 3.25 4 0.200\nTRUE -1.0 5 0.333\n");
  EXPECT_EQ(FrameToText(frame, {.rows = 2, .columns = 3, .separator = "|"}),
            "# FRAME: nrow = 3, ncol = 4\n#|C1|C2|C3\n#|BOOLEAN|FP32|INT32\nTRUE|2.5|3\nFALSE|3.25|4\n");
  EXPECT_EQ(FrameToText(frame.Rows(2, 3), {.line_end = "~\n"}),
            "# FRAME: nrow = 1, ncol = 4~\n# C1 C2 C3 C4~\n# BOOLEAN FP32 INT32 FP64~\nTRUE -1.0 5 0.333~\n");
}

TEST(FrameTextTest, MissingCellsAreNull) {
  Column texts = *Column::Make(ColumnType::kString, 2, 1, /*may_miss=*/true);
  for (const auto& [i, offset] : {std::pair<int, int64_t>{0, 0}, {1, 1}, {2, 1}})
    texts.mutable_offsets()[i] = offset;
  texts.mutable_texts()[0] = 'x';
  texts.mutable_missing()[1] = 1;
  const Frame frame(std::make_shared<const Schema>(Schema{{ColumnType::kString}, {"my name"}}), {texts});
  EXPECT_EQ(FrameToText(frame, {}), "# FRAME: nrow = 2, ncol = 1\n# my name\n# STRING\nx\nnull\n");
}

}  // namespace
}  // namespace heddle::ops
