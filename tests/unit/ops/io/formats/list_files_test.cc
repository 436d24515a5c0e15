// SPDX-License-Identifier: Apache-2.0
// Which files are the elements of a list.
#include "ops/io/formats/list_files.h"

#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class ListFilesTest : public FormatsTest {
 protected:
  std::string Listed() {
    const Result<std::vector<ListedElement>> elements = ListElements("l", *files_);
    return elements.ok() ? ToText(*elements) : elements.status().ToString();
  }
};

TEST_F(ListFilesTest, ElementsAreCountedAndTyped) {
  std::filesystem::create_directories(directory_ + "/l/2_c");
  Put("l/0_a", "1 1 1.0\n");
  Put("l/1_two words", "x\n");
  Put("l/1_two words.mtd", "{\"data_type\": \"scalar\", \"value_type\": \"string\"}");
  Put("l/2_c.mtd", "{\"data_type\": \"list\", \"value_type\": \"unknown\", \"rows\": 0}");
  Put("l/10_null", "7\n");
  Put("l/_SUCCESS", "");
  Put("l.mtd", "{\"data_type\": \"list\", \"rows\": 3}");
  EXPECT_EQ(Listed(), "matrix double 0_a\nscalar string 1_two words\nlist double 2_c\n");
  EXPECT_EQ(ToText(ParseListed(Listed())), Listed());
  Put("l.mtd", "{\"data_type\": \"list\", \"rows\": 4}");
  EXPECT_EQ(Listed(), "cannot read 'l': element 4 of the list is missing");
  Put("l/1_other", "1 1 1.0\n");
  EXPECT_EQ(Listed(),
            "cannot read 'l': it has two elements 2\nremove the folder before a list is written into it");
  Put("l.mtd", "{\"data_type\": \"frame\"}");
  EXPECT_EQ(Listed(), "read: data_type=list contradicts 'l.mtd', which says frame");
}

TEST_F(ListFilesTest, ThereAreListsWithoutElements) {
  EXPECT_EQ(Listed(), "cannot read 'l': no such folder");
  ASSERT_TRUE(FinishList("", "l", *files_).ok());
  EXPECT_EQ(Listed(), "");
  EXPECT_EQ(
      Get("l.mtd"),
      "{\n    \"data_type\": \"list\",\n    \"value_type\": \"unknown\",\n    \"rows\": 0,\n    \"cols\": 1,\n"
      "    \"format\": \"text\"\n}\n");
}

TEST_F(ListFilesTest, OnlyElementsOfAnOlderListAreRemoved) {
  std::filesystem::create_directories(directory_ + "/l");
  for (const char* name : {"0_a", "0_a.mtd", "0_b", "1_null", "1_null.mtd", "notes", "_SUCCESS"})
    Put(std::string("l/") + name, "");
  ASSERT_TRUE(FinishList("matrix double 0_b\n", "l", *files_).ok());
  EXPECT_EQ(*files_->List("l"), (std::vector<std::string>{"0_b", "_SUCCESS", "notes"}));
}

TEST_F(ListFilesTest, NamesAreThoseOfTheList) {
  EXPECT_EQ(FileOfElement(3, "a_b"), "3_a_b");
  EXPECT_EQ(NameOfElement("3_a_b"), "a_b");
  EXPECT_EQ(FileOfElement(0, ""), "0_null");
  EXPECT_EQ(NameOfElement("0_null"), "");
}

TEST_F(ListFilesTest, AListIsReadAsOne) {
  Put("l.mtd", "{\"data_type\": \"list\", \"rows\": 0}");
  EXPECT_EQ(Fault("l"), "cannot read 'l': it is a list\nsay data_type=\"list\"");
}

}  // namespace
}  // namespace heddle::ops
