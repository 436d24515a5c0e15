// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <set>

#include "ops/io/files/replacement.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

TEST_F(FormatsTest, CsvPlain) {
  Put("a.csv", "1,2.5,-3e2\n4,5,6\n");
  ExpectCells(Read("a.csv"), 2, 3, {1, 2.5, -300, 4, 5, 6});
}

TEST_F(FormatsTest, CsvBlanksCarriageReturnsEmptyFieldsAndNoLastNewline) {
  Put("a.csv", " 1 ,\t2\r\n,NaN\r\nInfinity, -Infinity ");
  ExpectCells(Read("a.csv"), 3, 2, {1, 2, 0, kNaN, kInf, -kInf});
  ExpectCells(Read("a.csv", {{"default", 7}}), 3, 2, {1, 2, 7, kNaN, kInf, -kInf});
  EXPECT_FALSE(Read("a.csv", {{"format", "csv"}, {"fill", false}}).ok());
}

TEST_F(FormatsTest, CsvHeaderIsFoundOrGiven) {
  Put("a.csv", "x,y\n1,2\n");
  ExpectCells(Read("a.csv"), 1, 2, {1, 2});
  ExpectCells(Read("a.csv", {{"format", "csv"}, {"header", true}}), 1, 2, {1, 2});
  EXPECT_FALSE(Read("a.csv", {{"format", "csv"}}).ok());
}

TEST_F(FormatsTest, SeparatorsAreFoundOrGiven) {
  Put("tabs.tsv", "1\t2\n3\t4\n");
  ExpectCells(Read("tabs.tsv"), 2, 2, {1, 2, 3, 4});
  Put("semicolons.csv", "1;2\n3;4\n");
  ExpectCells(Read("semicolons.csv"), 2, 2, {1, 2, 3, 4});
  Put("words.csv", "1||2\n3||4\n");
  ExpectCells(Read("words.csv", {{"format", "csv"}, {"sep", "||"}}), 2, 2, {1, 2, 3, 4});
}

TEST_F(FormatsTest, CsvMissingTexts) {
  Put("a.csv", "1,NA\n-,2\n");
  ExpectCells(Read("a.csv", {{"naStrings", "NA\u00b7-"}}), 2, 2, {1, kNaN, kNaN, 2});
}

TEST_F(FormatsTest, RaggedCsvNamesTheLine) {
  Put("a.csv", "1,2\n3,4\n5\n6,7\n8\n");
  const Result<Matrix> matrix = Read("a.csv");
  ASSERT_FALSE(matrix.ok());
  EXPECT_EQ(matrix.status().message(), "cannot read 'a.csv': line 3 has 1 field, the lines before have 2");
  EXPECT_EQ(ExitCode(matrix.status()), 4);
}

TEST_F(FormatsTest, WordsInCsvNameTheField) {
  Put("a.csv", "1,2\n3,abc\n");
  EXPECT_EQ(Read("a.csv").status().message(), "cannot read 'a.csv': line 2, field 2: 'abc' is not a number");
}

TEST_F(FormatsTest, EmptyAndMissingFiles) {
  Put("empty.csv", "");
  EXPECT_EQ(Read("empty.csv").status().message(), "cannot read 'empty.csv': it holds no data");
  EXPECT_EQ(Read("missing.csv").status().code(), StatusCode::kNotFound);
}

TEST_F(FormatsTest, MatricesWithoutCellsComeBackFromWhatHoldsThem) {
  for (const Shape shape : {Shape{0, 3}, Shape{3, 0}, Shape{0, 0}}) {
    const Matrix none = *Matrix::Dense(shape.rows, shape.columns);
    for (const FileFormat format : {FileFormat::kText, FileFormat::kMatrixMarket, FileFormat::kBinary}) {
      WriteOptions options;
      options.format = format;
      ASSERT_TRUE(Write(none, "none", options).ok());
      ExpectCells(Read("none"), shape.rows, shape.columns, {});
      std::filesystem::remove(directory_ + "/none.mtd");
    }
    WriteOptions options;
    options.format = FileFormat::kCsv;
    EXPECT_EQ(ExitCode(Write(none, "none.csv", options)), 1);
  }
}

TEST_F(FormatsTest, LargeCsvAcrossManyChunks) {
  std::string text;
  std::vector<double> cells;
  for (int i = 0; i < 200'000; ++i) {
    text += std::to_string(i) + "," + std::to_string(i % 7) + ".25\n";
    cells.push_back(i);
    cells.push_back(i % 7 + 0.25);
  }
  Put("a.csv", text);
  ExpectCells(Read("a.csv"), 200'000, 2, cells);
}

TEST_F(FormatsTest, GzipIsUndoneWhateverTheName) {
  const gzFile file = gzopen((directory_ + "/a.csv").c_str(), "wb");
  gzputs(file, "1,2\n3,4\n");
  gzclose(file);
  ExpectCells(Read("a.csv"), 2, 2, {1, 2, 3, 4});
  std::string damaged = Get("a.csv");
  Put("b.csv", damaged.substr(0, damaged.size() / 2));
  EXPECT_EQ(Read("b.csv").status().code(), StatusCode::kDataLoss);
}

TEST_F(FormatsTest, LibsvmPutsTheLabelLast) {
  Put("a.libsvm", "1 1:0.5 3:2\n0\n-1 2:4 \n");
  ExpectCells(Read("a.libsvm"), 3, 4, {0.5, 0, 2, 1, 0, 0, 0, 0, 0, 4, 0, -1});
  Put("commas", "1,1:0.5,3:2\n");
  ExpectCells(Read("commas"), 1, 4, {0.5, 0, 2, 1});
  Put("unordered.libsvm", "1 3:2 1:0.5\n");
  ExpectCells(Read("unordered.libsvm"), 1, 4, {0.5, 0, 2, 1});
  Put("twice.libsvm", "1 1:2 1:0.5\n");
  EXPECT_EQ(Read("twice.libsvm").status().message(),
            "cannot read 'twice.libsvm': line 1: index 1 is given twice");
  Put("bad.libsvm", "1 1:2\n1 x:3\n");
  EXPECT_EQ(Read("bad.libsvm", {{"format", "libsvm"}}).status().message(),
            "cannot read 'bad.libsvm': line 2: 'x:3' is not index:value");
}

TEST_F(FormatsTest, SparseDataBecomesCsr) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "1 " + std::to_string(i % 20 + 1) + ":1\n";
  Put("a.libsvm", text);
  const Result<Matrix> matrix = Read("a.libsvm");
  ASSERT_TRUE(matrix.ok());
  EXPECT_TRUE(matrix->IsSparse());
  EXPECT_EQ(matrix->stored(), 100);
}

TEST_F(FormatsTest, MatrixMarketKinds) {
  Put("a.mtx", "%%MatrixMarket matrix coordinate real general\n% a comment\n3 2 3\n1 1 1.5\n3 2 -2\n2 1 4\n");
  ExpectCells(Read("a.mtx"), 3, 2, {1.5, 0, 4, 0, 0, -2});
  Put("b.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 1\n");
  ExpectCells(Read("b.mtx"), 3, 3, {1, 0, 1, 0, 0, 0, 1, 0, 0});
  Put("c.mtx", "%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n");
  ExpectCells(Read("c.mtx"), 2, 2, {1, 3, 2, 4});
  Put("d.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n");
  EXPECT_EQ(Read("d.mtx").status().message(), "cannot read 'd.mtx': its header says 2 entries, it has 1");
  Put("e.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n");
  EXPECT_EQ(Read("e.mtx").status().message(),
            "cannot read 'e.mtx': line 3: cell (3, 1) is outside of the 2x2 matrix");
}

TEST_F(FormatsTest, MatrixMarketArraysOfSymmetricMatricesAreTriangles) {
  Put("a.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n");
  ExpectCells(Read("a.mtx"), 2, 2, {1, 2, 2, 3});
  Put("b.mtx", "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n");
  ExpectCells(Read("b.mtx"), 3, 3, {0, -1, -2, 1, 0, -3, 2, 3, 0});
  Put("c.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n");
  EXPECT_EQ(Read("c.mtx").status().message(), "cannot read 'c.mtx': its header says 3 entries, it has 2");
  // Mirrored, its cell would lie outside.
  Put("d.mtx", "%%MatrixMarket matrix coordinate real symmetric\n5 3 1\n5 1 1\n");
  EXPECT_EQ(Read("d.mtx").status().message(),
            "cannot read 'd.mtx': a symmetric matrix is square, the file says 5x3");
}

TEST_F(FormatsTest, SmallFilesOfHugeMatricesAreRefusedNotFatal) {
  Put("a.mtx", "%%MatrixMarket matrix array real general\n4294967296 4294967296\n1\n");
  EXPECT_EQ(Read("a.mtx").status().code(), StatusCode::kDataLoss);
  Put("b.mtx", "%%MatrixMarket matrix coordinate real general\n9000000000000000000 5 1\n1 1 1\n");
  EXPECT_EQ(Read("b.mtx").status().code(), StatusCode::kDataLoss);
  Put("e.mtx", "%%MatrixMarket matrix coordinate real general\n9000000000000000 5 1\n1 1 1\n");
  EXPECT_EQ(Read("e.mtx").status().code(), StatusCode::kResourceExhausted);
  Put("c.ijv", "900000000000000 1 1\n");
  EXPECT_EQ(Read("c.ijv").status().code(), StatusCode::kResourceExhausted);
  Put("d.ijv", "9000000000000000000 1 1\n");
  EXPECT_EQ(Read("d.ijv").status().code(), StatusCode::kDataLoss);
}

TEST_F(FormatsTest, CancelledReadsAndWritesLeaveNothing) {
  const std::atomic<bool> cancelled = true;
  for (const char* name : {"a.csv", "a.libsvm"}) {
    Put(name, std::string(name) == "a.csv" ? "1,2\n" : "1 1:2\n");
    Result<ReadOptions> options = ResolveReadOptions(Node(), name, *files_);
    ASSERT_TRUE(options.ok());
    const Result<FileSummary> summary = Summarize(*options, *files_);
    ASSERT_TRUE(summary.ok());
    options->cancelled = &cancelled;
    EXPECT_EQ(ReadRows(*options, *summary, 0, 1, *files_).status().code(), StatusCode::kCancelled) << name;
  }
  EXPECT_EQ(Write(Make(1, 1, {1}), "b.csv", {.format = FileFormat::kCsv, .cancelled = &cancelled}).code(),
            StatusCode::kCancelled);
  EXPECT_FALSE(files_->Exists("b.csv"));
}

TEST_F(FormatsTest, TextCells) {
  Put("a.ijv", "1 1 1.5\n3 2 -2\n");
  ExpectCells(Read("a.ijv"), 3, 2, {1.5, 0, 0, 0, 0, -2});
  ExpectCells(Read("a.ijv", {{"rows", 4}, {"cols", 3}, {"format", "text"}}), 4, 3,
              {1.5, 0, 0, 0, 0, 0, 0, -2, 0, 0, 0, 0});
}

TEST_F(FormatsTest, WhatIsWrittenReadsBackByItsMetadata) {
  const Matrix matrix = Make(3, 3, {1, 0, -2.5, 0, 0, 1e300, kNaN, 4, 1});
  for (FileFormat format :
       {FileFormat::kCsv, FileFormat::kText, FileFormat::kMatrixMarket, FileFormat::kLibsvm}) {
    SCOPED_TRACE(std::string(Name(format)));
    WriteOptions options;
    options.format = format;
    ASSERT_TRUE(Write(matrix, "out", options).ok());
    const Result<Matrix> back = Read("out");
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_TRUE(Matrix::SameCells(*back, matrix));
    const Result<Matrix> sparse = ToSparse(matrix);
    const std::string dense_bytes = Get("out");
    ASSERT_TRUE(Write(*sparse, "out", options).ok());
    EXPECT_EQ(Get("out"), dense_bytes);
  }
}

TEST_F(FormatsTest, CsvBytes) {
  WriteOptions options;
  options.format = FileFormat::kCsv;
  ASSERT_TRUE(Write(Make(2, 3, {1, 0, 1e7, 0, 0.001, 0}), "out.csv", options).ok());
  EXPECT_EQ(Get("out.csv"), "1.0,0,1.0E7\n0,0.001,0\n");
  EXPECT_EQ(
      Get("out.csv.mtd"),
      "{\n    \"data_type\": \"matrix\",\n    \"value_type\": \"double\",\n    \"rows\": 2,\n    \"cols\": 3,\n    \"nnz\": 3,\n"
      "    \"format\": \"csv\",\n    \"header\": false,\n    \"sep\": \",\"\n}\n");
  options.header = true;
  options.sparse = true;
  ASSERT_TRUE(Write(Make(1, 3, {0, 5, 0}), "out.csv", options).ok());
  EXPECT_EQ(Get("out.csv"), "C1,C2,C3\n,5.0,\n");
  ExpectCells(Read("out.csv"), 1, 3, {0, 5, 0});
}

TEST_F(FormatsTest, AllZeroTextMatrixIsOneLine) {
  ASSERT_TRUE(Write(Make(2, 2, {0, 0, 0, 0}), "zero", {}).ok());
  EXPECT_EQ(Get("zero"), "0 0 0\n");
  ExpectCells(Read("zero"), 2, 2, {0, 0, 0, 0});
}

TEST_F(FormatsTest, MetadataContradictionsAndUnknownFieldsAreErrors) {
  Put("a.csv", "1,2\n");
  Put("a.csv.mtd", "{\"format\": \"csv\", \"rows\": 1, \"cols\": 2}");
  ExpectCells(Read("a.csv"), 1, 2, {1, 2});
  EXPECT_EQ(Read("a.csv", {{"rows", 3}}).status().message(),
            "read: rows=3 contradicts 'a.csv.mtd', which says 1");
  Put("a.csv.mtd", "{\"format\": \"csv\", \"rows\": 5}");
  EXPECT_EQ(Read("a.csv").status().message(), "cannot read 'a.csv': rows=5 was asked for, the file has 1");
  Put("a.csv.mtd", "{\"formatt\": \"csv\"}");
  EXPECT_EQ(Read("a.csv").status().message(),
            "cannot read 'a.csv.mtd': 'formatt' is not a name of DML metadata");
  Put("a.csv.mtd", "{\"format\": ");
  EXPECT_EQ(Read("a.csv").status().code(), StatusCode::kDataLoss);
}

TEST_F(FormatsTest, MetadataBesideAPartIsNoPart) {
  for (const char* part : {"p/one", "p/two"})
    ASSERT_TRUE(Write(*FilledMatrix(2, 2, 1.5), part, {.format = FileFormat::kCsv}).ok());
  const Result<std::unique_ptr<InputFile>> whole = files_->Open("p");
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  CountedBytes buffer;
  EXPECT_EQ(*(*whole)->Read(0, (*whole)->size(), &buffer), "1.5,1.5\n1.5,1.5\n1.5,1.5\n1.5,1.5\n");
}

TEST_F(FormatsTest, PartFilesOfADirectoryAreOneFile) {
  std::filesystem::create_directory(directory_ + "/parts");
  Put("parts/b", "3,4\n");
  Put("parts/a", "1,2");
  Put("parts/_SUCCESS", "");
  ExpectCells(Read("parts", {{"format", "csv"}}), 2, 2, {1, 2, 3, 4});
}

TEST_F(FormatsTest, ReplaceKeepsTheOldFileWhenItCannotWrite) {
  Put("out.csv", "old");
  std::filesystem::create_directory(directory_ + "/taken");
  EXPECT_FALSE(files_->Replace("taken", "x").ok());
  EXPECT_FALSE(files_->Replace("out.csv/below", "x").ok());
  EXPECT_EQ(Get("out.csv"), "old");
  // What fails in the middle of the bytes leaves the old file, too.
  const Status status = files_->Replace("out.csv", [](const ByteSink& sink) {
    HEDDLE_RETURN_IF_ERROR(sink("new"));
    return Cancelled("cancelled");
  });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(Get("out.csv"), "old");
  EXPECT_TRUE(files_->Replace("new/folder/out.csv", "x").ok());
  EXPECT_EQ(Get("new/folder/out.csv"), "x");
  // No temporary is left anywhere.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_))
    EXPECT_EQ(entry.path().string().find(".heddle"), std::string::npos) << entry.path();
}

// What a writer has left who was killed between giving a new file a name and renaming it: free of his lock.
TEST_F(FormatsTest, WhatKilledWritersHaveLeftGoesWithTheNextWrite) {
  std::filesystem::create_directory(directory_ + "/results");
  Put("results/.0123456789abcdef.part.heddle", "half");
  Put("results/.fedcba9876543210.part.heddle", "of one at work");
  Put("results/.0123456789abcdeg.part.heddle", "of somebody else");
  std::filesystem::create_directory(directory_ + "/results/.00000000000000aa.part.heddle");
  Put("results/.00000000000000aa.part.heddle/part-00000.csv", "half of a folder");
  // Of a file system whose locks one kernel does not keep only old ones go.
  for (const char* name :
       {".0123456789abcdef", ".fedcba9876543210", ".0123456789abcdeg", ".00000000000000aa"}) {
    const std::filesystem::path path = directory_ + "/results/" + name + ".part.heddle";
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::hours(25));
  }
  const int at_work = open((directory_ + "/results/.fedcba9876543210.part.heddle").c_str(), O_WRONLY);
  ASSERT_EQ(flock(at_work, LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(files_->Replace("results/out.csv", "1").ok());
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/results"))
    names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{".0123456789abcdeg.part.heddle", ".fedcba9876543210.part.heddle",
                                          "out.csv"}));
  close(at_work);
}

// Who was killed a moment ago, with others that die one after the other, may still hold a lock at the first
// write into the folder: it goes with the next one, or when these files end.
TEST_F(FormatsTest, WhatAKilledWriterStillHoldsGoesAsSoonAsNobodyHoldsIt) {
  for (const bool writes_again : {true, false}) {
    SCOPED_TRACE(writes_again);
    const std::string folder = directory_ + (writes_again ? "/again" : "/once");
    std::filesystem::create_directory(folder);
    const std::string left = folder + "/.fedcba9876543210.part.heddle";
    std::ofstream(left) << "half";
    std::filesystem::last_write_time(left, std::filesystem::last_write_time(left) - std::chrono::hours(25));
    const int killed = open(left.c_str(), O_WRONLY);
    ASSERT_EQ(flock(killed, LOCK_EX | LOCK_NB), 0);
    std::unique_ptr<Files> files = MakeFiles(folder);
    EXPECT_TRUE(files->Replace("first.csv", "1").ok());
    EXPECT_TRUE(std::filesystem::exists(left));
    close(killed);
    if (writes_again)
      EXPECT_TRUE(files->Replace("second.csv", "2").ok());
    else
      files.reset();
    EXPECT_FALSE(std::filesystem::exists(left));
  }
}

// A file that remembers the largest piece it was given, and can refuse pieces.
class PiecesOfFile : public Files {
 public:
  Result<std::unique_ptr<InputFile>> Open(const std::string& path) override { return NotFound("{}", path); }
  bool Exists(const std::string&) override { return false; }
  bool IsDirectory(const std::string&) override { return false; }
  Result<std::vector<std::string>> List(const std::string& path) override { return NotFound("{}", path); }
  Result<std::string> Fingerprint(const std::string& path) override { return NotFound("{}", path); }
  Result<std::unique_ptr<NewFile>> Begin(const std::string& path) override { return NotFound("{}", path); }
  Status Replace(const std::string&, const ByteSource& source) override {
    return source([this](std::string_view bytes) {
      largest = std::max(largest, bytes.size());
      total += bytes.size();
      return total > refused_after ? ResourceExhausted("the disk is full") : OkStatus();
    });
  }
  Status Remove(const std::string&) override { return OkStatus(); }

  size_t largest = 0;
  size_t total = 0;
  size_t refused_after = std::numeric_limits<size_t>::max();
};

// Text as the formats say it, cell by cell.
std::string PlainText(const Matrix& x, const WriteOptions& options) {
  std::string text;
  if (options.format == FileFormat::kCsv && options.header) {
    for (int64_t j = 1; j <= x.columns(); ++j) text += (j > 1 ? ",C" : "C") + std::to_string(j);
    text += "\n";
  }
  if (options.format == FileFormat::kMatrixMarket)
    text += fmt::format("%%MatrixMarket matrix coordinate real general\n{} {} {}\n", x.rows(), x.columns(),
                        x.CountNonzeros());
  for (int64_t i = 0; i < x.rows(); ++i) {
    if (options.format == FileFormat::kLibsvm) text += Scalar(x.At(i, x.columns() - 1)).ToText();
    for (int64_t j = 0; j < x.columns(); ++j) {
      const std::string cell = Scalar(x.At(i, j)).ToText();
      const bool zero = x.At(i, j) == 0;
      if (options.format == FileFormat::kCsv)
        text += (j > 0 ? "," : "") + (!zero ? cell : options.sparse && x.columns() > 1 ? "" : "0");
      else if (options.format == FileFormat::kLibsvm)
        text += zero || j == x.columns() - 1 ? "" : fmt::format(",{}:{}", j + 1, cell);
      else
        text += zero ? "" : fmt::format("{} {} {}\n", i + 1, j + 1, cell);
    }
    if (options.format == FileFormat::kCsv || options.format == FileFormat::kLibsvm) text += "\n";
  }
  return text;
}

// Rows that are longer than a piece, many short ones, and rows without entries: cuts may fall anywhere.
TEST_F(FormatsTest, TextInPiecesIsTheTextInOne) {
  for (const Shape shape : {Shape{3, 50'000}, Shape{50'000, 3}, Shape{40'000, 1}, Shape{1, 16'384}}) {
    Matrix dense = *FilledMatrix(shape.rows, shape.columns, 0);
    for (int64_t k = 0; k < dense.cells(); ++k)
      if (k % 3 != 0 && k % 70'000 < 60'000) dense.mutable_data()[k] = static_cast<double>(k) / 4 + 0.25;
    for (const Matrix& x : {dense, *ToSparse(dense)}) {
      for (const FileFormat format :
           {FileFormat::kCsv, FileFormat::kText, FileFormat::kMatrixMarket, FileFormat::kLibsvm}) {
        for (const bool sparse : {false, true}) {
          const WriteOptions options = {.format = format, .header = sparse, .sparse = sparse};
          ASSERT_TRUE(Write(x, "x", options).ok());
          EXPECT_TRUE(Get("x") == PlainText(dense, options))
              << fmt::format("{} ", shape) << Name(format) << (x.IsSparse() ? " from CSR" : "") << sparse;
        }
      }
    }
  }
}

TEST_F(FormatsTest, PiecesOfTextAreSmallWhateverTheShape) {
  for (const Shape shape : {Shape{1, 2'000'000}, Shape{2'000'000, 1}, Shape{2'000, 1'000}}) {
    const Matrix ones = *FilledMatrix(shape.rows, shape.columns, 1.5);
    for (const FileFormat format : {FileFormat::kCsv, FileFormat::kText, FileFormat::kLibsvm}) {
      PiecesOfFile files;
      ASSERT_TRUE(WriteValue(ones, "x", {.format = format, .header = true}, files).ok());
      EXPECT_GT(files.total, size_t{6'000'000}) << fmt::format("{}", shape);
      EXPECT_LT(files.largest, size_t{1} << 20) << fmt::format("{} ", shape) << Name(format);
    }
  }
}

TEST_F(FormatsTest, WritingStopsAtTheFirstError) {
  PiecesOfFile files;
  files.refused_after = 100'000;
  const Status status = WriteValue(*FilledMatrix(1000, 1000, 1.5), "x", {.format = FileFormat::kCsv}, files);
  EXPECT_EQ(status.message(), "the disk is full");
  EXPECT_LT(files.total, size_t{1} << 20);
}

TEST_F(FormatsTest, Scalars) {
  WriteOptions options;
  ASSERT_TRUE(WriteValue(Scalar(2.5), "s", options, *files_).ok());
  EXPECT_EQ(Get("s"), "2.5\n");
  Node node;
  const Result<ReadOptions> read = ResolveReadOptions(node, "s", *files_);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->data_type, DataType::kScalar);
  EXPECT_EQ(*ReadScalar(*read, *files_), Scalar(2.5));
}

}  // namespace
}  // namespace heddle::ops
