// SPDX-License-Identifier: Apache-2.0
// Transforms of frames whose rows lie on several ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/environment/random.h"
#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "tests/unit/ops/frame_pieces.h"

namespace heddle::ops {
namespace {

using testing::CutsOf;
using testing::ExpectRowsMatchAtAllCuts;
using testing::ExpectStagesFailAlike;
using testing::ExpectStagesMatchAtAllCuts;
using testing::Inputs;
using testing::Invocation;
using testing::NamedFrame;
using testing::Rows;
using testing::Text;
using testing::TextCells;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A frame of texts, numbers, whole numbers, booleans, sentences and numbers as texts, some cells missing.
Frame RandomFrame(int64_t rows, uint64_t seed) {
  SeededRandom random(seed);
  const std::vector<std::string> words = {"red", "blue", "green",  "deep sea", "Red", "",
                                          "0",   "1.0",  "yellow", "é",        "NaN"};
  const std::vector<double> numbers = {1, 1, -0.0, 0.0, 2.5, kNan, 1e300, -7, 3, 0.1, 0.2, 1e-9};
  TextCells tokens, sentences, numerals;
  std::vector<double> doubles;
  std::vector<int64_t> integers;
  const auto booleans = std::make_unique<bool[]>(static_cast<size_t>(rows));
  const uint64_t kinds = 1 + random.Below(words.size());
  for (int64_t i = 0; i < rows; ++i) {
    const auto may_miss = [&](std::string text) {
      return random.Below(8) == 0 ? std::nullopt : std::optional(std::move(text));
    };
    tokens.push_back(may_miss(words[random.Below(kinds)]));
    sentences.push_back(may_miss(words[random.Below(kinds)] + " " + words[random.Below(kinds)] + " x"));
    numerals.push_back(random.Below(9) == 0 ? std::optional<std::string>("")
                                            : may_miss(std::to_string(random.Below(30)) + ".5"));
    doubles.push_back(numbers[random.Below(numbers.size())] +
                      (random.Below(3) == 0 ? static_cast<double>(random.Below(100)) / 7 : 0));
    integers.push_back(static_cast<int64_t>(random.Below(40)) - 20);
    booleans[static_cast<size_t>(i)] = random.Below(2) == 0;
  }
  return NamedFrame({*TextColumn(tokens), *Column::OfDoubles(doubles), *Column::OfIntegers(integers),
                     *Column::OfBooleans({booleans.get(), static_cast<size_t>(rows)}), *TextColumn(sentences),
                     *TextColumn(numerals)},
                    {"token", "double", "integer", "boolean", "sentence", "numeral"});
}

// Text columns have an encoder that takes texts, whatever else is asked for.
const char* const kSpecs[] = {
    "{recode: [token, sentence, double, boolean]}",
    "{dummycode: [token], recode: [sentence], bin: [{name: double, method: equi-height, numbins: 4}, "
    "{name: integer, method: equi-width, numbins: 3}, {name: numeral, method: equi-height, numbins: 7}]}",
    "{recode: [token, sentence], hash: [integer, double], K: 5, omit: [token, numeral]}",
    "{ids: true, hash: [1], K: 7, dummycode: [1, 4], recode: [5], "
    "bin: [{id: 2, method: equi-height, numbins: 300}]}",
    "{recode: [token, sentence], impute: [{name: token, method: constant, value: missing}, "
    "{name: double, method: global_mean}, {name: numeral, method: global_mean}, "
    "{name: sentence, method: global_mode}]}",
    "{recode: [token], hash: [sentence], K: 3, impute: [{name: token, method: global_mode}, "
    "{name: integer, method: global_mode}, {name: double, method: global_mode}, "
    "{name: numeral, method: global_mode}]}",
    "{bag_of_words: [sentence], recode: [token], impute: [{name: sentence, method: global_mode}]}",
    "{bag_of_words: [sentence], dummycode: [token], omit: [sentence], "
    "impute: [{name: sentence, method: constant, value: \"sea of red\"}], "
    "bin: [{name: numeral, method: equi-width, numbins: 5}]}",
};

// The call that the stages compute: in which of the forms depends on whether the sizes are known.
int32_t PlaceOf(const Invocation& call, size_t result) {
  const Result<std::vector<ValueInfo>> infos = call.InferWith(call.scalars);
  return infos.ok() && (*infos)[result].IsSized() ? 0 : 1;
}

TEST(TransformStagesTest, AnyRanksEncodeAsOneProcess) {
  for (const int64_t rows : {1, 2, 5, 64, 65, 300})
    for (const char* spec : kSpecs)
      for (uint64_t seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE(::testing::Message() << spec << ", " << rows << " rows, seed " << seed);
        const Frame frame = RandomFrame(rows, seed + static_cast<uint64_t>(rows));
        Invocation call("transformencode", {Value(frame), Text(spec)});
        const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
        if (!whole.ok()) {
          for (const int32_t ranks : {1, 3, 8}) ExpectStagesFailAlike(call, rows, ranks, PlaceOf(call, 0));
          continue;
        }
        ExpectStagesMatchAtAllCuts(call, rows, PlaceOf(call, 0));
        Invocation apply("transformapply", {Value(RandomFrame(rows, seed)), (*whole)[1], Text(spec)});
        if (apply.RunSeveralRows(0, 0, 0).ok()) ExpectStagesMatchAtAllCuts(apply, rows, PlaceOf(apply, 0));
        Invocation map("transformcolmap", {(*whole)[1], Text(spec)});
        ExpectStagesMatchAtAllCuts(map, (*whole)[1].shape().rows);
        Invocation mask("getCategoricalMask", {(*whole)[1], Text(spec)});
        ExpectStagesMatchAtAllCuts(mask, (*whole)[1].shape().rows);
        Invocation decode("transformdecode", {(*whole)[0], (*whole)[1], Text(spec)});
        if (decode.RunSeveralRows(0, 0, 0).ok()) ExpectRowsMatchAtAllCuts(decode, (*whole)[0].shape().rows);
      }
}

// Where compress() reads the matrix it is made of column groups (docs/compression.md).
const testing::Attributes kOfGroups = {{"compressed", Scalar(true)}};

TEST(TransformStagesTest, ColumnGroupsHaveTheCellsOfTheEncodedMatrix) {
  for (const int64_t rows : {0, 1, 2, 65, 300})
    for (const char* spec : kSpecs)
      for (uint64_t seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE(::testing::Message() << spec << ", " << rows << " rows, seed " << seed);
        const Frame frame = RandomFrame(rows, seed + static_cast<uint64_t>(rows));
        Invocation by_cells("transformencode", {Value(frame), Text(spec)});
        Invocation by_groups("transformencode", {Value(frame), Text(spec)}, kOfGroups);
        const Result<std::vector<Value>> cells = by_cells.RunSeveralRows(0, 0, 0);
        const Result<std::vector<Value>> groups = by_groups.RunSeveralRows(0, 0, 0);
        ASSERT_EQ(groups.ok(), cells.ok());
        if (!cells.ok()) {
          EXPECT_EQ(groups.status().message(), cells.status().message());
          continue;
        }
        const Matrix &found = (*groups)[0].matrix(), &wanted = (*cells)[0].matrix();
        // So few rows come decoded.
        EXPECT_EQ(found.storage(), wanted.storage());
        EXPECT_TRUE(Matrix::SameCells(found, wanted));
        EXPECT_TRUE(Matrix::SameCells(*ToDense(found), *ToDense(wanted)));
        if (rows > 0) ExpectStagesMatchAtAllCuts(by_groups, rows, PlaceOf(by_groups, 0));
      }
}

TEST(TransformStagesTest, LargeMatricesStayInColumnGroups) {
  constexpr int64_t kRows = 100'000;
  const Frame frame = RandomFrame(kRows, 3);
  for (const char* spec : kSpecs) {
    SCOPED_TRACE(spec);
    Invocation by_cells("transformencode", {Value(frame), Text(spec)});
    Invocation by_groups("transformencode", {Value(frame), Text(spec)}, kOfGroups);
    const Result<std::vector<Value>> cells = by_cells.RunSeveralRows(0, 0, 0);
    const Result<std::vector<Value>> groups = by_groups.RunSeveralRows(0, 0, 0, 3);
    ASSERT_TRUE(cells.ok() && groups.ok());
    const Matrix &found = (*groups)[0].matrix(), &wanted = (*cells)[0].matrix();
    const bool has_counts = std::string_view(spec).find("bag_of_words") != std::string_view::npos;
    // Counts of tokens have many values: what reading costs decides, and few entries are read faster.
    if (!has_counts || wanted.IsSparse()) {
      EXPECT_EQ(found.IsCompressed(), !has_counts);
    }
    EXPECT_TRUE(Matrix::SameCells(*ToDense(found), *ToDense(wanted)));
    if (!found.IsCompressed()) continue;
    EXPECT_LT(2 * found.groups().bytes(), wanted.bytes());
    EXPECT_TRUE(Verify(found.groups()).ok());
  }
}

// Where there is room for cells there is a result: without room for groups, or for cells made of these, that
// is what there is room for.
TEST(TransformStagesTest, WithoutRoomForGroupsCellsAreMade) {
  const Frame frame = RandomFrame(60'000, 5);
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  for (const char* spec : {kSpecs[0], kSpecs[1], kSpecs[2]}) {
    SCOPED_TRACE(spec);
    const auto encode = [&](const testing::Attributes& attributes, int64_t room) {
      Invocation call("transformencode", {Value(frame), Text(spec)}, attributes);
      BlockPool::Process().Trim();
      budget.SetLimit(budget.used() + room);
      Result<std::vector<Value>> results = call.RunSeveralRows(0, 0, 0, 2);
      budget.SetLimit(limit);
      return results;
    };
    int made = 0, refused = 0;
    for (int64_t room = 1 << 20; room < int64_t{64} << 20; room += room / 3) {
      SCOPED_TRACE(room);
      const Result<std::vector<Value>> cells = encode({}, room), groups = encode(kOfGroups, room);
      if (!groups.ok()) {
        EXPECT_EQ(groups.status().code(), StatusCode::kResourceExhausted);
      }
      if (!cells.ok()) {
        ++refused;
        continue;
      }
      ++made;
      ASSERT_TRUE(groups.ok()) << groups.status().ToString();
      EXPECT_TRUE(Matrix::SameCells(*ToDense((*groups)[0].matrix()), *ToDense((*cells)[0].matrix())));
      EXPECT_TRUE(Frame::SameCells((*groups)[1].frame(), (*cells)[1].frame()));
    }
    EXPECT_GT(made, 2);
    EXPECT_GT(refused, 2);
  }
}

// In programs of floats dictionaries are rounded as cells are. A zero has a sign in dense results alone, also
// one that rounding makes.
TEST(TransformStagesTest, DictionariesAreRoundedAndZerosHaveSignsAsInCells) {
  constexpr int64_t kRows = 400'000;
  std::vector<double> numbers;
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < kRows; ++i) {
    numbers.push_back(std::vector<double>{0.1, -1e-300, 1e300, -0.0, kNan}[static_cast<size_t>(i % 5)]);
    keys.push_back(i % 7);
  }
  const Frame frame = NamedFrame({*Column::OfDoubles(numbers), *Column::OfIntegers(keys)}, {"a", "b"});
  for (const auto& [spec, type] :
       std::vector<std::pair<const char*, ElementType>>{{"{recode: [b]}", ElementType::kFloat64},
                                                        {"{recode: [b]}", ElementType::kFloat32},
                                                        {"{dummycode: [b]}", ElementType::kFloat64},
                                                        {"{dummycode: [b]}", ElementType::kFloat32}}) {
    std::vector<Matrix> made;
    for (const bool by_groups : {false, true}) {
      Invocation call("transformencode", {Value(frame), Text(spec)},
                      by_groups ? kOfGroups : testing::Attributes());
      std::vector<ValueInfo> infos = *call.InferWith(call.scalars);
      infos[0].element_type = type;
      call.SetInfos(infos);
      std::vector<const Value*> inputs = {&*call.inputs[0], &*call.inputs[1]};
      std::vector<Value> results(2);
      ASSERT_TRUE(CatalogKernels()
                      .Run({.node = call.node,
                            .inputs = inputs,
                            .input_infos = call.infos,
                            .context = call.context,
                            .op = call.op},
                           results)
                      .ok());
      made.push_back(results[0].matrix());
      EXPECT_EQ(made.back().IsCompressed(), by_groups);
      EXPECT_EQ(made.back().element_type(), type);
    }
    EXPECT_TRUE(Matrix::SameCells(*ToDense(made[0]), *ToDense(made[1])));
  }
}

// As many places as dictionaries of dummies pay for, and more; and rows of an embedding.
TEST(TransformStagesTest, ManyDummiesAndVectorsShareDictionaries) {
  constexpr int64_t kRows = 100'000;
  for (const int64_t codes : {400, 30'000}) {
    std::vector<int64_t> a, b;
    for (int64_t i = 0; i < kRows; ++i) {
      a.push_back(i < codes ? i : (i * i) % codes);
      b.push_back(i < codes ? i + 7 : (i * 31) % codes + 7);
    }
    const Frame frame = NamedFrame({*Column::OfIntegers(a), *Column::OfIntegers(b)}, {"a", "b"});
    Invocation by_cells("transformencode", {Value(frame), Text("{dummycode: [a, b]}")});
    Invocation by_groups("transformencode", {Value(frame), Text("{dummycode: [a, b]}")}, kOfGroups);
    const Matrix wanted = (*by_cells.RunSeveralRows(0, 0, 0))[0].matrix();
    const Matrix found = (*by_groups.RunSeveralRows(0, 0, 0))[0].matrix();
    EXPECT_TRUE(Matrix::SameCells(found, wanted));
    ASSERT_EQ(found.IsCompressed(), codes == 400);
    if (!found.IsCompressed()) continue;
    ASSERT_EQ(found.groups().groups.size(), 2u);
    EXPECT_EQ(found.groups().groups[0].dictionary.data<void>(),
              found.groups().groups[1].dictionary.data<void>());
  }
  TextCells texts;
  for (int64_t i = 0; i < kRows; ++i)
    texts.push_back(i % 11 == 3 ? std::nullopt : std::optional("t" + std::to_string(i % 9)));
  const Frame frame = NamedFrame({*TextColumn(texts)}, {"t"});
  Invocation meta("transformencode", {Value(frame), Text("{recode: [t]}")});
  const Value tokens = (*meta.RunSeveralRows(0, 0, 0))[1];
  for (const bool sparse : {false, true}) {
    const Matrix vectors = Rows({{1, -0.0, 3}, {0, 0, 0}, {kNan, 5, 0}, {7, 8, 9}, {1, 1, 1}, {2, 2, 2}});
    const Inputs inputs = {Value(frame), tokens, Text("{word_embedding: [t]}"),
                           Value(sparse ? *ToSparse(vectors) : vectors)};
    Invocation by_cells("transformapply", inputs), by_groups("transformapply", inputs, kOfGroups);
    const Matrix wanted = by_cells.RunRows(0, 0, 0)->matrix(), found = by_groups.RunRows(0, 0, 0)->matrix();
    EXPECT_TRUE(found.IsCompressed());
    EXPECT_TRUE(Matrix::SameCells(*ToDense(found), *ToDense(wanted)));
  }
}

TEST(TransformStagesTest, ManyTokensHaveTheCodesOfOneProcess) {
  constexpr int64_t kRows = 20000;
  SeededRandom random(5);
  TextCells ids, keys;
  for (int64_t i = 0; i < kRows; ++i) {
    ids.push_back("id " + std::to_string(i));
    keys.push_back("key " + std::to_string(random.Below(5000)));
  }
  const Frame frame = NamedFrame({*TextColumn(ids), *TextColumn(keys)}, {"id", "key"});
  Invocation call("transformencode",
                  {Value(frame), Text("{recode: [id, key], impute: [{name: key, method: global_mode}]}")});
  for (const int32_t ranks : {2, 3, 8}) testing::ExpectStagesMatch(call, kRows, ranks);
}

// The first column that has a failure tells it; of one column first the cells that are no numbers, then what
// follows from all of them.
TEST(TransformStagesTest, TheFirstFailureIsTheOneOfOneProcess) {
  TextCells late(200, "1"), early(200, "1");
  late[150] = "late";
  late[170] = "later";
  early[0] = "early";
  const Frame frame =
      NamedFrame({*TextColumn(late), *TextColumn(early), *Column::OfDoubles(std::vector<double>(200, kNan))},
                 {"a", "b", "c"});
  struct Case {
    const char* spec;
    const char* message;
  };
  for (const auto& [spec, message] : std::initializer_list<Case>{
           {"{recode: [c]}", "'late' in column a is not a number"},
           {"{recode: [a]}", "'early' in column b is not a number"},
           {"{hash: [a], K: 3, impute: [{name: a, method: global_mean}]}",
            "'late' in column a is not a number"},
           {"{recode: [a, b], bin: [{name: c, method: equi-height, numbins: 3}]}",
            "column c has no number to make bins of"},
           {"{recode: [b], bin: [{name: a, method: equi-width, numbins: 3}]}",
            "'late' in column a is not a number"},
           {"{recode: [b], hash: [c], K: 4, impute: [{name: c, method: constant, value: word}]}",
            "'late' in column a is not a number"},
           {"{recode: [a, b], hash: [c], K: 4, impute: [{name: c, method: constant, value: word}]}",
            "missing cells of column c"}}) {
    SCOPED_TRACE(spec);
    Invocation call("transformencode", {Value(frame), Text(spec)});
    EXPECT_NE(call.Error().find(message), std::string::npos) << call.Error();
    for (const int32_t ranks : {1, 2, 3, 8}) ExpectStagesFailAlike(call, 200, ranks, PlaceOf(call, 0));
  }
  // Of metadata that are there already.
  Invocation call("transformapply", {Value(frame), Value(NamedFrame({*TextColumn(TextCells{"x·1"})}, {"c"})),
                                     Text("{recode: [c]}")});
  for (const int32_t ranks : {1, 2, 3, 8}) ExpectStagesFailAlike(call, 200, ranks);
}

TEST(TransformStagesTest, TextsAreCutIntoTokensWhereTheyAre) {
  for (const int64_t rows : {1, 5, 64, 200}) {
    const Frame frame = RandomFrame(rows, static_cast<uint64_t>(rows));
    for (const char* spec :
         {"{algo: split, out: count, id_cols: [1], tokenize_col: 5}",
          "{algo: ngram, out: position, id_cols: [1, 4], tokenize_col: 5}",
          "{algo: split, out: hash, id_cols: [1], tokenize_col: 5, format_wide: true}",
          "{algo: split, out: position, id_cols: [1], tokenize_col: 5, format_wide: true}"}) {
      SCOPED_TRACE(spec);
      Invocation call("tokenize", {Value(frame), Text(spec), Value(Scalar(int64_t{3}))});
      if (const Result<ValueInfo> info = call.Infer(); !info.ok()) {
        ADD_FAILURE() << info.status().ToString();
        continue;
      }
      ExpectStagesMatchAtAllCuts(call, rows, PlaceOf(call, 0));
    }
  }
}

}  // namespace
}  // namespace heddle::ops
