// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/inlet_seeds.h"

#include <algorithm>
#include <cstring>

#include "core/values/column_groups_bytes.h"
#include "ops/io/checksums/crc32c.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "ops/io/formats/file_format.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/data_generator.h"
#include "tests/support/frames.h"
#include "tests/support/process.h"
#include "tests/support/r_objects.h"
#include "tests/unit/ops/compressed/random_groups.h"

namespace heddle::fuzz {

std::vector<std::string> CsvSeeds() {
  return {"1,2,3\n4,5,6\n",
          "a,b\n1,2\n",
          "1;2\n-3.5e2;NaN\n",
          "x;y\n1;2\n",
          "1,\n,2\r\n",
          "\"1\",\"2\"\n3,4\n",
          "\xEF\xBB\xBF"
          "1 2\n3 4\n",
          "Infinity,-0\n1,2",
          "1\t2\t3\n4\t5\t6\n"};
}

std::vector<std::string> FrameSeeds() {
  return {"name,3,1.5,TRUE\nother,4,2,FALSE\n", "\"a,b\",1,0.5,true\n\"q\"\"r\",,NaN,\n",
          "\xC3\xA9,-9223372036854775808,1e308,FALSE\n,0,,TRUE\n", "a\n\nb\n",
          "\"x\n\"\"y\"\"\",\"1\",2.5,TRUE\n\" z \"a,2,\"\",false\n"};
}

std::vector<std::string> CellSeeds() {
  return {"1 1 5.5\n2 3 -1\n3 1 1e-300\n", "0 0 0\n", "1 1 a text\n2 2 b\n", "10 1 1\n1 10 2\n1 1 3\n",
          "1 1 \"x\n\"\"y\"\"\"\n-1 1 2\n2 1 z\n"};
}

std::vector<std::string> MatrixMarketSeeds() {
  return {"%%MatrixMarket matrix coordinate real general\n% a comment\n3 3 2\n1 1 5\n3 2 -1.5\n",
          "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n",
          "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
          "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 1\n2 1 7\n",
          "%%MatrixMarket matrix array real symmetric\n2 2\n1.0D+03\n2.0-103\n3\n",
          "%%matrixmarket MATRIX Coordinate Real General\n\n1 1 1\n\n1 1 1\n"};
}

std::vector<std::string> LibsvmSeeds() {
  return {"1 1:0.5 3:2\n-1 2:1\n", "0 qid:3 1:1 2:2 # comment\n\n1\n", "1 1 : 2\n2 2:3\n"};
}

std::vector<std::string> ArffSeeds() {
  return {"% c\n@relation r\n@attribute a numeric\n@attribute 'b c' integer\n@data\n1,2\n?,3 % c\n{1 4}\n",
          "@relation r\n@attribute a {x,'y z'}\n@attribute s string\n@data\n'y z','a\\n\\'b'\n{1 \"c\"}\n"};
}

std::vector<std::string> GuessedSeeds() {
  std::vector<std::string> all;
  for (const auto& seeds : {CsvSeeds(), FrameSeeds(), CellSeeds(), MatrixMarketSeeds(), LibsvmSeeds(),
                            ArffSeeds(), WrittenSeeds("binary", false)})
    all.insert(all.end(), seeds.begin(), seeds.end());
  return all;
}

std::vector<std::string> GzipSeeds() {
  std::vector<std::string> packed;
  for (const std::string& text : CsvSeeds()) packed.push_back(Gzip(text));
  packed.push_back(Gzip("1,2\n") + Gzip("3,4\n"));
  packed.push_back(Gzip(std::string(30000, '1') + "\n"));
  return packed;
}

std::vector<std::string> ColumnGroupSeeds() {
  std::vector<std::string> seeds;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    // A column of zeros, a constant, one of few exceptions, runs, few and many values.
    Matrix matrix = *FilledMatrix(24 + seed, 6, 0);
    for (int64_t i = 0; i < matrix.rows(); ++i) {
      double* const cells = matrix.mutable_data() + i * 6;
      cells[1] = 2.5;
      cells[2] = i % 11 == 3 ? -1 : 0;
      cells[3] = static_cast<double>(i / 7);
      cells[4] = static_cast<double>(i * i % 5);
      cells[5] = static_cast<double>(i) / 3;
    }
    const ElementType type = seed % 2 == 0 ? ElementType::kFloat64 : ElementType::kFloat32;
    const std::shared_ptr<Buffer> flat =
        *FlattenGroups(ops::testing::RandomGroups(*ToElementType(matrix, type), seed));
    seeds.emplace_back(static_cast<const char*>(flat->data()), static_cast<size_t>(flat->bytes()));
  }
  return seeds;
}

std::vector<std::string> RdsSeeds() {
  namespace r = testing_support::r;
  const std::string names = r::List({r::Texts({"a", "b"}), r::Texts({"u", "v"})});
  const std::string matrix =
      r::Integers({1, r::kNaInteger, 3, 4}, {{"dim", r::Integers({2, 2})}, {"dimnames", names}});
  const std::string frame = r::DataFrame(
      {{"n", r::Doubles({1.5, r::kNaDouble})},
       {"s", r::TextVector({r::Text("a b"), r::Missing()})},
       {"f", r::Factor({2, 1}, {"no", "yes"})},
       {"d", r::Doubles({19753, -1}, {{"class", r::Texts({"Date"})}})},
       {"c", r::Alternative("deferred_string", "base", r::Dotted(r::Sequence(2, 1, 1), r::Integers({0})))}},
      r::CountedRows(2));
  const std::string environment =
      r::Int(4) + r::Int(0) + r::Int(242) + r::PairsOf({{"dim", r::Integers({1})}}) + r::Null() + r::Null();
  const std::string function = r::Int(3 | r::kHasTag) + environment + r::PairsOf({{"x", r::Int(251)}}) +
                               r::Int(21) + r::Int(1) + r::Integers({7}) + r::Int(0);
  return {r::Rds(matrix),
          r::Rds(frame),
          r::Rds(r::Doubles({1, 2, 3, 4, 5, 6}, r::Dim({1, 2, 3}))),
          r::Rds(r::ColumnSparse("dsCMatrix", {3, 3}, {0, 1, 2, 4}, {0, 0, 1, 2}, {1.5, 2, 3, 4})),
          r::Rds(r::List({matrix, r::Texts({"a"})}, {{"names", r::Texts({"x", "y"})}})),
          r::Workspace({{"f", function}, {"frame", frame}})};
}

std::vector<std::string> MetadataSeeds() {
  return {
      R"({"data_type": "matrix", "value_type": "double", "rows": 2, "cols": 2, "nnz": 4, "format": "csv"})",
      R"({"data_type": "frame", "schema": "INT64,STRING,", "rows": 2, "cols": 2, "format": "csv"})",
      R"({"format": "csv", "header": true, "sep": ",", "fill": false, "naStrings": "NA"})",
      R"({"format": "csv", "header": "false", "default": 1, "description": {"a": [1, 2]}, "indSep": ":"})",
      R"({"rows": 2, "cols": 2, "format": "CSV", "rows_in_block": 1000, "privacy": "public"})"};
}

std::vector<std::string> TransformSeeds() {
  return {
      "{ids: true, recode: [1, 3], dummycode: [3]}",
      "{recode: [name], bin: [{name: age, method: equi-width, numbins: 3}]}",
      R"({"ids": true, "hash": [1, 2], "K": 10, "omit": [1]})",
      "{ids: true, impute: [{id: 1, method: global_mode}, {id: 2, method: constant, value: 3}], recode: [1]}",
      "{ids: true, bag_of_words: [1]}",
      "{ids: true, word_embedding: [1]}",
      "{ids: true, udf: {name: scale, ids: [2, 3]}}"};
}

std::vector<std::string> TokenizeSeeds() {
  return {
      "{algo: split, out: count, tokenize_col: 2, id_cols: [1]}",
      R"({"algo": "split", "algo_params": {"regex": "\\W+"}, "out": "position", "tokenize_col": 1, "id_cols": [2, 3]})",
      "{algo: ngram, algo_params: {min_gram: 1, max_gram: 3, regex: '(a|b)*c{2,3}'}, out: hash, out_params: {num_features: 10}, tokenize_col: 1, id_cols: []}",
      "{algo: ngram, algo_params: {ngram_type: token, min_gram: 2, max_gram: 2}, out: count, out_params: {sort_alpha: true}, format_wide: true, apply_padding: true, tokenize_col: 1, id_cols: [2]}"};
}

std::vector<std::string> MapSeeds() {
  return {
      "x -> x.toUpperCase()",
      "x -> x.replaceAll(\"[^a-z]+\", \"_\").trim()",
      "(x, y) -> x + y.length() + 'c'",
      "x -> Double.parseDouble(x) * 2 > 3 ? \"a\" : \"b\"",
      "x -> x.split(\",\")[0].substring(0, 1)",
      "x -> x.indexOf(\"a\") >= 0 && !x.isEmpty()",
      "x -> String.valueOf(x.charAt(0)).contains(\"(a|b)*c\")",
      "x -> (int) Double.parseDouble(x) % 3 << 2 & 0xFF ^ ~1 >>> 33",
      "x -> x.chars().filter(c -> c == 'a' || Character.isDigit(c)).map(c -> c * 2).sum()",
      "x -> Arrays.stream(x.split(\",\")).map(String::strip).sorted().collect(java.util.stream.Collectors.joining(\"-\"))",
      "x -> String.format(\"%05.1f|%-8s|%x\", Double.valueOf(x), x.isBlank() ? null : x, x.length())",
      "x -> new StringBuilder(x).append(1).insert(0, 'c').reverse().deleteCharAt(0).toString()",
      "x -> java.time.LocalDate.of(2024, x.length(), 29).plusMonths(1).until(java.time.LocalDate.ofEpochDay(1L)).getDays()",
      "x -> Integer.parseInt(x, 36) + Long.parseLong(\"9\") / Math.floorMod(x.length(), 3)"};
}

std::vector<std::string> RegularExpressionSeeds() {
  return {"(a|b)*c{2,3}\nababcc abc",
          "^\\s*(\\d{1,3}\\.){3}\\d+$\n127.0.0.1",
          "[^a-z\\]]+?|\\p{Upper}\nab]CD",
          "(a{1,40}){1,40}b\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
          "(x*)*(y+)+z\nxxyyxxyy",
          R"((?:a??){30}b?)"
          "\nbbb"};
}

std::vector<std::string> ScriptSeeds() {
  constexpr size_t kSmall = 2000;
  std::vector<std::string> scripts;
  for (CorpusScript& script : LoadCorpus())
    if (script.text.size() <= kSmall) scripts.push_back(std::move(script.text));
  return scripts;
}

namespace {

Matrix OfCells(int64_t columns, const std::vector<double>& cells) {
  Matrix matrix = *Matrix::Dense(static_cast<int64_t>(cells.size()) / columns, columns);
  std::copy(cells.begin(), cells.end(), matrix.mutable_data());
  return matrix;
}

}  // namespace

std::vector<std::string> WrittenSeeds(const std::string& format, bool is_frame) {
  const testing_support::TemporaryFolder folder;
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(folder.path());
  ops::WriteOptions options;
  const Result<ops::FileFormat> known = ops::ParseFileFormat(format);
  if (!known.ok()) return {};
  options.format = *known;
  std::vector<Value> values;
  if (is_frame) {
    for (const int64_t rows : {1, 3, 50}) {
      values.emplace_back(NumberedFrame(rows));
      values.emplace_back(NumberedFrame(rows, 0, /*may_miss=*/false));
    }
  } else {
    values.emplace_back(OfCells(2, {1, 2, 3, 4, -0.5, 1e300}));
    values.emplace_back(*ToSparse(OfCells(6, {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0})));
    values.emplace_back(OfCells(1, {1}));
  }
  std::vector<std::string> seeds;
  for (const Value& value : values) {
    if (!ops::WriteValue(value, "f", options, *files).ok()) return {};
    seeds.push_back(testing_support::ReadText(folder.path() + "/f"));
  }
  return seeds;
}

namespace {

template <typename T>
void Store(const T& record, std::string* bytes, size_t at) {
  std::memcpy(bytes->data() + at, &record, sizeof(T));
}

}  // namespace

void RepairBinary(std::string* bytes) {
  using namespace ops;
  const size_t size = bytes->size();
  if (size < kHeaderBytes + kEndBytes) return;
  auto header = Load<BinaryHeader>(bytes->data());
  const size_t schema = std::min<size_t>(header.schema_bytes, size - kHeaderBytes);
  const std::string_view view(*bytes);
  header.checksum =
      Crc32c(view.substr(kHeaderBytes, schema), Crc32c(view.substr(0, kHeaderBytes - sizeof(uint32_t))));
  Store(header, bytes, 0);
  const size_t end_at = size - kEndBytes;
  auto end = Load<BinaryEnd>(bytes->data() + end_at);
  if (end.index > end_at) return;
  // Of a frame each entry is followed by a number for each column.
  const size_t pieces = header.kind == kFrameKind ? std::min<size_t>(header.columns, size) : 0;
  const size_t step = static_cast<size_t>(kEntryBytes) + pieces * static_cast<size_t>(kPieceBytes);
  for (size_t at = end.index; at + step <= end_at; at += step) {
    auto entry = Load<BinaryEntry>(bytes->data() + at);
    if (entry.offset > size || entry.bytes > size - entry.offset) continue;
    entry.checksum = Crc32c(std::string_view(*bytes).substr(entry.offset, entry.bytes));
    Store(entry, bytes, at);
  }
  const std::string_view sealed(*bytes);
  const uint32_t index = Crc32c(sealed.substr(end.index, end_at - end.index));
  end.checksum = Crc32c(sealed.substr(end_at, offsetof(BinaryEnd, checksum)), index);
  Store(end, bytes, end_at);
}

}  // namespace heddle::fuzz
