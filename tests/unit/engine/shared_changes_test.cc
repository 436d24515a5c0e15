// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/shared_changes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/variables/merge_cells.h"
#include "engine/variables/variable_bytes.h"

// What iterations changed of frames and lists, as it travels between ranks.
namespace heddle::engine {
namespace {

Frame Table(std::vector<double> numbers, std::vector<std::string_view> texts) {
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kFloat64, ColumnType::kString};
  return Frame(schema, {*Column::OfDoubles(numbers), *Column::OfTexts(texts)});
}

Variable OfFrame(Frame frame) {
  Variable variable;
  variable.info = ValueInfo::OfFrame(frame.rows(), frame.schema());
  variable.value = Value(std::move(frame));
  return variable;
}

Variable OfMatrix(double cell) {
  Matrix matrix = *Matrix::Dense(1, 1);
  matrix.mutable_data()[0] = cell;
  Variable variable;
  variable.info = ValueInfo::OfMatrix({1, 1});
  variable.value = Value(std::move(matrix));
  variable.distribution = Distribution::One();
  return variable;
}

Variable ListOfThese(std::vector<std::pair<std::string, Variable>> elements) {
  auto list = std::make_shared<ListOf<Variable>>();
  for (auto& [name, element] : elements) EXPECT_TRUE(list->Add(name, std::move(element)).ok());
  return Variable::OfList(std::move(list));
}

// The changes of ranks, sent and put together.
Result<Variable> Together(const Variable& before, const std::vector<Variable>& after) {
  std::vector<Variable> arrived;
  for (const Variable& of_rank : after) {
    HEDDLE_ASSIGN_OR_RETURN(const Variable changes, ChangesOf(before, of_rank));
    HEDDLE_ASSIGN_OR_RETURN(arrived.emplace_back(), DecodeVariable(EncodeVariable(changes)));
  }
  return WithChanges(before, arrived);
}

TEST(SharedChangesTest, CellsOfFramesAreThoseOfWhoChangedThem) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Frame before = Table({1, nan, 0.0, 4}, {"a", "", "c", "d"});
  const Result<Variable> merged =
      Together(OfFrame(before), {OfFrame(Table({1, nan, -0.0, 4}, {"a", "longer", "c", "d"})),
                                 OfFrame(before), OfFrame(Table({nan, nan, 0.0, 4}, {"a", "", "c", ""}))});
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  EXPECT_TRUE(Frame::SameCells(merged->value.frame(), Table({nan, nan, -0.0, 4}, {"a", "longer", "c", ""})));
  EXPECT_TRUE(std::signbit(merged->value.frame().At(2, 0).AsDouble()));
  EXPECT_EQ(before.At(1, 1).ToText(), "") << "what others hold stays";
}

TEST(SharedChangesTest, MissingCellsTravel) {
  Column some = *Column::Make(ColumnType::kFloat64, 3, 0, true);
  std::fill_n(some.mutable_doubles(), 3, 0.0);
  some.mutable_missing()[1] = 1;
  const auto schema = std::make_shared<const Schema>(Schema{.types = {ColumnType::kFloat64}});
  const Frame before(schema, {*Column::OfDoubles(std::array{0.0, 0.0, 0.0})});
  const Frame after(schema, {some});
  const Result<std::vector<ColumnChange>> changes = ChangedCells(before, after);
  ASSERT_TRUE(changes.ok());
  ASSERT_EQ(changes->size(), 1u);
  EXPECT_EQ((*changes)[0].rows.rows(), 1);
  EXPECT_TRUE(Frame::SameCells(*WithCells(before, *changes), after));
}

TEST(SharedChangesTest, ElementsOfListsAreThoseOfWhoChangedThem) {
  const Variable one = OfMatrix(1), frame = OfFrame(Table({1}, {"a"}));
  const Variable before = ListOfThese({{"m", one}, {"f", frame}, {"n", OfMatrix(3)}});
  const Variable inner = ListOfThese({{"", OfMatrix(8)}, {"", Variable::OfScalar(Scalar("text"))}});
  const Variable first = ListOfThese({{"m", OfMatrix(7)}, {"f", frame}, {"n", before.list->elements[2]}});
  const Variable second = ListOfThese({{"m", one}, {"f", inner}, {"renamed", before.list->elements[2]}});
  const Result<Variable> merged = Together(before, {first, second});
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  const ListOf<Variable>& list = *merged->list;
  EXPECT_EQ(list.names, (std::vector<std::string>{"m", "f", "renamed"}));
  EXPECT_EQ(list.depth, 2);
  EXPECT_EQ(list.elements[0].value.matrix().At(0, 0), 7);
  EXPECT_TRUE(list.elements[0].distribution.IsEach()) << "every rank has got it";
  EXPECT_EQ(list.elements[1].list->elements[0].value.matrix().At(0, 0), 8);
  EXPECT_TRUE(list.elements[1].list->elements[0].distribution.IsEach());
  EXPECT_EQ(list.elements[1].list->elements[1].value.scalar(), Scalar("text"));
  EXPECT_EQ(list.elements[2].value.matrix().At(0, 0), 3);
  EXPECT_EQ(before.list->names[2], "n") << "what others hold stays";
}

TEST(SharedChangesTest, WhatIsNotThereIsRefused) {
  const Variable frame = OfFrame(Table({1}, {"a"}));
  EXPECT_EQ(ChangesOf(frame, OfFrame(Table({1, 2}, {"a", "b"}))).status().code(), StatusCode::kInternal);
  EXPECT_EQ(ChangesOf(ListOfThese({}), ListOfThese({{"", frame}})).status().code(), StatusCode::kInternal);
  EXPECT_EQ(ChangesOf(ListOfThese({}), frame).status().code(), StatusCode::kInternal);
  const Variable changes = *ChangesOf(OfFrame(Table({1, 2}, {"a", "b"})), OfFrame(Table({1, 3}, {"a", "b"})));
  EXPECT_EQ(WithChanges(frame, {{changes}}).status().code(), StatusCode::kInternal);
  EXPECT_EQ(WithChanges(ListOfThese({}), {{changes}}).status().code(), StatusCode::kInternal);
  EXPECT_EQ(WithChanges(frame, {{frame}}).status().code(), StatusCode::kInternal);
}

TEST(VariableBytesTest, CutBytesAreDataLoss) {
  const std::string bytes = EncodeVariable(ListOfThese({{"a\n\"b\"", OfMatrix(2)}, {"c", OfMatrix(3)}}));
  ASSERT_TRUE(DecodeVariable(bytes).ok());
  EXPECT_EQ(DecodeVariable(bytes)->list->names[0], "a\n\"b\"");
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(DecodeVariable(bytes.substr(0, size)).status().code(), StatusCode::kDataLoss) << size;
  EXPECT_EQ(DecodeVariable(bytes + "x").status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace heddle::engine
