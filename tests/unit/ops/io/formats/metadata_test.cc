// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using MetadataTest = FormatsTest;

TEST_F(MetadataTest, FieldsWithoutAnEffectHoldAnything) {
  Put("a.csv", "1,2\n3,4\n");
  for (const char* field :
       {"description", "author", "created", "privacy", "schema", "sparse", "rows_in_block"})
    for (const char* value :
         {"{\"author\": {\"name\": [1, null]}}", "[1, \"a\"]", "null", "3", "\"text\"", "true"}) {
      Put("a.csv.mtd", "{\"format\": \"csv\", \"rows\": 2, \"" + std::string(field) + "\": " + value + "}");
      ExpectCells(Read("a.csv"), 2, 2, {1, 2, 3, 4});
    }
}

TEST_F(MetadataTest, FieldsWithAnEffectAreWhatTheyMustBe) {
  Put("a.csv", "1,?\n");
  const auto fault = [&](const std::string& field) {
    Put("a.csv.mtd", "{\"format\": \"csv\", \"naStrings\": [\"NA\", \"?\"], " + field + "}");
    const Result<Matrix> matrix = Read("a.csv");
    return matrix.ok() ? "" : std::string(matrix.status().message());
  };
  EXPECT_EQ(fault("\"rows\": \"1\", \"cols\": 2.0, \"nnz\": null, \"header\": \"FALSE\""), "");
  EXPECT_EQ(fault("\"rows\": {}"), "cannot read 'a.csv.mtd': 'rows' is not a whole number");
  EXPECT_EQ(fault("\"cols\": 1.5"), "cannot read 'a.csv.mtd': 'cols' is not a whole number");
  EXPECT_EQ(fault("\"header\": \"maybe\""), "cannot read 'a.csv.mtd': 'header' is not true or false");
  EXPECT_EQ(fault("\"sep\": []"), "cannot read 'a.csv.mtd': 'sep' is not a plain value");
  EXPECT_EQ(fault("\"default\": \"x\""), "cannot read 'a.csv.mtd': read: default is a number, not 'x'");
}

TEST_F(MetadataTest, WordsNeedNoQuotesAndTheLastCommaDoesNotMatter) {
  Put("a.csv", "1,2\n3,4\n");
  Put("a.csv.mtd", "{\n  format: 'csv',\n  \"header\": true,\n}\n");
  ExpectCells(Read("a.csv"), 1, 2, {3, 4});
}

TEST_F(MetadataTest, AScalarIsTold) {
  const auto types = [](std::string_view metadata) {
    const FileType type = FileTypeInMetadata(metadata);
    return fmt::format("{} {}", Name(type.data_type), Name(type.value_type));
  };
  EXPECT_EQ(types("{\"data_type\": \"scalar\"}"), "scalar double");
  EXPECT_EQ(types("\xEF\xBB\xBF{\"value_type\": \"INT\", \"data_type\": \"Scalar\", \"description\": {}}"),
            "scalar integer");
  EXPECT_EQ(types("{\"data_type\": \"frame\", \"schema\": \"STRING,\"}"), "frame double");
  EXPECT_EQ(types("{\"data_type\": \"matrix\"}"), "matrix double");
  EXPECT_EQ(types("{\"data_type\": "), "matrix double");
  EXPECT_EQ(types(""), "matrix double");
  Put("a", "1");
  Put("a.mtd", "{\"data_type\": \"scalar\"}");
  EXPECT_EQ(Read("a", {{"data_type", "matrix"}}).status().message(),
            "read: data_type=matrix contradicts 'a.mtd', which says scalar");
}

TEST_F(MetadataTest, Scalars) {
  const auto read = [&](const std::string& text, ValueType type) {
    Put("a", text);
    ReadOptions options;
    options.path = "a";
    options.value_type = type;
    return ReadScalar(options, *files_);
  };
  EXPECT_EQ(*read("\xEF\xBB\xBF 2.5 \r\n\n", ValueType::kDouble), Scalar(2.5));
  EXPECT_EQ(*read("9007199254740993\n", ValueType::kInteger), Scalar(int64_t{9007199254740993}));
  EXPECT_EQ(*read("1E3", ValueType::kInteger), Scalar(int64_t{1000}));
  EXPECT_EQ(*read("True\n", ValueType::kBoolean), Scalar(true));
  EXPECT_EQ(*read("two\nlines\r\n", ValueType::kString), Scalar("two\nlines"));
  EXPECT_EQ(read("2.5", ValueType::kInteger).status().message(), "cannot read 'a': '2.5' is not an int");
  EXPECT_EQ(read("1\n2\n", ValueType::kDouble).status().message(),
            "cannot read 'a': a scalar is one value, the file has several lines");
  EXPECT_EQ(read("yes", ValueType::kBoolean).status().message(),
            "cannot read 'a': 'yes' is not TRUE or FALSE");
  EXPECT_EQ(read("", ValueType::kDouble).status().message(), "cannot read 'a': '' is not a number");
}

}  // namespace
}  // namespace heddle::ops
