// SPDX-License-Identifier: Apache-2.0
// What `heddle inspect` advises: the call of read() works when it is run and gives what inspect tells of the
// file, for every kind of file; where there is none, inspect says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/support/process.h"

namespace heddle::testing_support {
namespace {

namespace fs = std::filesystem;

struct Kind {
  std::string name;
  std::string text;
  std::vector<std::string> options;  // of inspect
};

// What inspect says of a file.
struct Advice {
  int code = 0;
  std::string output;
  std::string shape;  // "matrix of 2 rows and 3 columns"
  std::string call, reason;
};

class InspectAdviceTest : public testing::Test {
 protected:
  Finished Heddle(std::vector<std::string> words) const {
    words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
    return RunProcess(words, folder_.path());
  }

  Advice Inspect(const std::string& path, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words = {"inspect", "--rows", "0"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(path);
    const Finished inspected = Heddle(words);
    Advice advice{.code = inspected.code, .output = inspected.output + inspected.errors};
    std::istringstream lines(inspected.output);
    constexpr std::string_view kCall = "read it: ", kReason = "no call of read() gives it: ";
    for (std::string line; std::getline(lines, line);) {
      const bool is_shape = line.starts_with("matrix of ") || line.starts_with("frame of ");
      if (is_shape && advice.shape.empty()) advice.shape = line.substr(0, line.find(','));
      if (line.starts_with(kCall)) advice.call = line.substr(kCall.size());
      if (line.starts_with(kReason)) advice.reason = line.substr(kReason.size());
    }
    return advice;
  }

  void ExpectWorks(const std::string& path, const std::vector<std::string>& options = {}) const {
    SCOPED_TRACE(path);
    const Advice advice = Inspect(path, options);
    ASSERT_EQ(advice.code, 0) << advice.output;
    ASSERT_NE(advice.call, "") << advice.output;
    RunCall(advice);
  }

  void RunCall(const Advice& advice) const {
    const std::string what = advice.shape.substr(0, advice.shape.find(' '));
    WriteText(folder_.path() + "/read.dml",
              "X = " + advice.call + "\nprint(\"" + what +
                  " of \" + nrow(X) + \" row\" + ifelse(nrow(X) == 1, \"\", \"s\") + \" and \" + "
                  "ncol(X) + \" column\" + ifelse(ncol(X) == 1, \"\", \"s\"))\ntext = toString(X)\n");
    const Finished run = Heddle({"run", "read.dml"});
    EXPECT_EQ(run.code, 0) << advice.call << "\n" << run.errors;
    EXPECT_EQ(run.output, advice.shape + "\n") << advice.call;
  }

  void ExpectReason(const Kind& kind, const std::string& reason) const {
    SCOPED_TRACE(kind.name);
    Put(kind);
    const Advice advice = Inspect(kind.name, kind.options);
    EXPECT_EQ(advice.code, 0) << advice.output;
    EXPECT_EQ(advice.call, "");
    EXPECT_EQ(advice.reason, reason);
  }

  void Put(const Kind& kind) const { WriteText(folder_.path() + "/" + kind.name, kind.text); }

  TemporaryFolder folder_;
};

TEST_F(InspectAdviceTest, WorksForTables) {
  std::string wide = "a", wide_row = "x";
  for (int i = 0; i < 1200; ++i) {
    wide += ",c" + std::to_string(i);
    wide_row += ",1";
  }
  const Kind kinds[] = {
      {"numbers.csv", "1,2\n3,4\n"},
      {"names.csv", "a,b\n1,2\n"},
      {"all_quoted.csv", "\"a\",\"b\"\n\"1\",\"2\"\n\"3\",\"4\"\n"},
      {"all_quoted_texts.csv", "\"a\",\"b\"\n\"1\",\"x\"\n\"3\",\"y\"\n"},
      {"quoted_numbers.csv", "\"1\",\"2\"\n\"3\",\"4\"\n"},
      {"quoted_names.csv", "\"2019\",\"2020\"\n1,2\n3,4\n"},
      {"some_quoted.csv", "a,b\n\"1\",2\n\"x\",3\n"},
      {"separator_in_quotes.csv", "a,b\n\"1,5\",2\n"},
      {"line_end_in_quotes.csv", "a,b\n\"x\ny\",1\n\"z\",2\n"},
      {"line_end_in_name.csv", "\"a\nc\",b\n1,2\n3,4\n"},
      {"write_csv_of_r.csv", "\"\",\"x\",\"y\"\n\"1\",1,2\n\"2\",3,4\n"},
      {"comment_is_names.csv", "# x, y\n1,2\n3,4\n"},
      {"blank_end.csv", "a,b\n1,x\n\n\n"},
      {"blanks_of_one_column.csv", "a\n\nx\n\n5\n\n"},
      {"names_and_numbers_alone.csv", "1.5,Anna\n"},
      {"semicolons.csv", "a;b\n1;x\n"},
      {"decimal_commas.csv", "a;b\n1,5;2,5\n"},
      {"tabs.tsv", "a\tb\n1\tx\n"},
      {"empty_fields.tsv", "1\t2\n\t\n"},
      {"blanks.txt", "  1   2\n 3  4.5\n"},
      {"names_and_blanks.txt", "a   b\n1   2\n"},
      {"one_blank.txt", "x 2\ny 4\n", {"--header", "FALSE"}},
      {"cells.csv", "1 1 2\n2 2 3\n3 3 4\n"},
      {"cells_with_tabs.txt", "1\t1\t2\n2\t2\t3\n"},
      {"a_cell_twice.txt", "1 1 2\n1 1 3\n"},
      {"name_and_number.csv", "name,2020\nAnna,1\n"},
      {"missing.csv", "1,2\nNA,4\n"},
      {"empty_cells.csv", "a,b\n,x\n1,\n"},
      {"no_numbers.csv", "nan,2\ninf,4\n"},
      {"dates.csv", "day,v\n2020-01-01,1\n"},
      {"zeros.csv", "zip,v\n01234,x\n00001,y\n"},
      {"truth.csv", "a,b\nTRUE,1\nFALSE,2\n"},
      {"dummies.csv", "True,1\nFalse,2\n"},
      {"large.csv", "a,b\n9007199254740993,x\n"},
      {"beyond_integers.csv", "a,b\n99999999999999999999,x\n"},
      {"fractions.csv", "a,b\n1e5,x\n2.5,y\n"},
      {"twice.csv", "a,a\n1,x\n"},
      {"latin.csv", "a,b\ncaf\xe9,1\n"},
      {"mark.csv",
       "\xef\xbb\xbf"
       "a,b\n1,x\n"},
      {"windows.csv", "a,b\r\n1,2\r\nx,3\r\n"},
      {"mixed_ends.csv", "1,2\r\n3,4\n5,6\r\n"},
      {"separator_at_end.csv", "a,b,\n1,2,\n"},
      {"wide.csv", wide + "\n" + wide_row + "\n"},
      {"pipes.csv", "a|b\n1|x\n", {"--sep", "|"}},
      {"one_column.csv", "a;b\n1;x\n", {"--sep", ","}},
      {"said_names.csv", "1,2\n3,4\n", {"--header", "TRUE"}},
      {"said_no_names.csv", "\"a\",\"b\"\n\"1\",\"2\"\n", {"--header", "FALSE"}},
      {"said_table.txt", "1 1 2\n2 2 3\n", {"--sep", " "}},
      {"said_csv.txt", "1 1 2\n2 2 3\n", {"--format", "csv"}},
      {"quote\".csv", "1,2\n"},
      {"line\nend.csv", "1,2\n"},
      {"tab\t.csv", "1,2\n"},
      {"two\\\\slashes.csv", "1,2\n"},
      {"$1 \xc3\xbc.csv", "1,2\n"},
  };
  for (const Kind& kind : kinds) {
    Put(kind);
    ExpectWorks(kind.name, kind.options);
  }
}

TEST_F(InspectAdviceTest, WorksForOtherText) {
  const Kind kinds[] = {
      {"cells.txt", "1 1 2\n2 2 3\n3 3 4\n"},
      {"cells.ijv", "1 1 2\n3 3 4\n"},
      {"said_cells.csv", "1 1 2\n2 2 3\n", {"--format", "text"}},
      {"frame.txt", "1 1 x\n1 2 5\n2 1 \"a b\n\"\n2 2 6\n"},
      {"pairs.txt", "1 1:2 3:4\n-1 2:1\n"},
      {"no_pair_first.txt", "1\n-1 2:1\n"},
      {"comment_first.txt", "# labels\n1 #\n-1 2:1\n"},
      {"from_zero.txt", "1 0:2 3:4\n-1 2:1\n"},
      {"labels.txt", "1\n2\n", {"--format", "libsvm"}},
      {"objects.jsonl", "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":{\"c\":[1]}}\n"},
      {"arrays.jsonl", "[1,2]\n[3,4]\n"},
      {"texts.arff", "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@data\n1,x\n2,y\n"},
      {"numbers.arff", "@relation r\n@attribute a numeric\n@attribute b integer\n@data\n1.5,2\n{1 3}\n"},
      {"coordinates.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 4\n"},
      {"one_variable.txt", "# name: x\n# type: matrix\n# rows: 1\n# columns: 2\n 1 2\n\n"},
      {"variables.txt",
       "# name: x\n# type: matrix\n# rows: 1\n# columns: 2\n 1 2\n\n\n# name: y\n# type: scalar\n3\n"},
      {"said.txt", "# name: x\n# type: scalar\n1\n\n\n# name: y\n# type: scalar\n3\n", {"--dataset", "y"}},
  };
  for (const Kind& kind : kinds) {
    Put(kind);
    ExpectWorks(kind.name, kind.options);
  }
}

TEST_F(InspectAdviceTest, WorksForFolders) {
  for (const Kind& part : {Kind{"names/0.csv", "a,b\n1,x\n"}, Kind{"names/1.csv", "a,b\n3,y\n"},
                           Kind{"numbers/0.csv", "1,2\n"}, Kind{"numbers/1.csv", "3,4\n"}})
    Put(part);
  ExpectWorks("names");
  ExpectWorks("numbers");
}

TEST_F(InspectAdviceTest, WorksForWhatHeddleWrites) {
  WriteText(folder_.path() + "/write.dml", R"(
X = matrix("1 0 0.5 0 0 -3", rows=2, cols=3)
F = cbind(as.frame("a text, with \"quotes\""), as.frame(matrix("7.5 8", rows=1, cols=2)))
F = rbind(F, F)
matrices = list("csv", "text", "mm", "libsvm", "binary", "npy", "npz")
for (i in 1:7) {
  format = as.scalar(matrices[i])
  write(X, "X." + format, format=format)
}
frames = list("csv", "text", "binary", "jsonl", "arff")
for (i in 1:5) {
  format = as.scalar(frames[i])
  write(F, "F." + format, format=format)
}
write(X, "semicolons.csv", format="csv", sep=";")
write(F, "names.csv", format="csv", header=TRUE, sep="||")
write(X, "sparse.npz", format="npz", sparse=TRUE)
write(X, "X.csv.gz", format="csv")
write(F, "F.csv.zst", format="csv")
write(X, "spaces.libsvm", format="libsvm", sep=" ")
)");
  const Finished written = Heddle({"run", "write.dml"});
  ASSERT_EQ(written.code, 0) << written.errors;
  std::vector<std::string> names;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_.path()))
    if (file.path().extension() != ".mtd" && file.path().extension() != ".dml")
      names.push_back(file.path().filename());
  std::sort(names.begin(), names.end());
  ASSERT_EQ(names.size(), 18u);
  for (const std::string& name : names) ExpectWorks(name);
  for (const std::string& name : names) {
    fs::remove(folder_.path() + "/" + name + ".mtd");
    name == "names.csv" ? ExpectWorks(name, {"--sep", "||"}) : ExpectWorks(name);
  }
}

// Those of other programs, which the tests of formats read.
TEST_F(InspectAdviceTest, WorksForEveryFileOfTheTests) {
  const std::set<std::string> refused = {"newer.h5", "sparse_complex.npz", "feather1.feather",
                                         "stream.arrows", "wide.arrow"};
  int tried = 0;
  for (const char* const folder :
       {"/tests/unit/ops/io/formats/data", "/tests/unit/ops/io/formats/data/tables", "/examples/data"})
    for (const fs::directory_entry& file : fs::directory_iterator(std::string(HEDDLE_SOURCE_DIR) + folder)) {
      const std::string name = file.path().filename(), ending = file.path().extension();
      if (name.starts_with("make_data") || ending == ".md" || file.is_directory()) continue;
      SCOPED_TRACE(name);
      const Advice advice = Inspect(file.path());
      // 3: this Heddle was built without the library; 4: read() refuses it, too.
      const bool may_lack_library = ending == ".h5" || ending == ".mat" || ending == ".parquet" ||
                                    ending == ".feather" || ending == ".arrow";
      if (advice.code == 3 && may_lack_library) continue;
      if (advice.code == 4 && refused.contains(name)) continue;
      ASSERT_EQ(advice.code, 0) << advice.output;
      ASSERT_NE(advice.call, "") << advice.output;
      RunCall(advice);
      ++tried;
    }
  EXPECT_GE(tried, 13);
}

TEST_F(InspectAdviceTest, SaysWhyThereIsNone) {
  ExpectReason({"ragged.csv", "1,2,3\n4,5\n6,7,8\n"}, "line 2 has 2 fields, the lines before have 3");
  ExpectReason({"ragged_texts.csv", "a,b\nx,1\ny\n"}, "line 3 has 1 field, the lines before have 2");
  ExpectReason({"blank.csv", "1,2\n\n3,4\n"}, "line 2 is blank");
  ExpectReason({"blank_column.csv", "1\n\n3\n"}, "line 2 is blank");
  ExpectReason({"blank_first.csv", "\n\na;b\n1;2\n"}, "line 1 is blank");
  ExpectReason({"names_of_rows.csv", "\"x\",\"y\"\n\"a\",1,2\n\"b\",3,4\n"},
               "its first line has 2 names, the next one 3 fields");
  ExpectReason({"names_of_rows.txt", "x y\n1 1 2\n2 3 4\n"},
               "it is read as a matrix of 2 rows and 3 columns");
  ExpectReason({"comment.csv", "# made by a program\na,b\n1,2\n"},
               "its first line has 5 names, the next one 1 fields");
  ExpectReason({"names_alone.csv", "a,b\n"}, "it holds no data but a line of names");
  ExpectReason({"one\\backslash.csv", "1,2\n"}, "no string of a script is its path: rename it");
  ExpectReason({"bell\a.csv", "1,2\n"}, "no string of a script is its path: rename it");
  ExpectReason({"backslashes.csv", "a\\b\n1\\2\n", {"--sep", "\\"}},
               "no string of a script is its separator or the name of its array");
  Put({"described.csv.mtd", R"({"data_type": "matrix", "format": "csv", "rows": 3, "cols": 2})"});
  ExpectReason({"described.csv", "1,2\n3,4\n"}, "rows=3 was asked for, the file has 2");
}

}  // namespace
}  // namespace heddle::testing_support
