// SPDX-License-Identifier: Apache-2.0
// Files that are no plain text in UTF-8, no ordinary files, packed, in parts, or cut short while they are
// read.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include "core/memory/block_pool.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using std::string_literals::operator""s;

class InputFilesTest : public FormatsTest {
 protected:
  std::string Packed(const std::string& text) {
    const gzFile file = gzopen((directory_ + "/packed").c_str(), "wb");
    EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    gzclose(file);
    return Get("packed");
  }
};

// As an editor of Windows would save it.
std::string InUtf16(const std::string& text, bool big_endian) {
  std::string bytes;
  for (char c : text) bytes += big_endian ? "\0"s + c : c + "\0"s;
  return bytes;
}

TEST_F(InputFilesTest, ByteOrderMarksAreNoPartOfTheText) {
  const std::string mark = "\xEF\xBB\xBF";
  Put("a.csv", mark + "1,2\r\n3,4\r\n");
  ExpectCells(Read("a.csv"), 2, 2, {1, 2, 3, 4});
  ExpectCells(Read("a.csv", {{"format", "csv"}}), 2, 2, {1, 2, 3, 4});
  Put("names.csv", mark + "a,b\n3,4\n");
  ExpectCells(Read("names.csv"), 1, 2, {3, 4});
  Put("names.csv.mtd", mark + "{\"format\": \"csv\", \"header\": true}");
  ExpectCells(Read("names.csv"), 1, 2, {3, 4});
  Put("a.mtx", mark + "%%MatrixMarket matrix array real general\n1 1\n5\n");
  ExpectCells(Read("a.mtx"), 1, 1, {5});
  Put("a.libsvm", mark + "1 1:2\n");
  ExpectCells(Read("a.libsvm"), 1, 2, {2, 1});
  Put("a.ijv", mark + "1 1 2\n");
  ExpectCells(Read("a.ijv"), 1, 1, {2});
  std::filesystem::create_directory(directory_ + "/parts");
  Put("parts/1", mark + "1,2");
  Put("parts/2", mark);
  Put("parts/3", mark + "3,4\n");
  Put("parts/4", Packed(mark + "5,6\n"));
  ExpectCells(Read("parts", {{"format", "csv"}}), 3, 2, {1, 2, 3, 4, 5, 6});
  Put("only", mark);
  EXPECT_EQ(Fault("only"), "cannot read 'only': it holds no data");
}

TEST_F(InputFilesTest, OtherEncodingsAreNamed) {
  const std::string text = "1,2\n3,4\n";
  const auto expect = [&](const std::string& bytes, const std::string& name, const std::string& code) {
    Put("a", bytes);
    EXPECT_EQ(Fault("a"),
              "cannot read 'a': it is " + name + "\nmake it UTF-8: iconv -f " + code + " -t UTF-8 OLD > NEW");
  };
  expect("\xFF\xFE" + InUtf16(text, false), "UTF-16 text (little endian)", "UTF-16LE");
  expect("\xFE\xFF" + InUtf16(text, true), "UTF-16 text (big endian)", "UTF-16BE");
  expect(InUtf16(text, false), "UTF-16 text (little endian)", "UTF-16LE");
  expect(InUtf16(text, true), "UTF-16 text (big endian)", "UTF-16BE");
  expect(InUtf16("1", false), "UTF-16 text (little endian)", "UTF-16LE");
  expect("\xFF\xFE\0\0"s + "1\0\0\0"s, "UTF-32 text (little endian)", "UTF-32LE");
  expect("\0\0\xFE\xFF"s + "\0\0\0"s + "1", "UTF-32 text (big endian)", "UTF-32BE");
  expect("1\0\0\0\n\0\0\0"s, "UTF-32 text (little endian)", "UTF-32LE");
  expect("\0\0\0001\0\0\0\n"s, "UTF-32 text (big endian)", "UTF-32BE");
  Put("b", "1,2\n3,\0\n"s);
  EXPECT_EQ(Fault("b"),
            "cannot read 'b': it holds zero bytes, so it is no text\n"
            "Heddle reads csv, libsvm, MatrixMarket and text (row column value) files");
  Put("c.csv", "1\n");
  Put("c.csv.mtd", "\xFF\xFE" + InUtf16("{}", false));
  EXPECT_EQ(Fault("c.csv").substr(0, 46), "cannot read 'c.csv.mtd': it is UTF-16 text (li");
}

TEST_F(InputFilesTest, FilesOfOtherProgramsAreNamed) {
  Put("a.csv.bz2", "BZh91AY&SY\x93\xb7\r\x0c\0\0\x02X"s);
  EXPECT_EQ(
      Fault("a.csv.bz2"),
      "cannot read 'a.csv.bz2': it is a file packed by bzip2\nunpack it: bunzip2 FILE; gzip and zstd are read packed");
  Put("x.bin", "Octave-1-L\0\1\0\0\0X\0\0\0\0\0\xff\6\0\0\0matrix"s);
  EXPECT_EQ(Fault("x.bin"),
            "cannot read 'x.bin': it is a binary file of Octave (save -binary)\n"
            "write it as text in Octave: load OLD; save -text NEW VARIABLE");
  Put("old.arrows", "t\0\0\0\x10\0\0\0\0\0\n\0\f\0\6\0\5\0\b\0\n\0\0\0\0\1\4\0"s);
  EXPECT_EQ(Fault("old.arrows").substr(0, 62),
            "cannot read 'old.arrows': it is a stream of Arrow, not a file\n");
  PutData("tables/feather1.feather");
  PutData("tables/stream.arrows");
  using Attributes = std::vector<std::pair<std::string, Scalar>>;
  for (const Attributes& said : {Attributes(), Attributes{{"format", Scalar("arrow")}}}) {
    EXPECT_EQ(Fault("tables/feather1.feather", said),
              "cannot read 'tables/feather1.feather': it is a Feather file of version 1\n"
              "write it as version 2, in Python: "
              "pyarrow.feather.write_feather(pyarrow.feather.read_table(OLD), NEW)");
    EXPECT_EQ(Fault("tables/stream.arrows", said),
              "cannot read 'tables/stream.arrows': it is a stream of Arrow, not a file\n"
              "write it as a file (Feather): "
              "pyarrow.feather.write_feather(pyarrow.ipc.open_stream(OLD).read_all(), NEW), or write_ipc of "
              "Polars");
  }
}

TEST_F(InputFilesTest, CarriageReturnsAloneAreNamed) {
  const std::string fault =
      "cannot read 'a': it is text whose lines end with carriage returns alone\n"
      "make them newlines: tr '\\r' '\\n' < OLD > NEW";
  for (const char* text : {"1,2\r3,4\r", "1,2\r3,4\n", "1 1 2\r2 2 4", "1 1:2\r2 1:3\r"}) {
    Put("a", text);
    EXPECT_EQ(Fault("a"), fault);
  }
  Put("a", "1,2\r\r\n3,4 \r\n");
  ExpectCells(Read("a"), 2, 2, {1, 2, 3, 4});
}

TEST_F(InputFilesTest, WhatIsNoOrdinaryFileIsRefusedAtOnce) {
  const std::string rest =
      ", no ordinary file\nevery worker looks at a file before it reads its rows; copy the data into a file first";
  ASSERT_EQ(mkfifo((directory_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(Fault("pipe"), "cannot read 'pipe': it is a pipe" + rest);
  EXPECT_EQ(Fault("/dev/zero"), "cannot read '/dev/zero': it is a device" + rest);
  EXPECT_EQ(Fault("/dev/null", {{"format", "csv"}}), "cannot read '/dev/null': it is a device" + rest);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string end = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(Fault(end), "cannot read '" + end + "': it is a pipe" + rest);
  close(ends[0]);
  close(ends[1]);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (directory_ + "/socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(Fault("socket"), "cannot read 'socket': it is a socket" + rest);
  close(server);
  Put("a.csv", "1\n");
  ASSERT_EQ(mkfifo((directory_ + "/a.csv.mtd").c_str(), 0600), 0);
  EXPECT_EQ(Fault("a.csv"), "cannot read 'a.csv.mtd': it is a pipe" + rest);
  std::filesystem::create_directory(directory_ + "/parts");
  ASSERT_EQ(mkfifo((directory_ + "/parts/1").c_str(), 0600), 0);
  EXPECT_EQ(Fault("parts"), "cannot read 'parts/1': it is a pipe" + rest);
}

TEST_F(InputFilesTest, GzipWithPaddingAndInMembers) {
  const std::string one = Packed("1,2\n"), two = Packed("3,4\n");
  Put("a", one + two);
  ExpectCells(Read("a"), 2, 2, {1, 2, 3, 4});
  Put("a", one + std::string(3'000'000, '\0'));
  ExpectCells(Read("a"), 1, 2, {1, 2});
  Put("a", one + two + "\0"s);
  ExpectCells(Read("a"), 2, 2, {1, 2, 3, 4});
  const std::string damaged = "cannot read 'a': its gzip data is damaged or cut short";
  for (const std::string& bytes : {one + "\0\0x"s, one + "x", one + two.substr(0, two.size() - 1),
                                   one.substr(0, one.size() / 2), one + "\0"s + two, one.substr(0, 2),
                                   one + two.substr(0, 5), one.substr(0, one.size() - 8) + "12345678"}) {
    Put("a", bytes);
    EXPECT_EQ(Fault("a"), damaged);
  }
}

// All input is taken long before all output is out.
TEST_F(InputFilesTest, GzipThatPacksWell) {
  std::string text;
  for (int i = 0; i < 3'000'000; ++i) text += "1\n";
  Put("a", Packed(text));
  const Result<Matrix> matrix = Read("a");
  ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
  EXPECT_EQ(matrix->rows(), 3'000'000);
}

TEST_F(InputFilesTest, PackedFilesBeyondTheMemoryAreRefused) {
  Put("a", Packed(std::string(30'000'000, '1')));
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  BlockPool::Process().Trim();
  budget.SetLimit(budget.used() + 20'000'000);
  const Status status = Read("a").status();
  budget.SetLimit(limit);
  EXPECT_EQ(ExitCode(status), 5) << status.ToString();
}

// Between the look at the file and the reading of its rows, and while it is open.
TEST_F(InputFilesTest, AFileThatIsCutShortIsAnError) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "1,2\n";
  for (const char* format : {"csv", "libsvm", "text"}) {
    Put("a", format == "csv"s ? text : format == "libsvm"s ? "1 1:2\n1 1:3\n" : "1 1 2\n2 1 3\n");
    Node node;
    node.SetAttribute("format", Scalar(format));
    const Result<ReadOptions> options = ResolveReadOptions(node, "a", *files_);
    const Result<FileSummary> summary = Summarize(*options, *files_);
    ASSERT_TRUE(summary.ok()) << format;
    ASSERT_EQ(truncate((directory_ + "/a").c_str(), 6), 0);
    EXPECT_EQ(ReadRows(*options, *summary, 0, summary->shape.rows, *files_).status().message(),
              "cannot read 'a': it changed while it was read")
        << format;
  }
  Put("a", text);
  const Result<std::unique_ptr<InputFile>> file = files_->Open("a");
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(truncate((directory_ + "/a").c_str(), 5000), 0);
  CountedBytes buffer;
  EXPECT_TRUE((*file)->Read(0, 5000, &buffer).ok());
  const Status status = (*file)->Read(0, 5001, &buffer).status();
  EXPECT_EQ(status.message(), "cannot read 'a': it became shorter while it was read, it had 4000000 bytes");
  EXPECT_EQ(ExitCode(status), 4);
}

// The same size, other lines.
TEST_F(InputFilesTest, AFileThatIsOverwrittenIsAnError) {
  Put("a", "1\n2\n3\n4\n");
  const Result<ReadOptions> options = ResolveReadOptions(Node(), "a", *files_);
  const Result<FileSummary> summary = Summarize(*options, *files_);
  ASSERT_TRUE(summary.ok());
  Put("a", "1234567\n");
  EXPECT_EQ(ReadRows(*options, *summary, 0, 4, *files_).status().message(),
            "cannot read 'a': it changed while it was read");
}

TEST_F(InputFilesTest, PartsAreReadPieceByPiece) {
  std::filesystem::create_directory(directory_ + "/parts");
  std::string all;
  for (int i = 0; i < 30; ++i) {
    std::string part;
    for (int k = 0; k < 20'000; ++k) part += std::to_string(i * k) + "\n";
    all += part;
    if (i % 2 == 0) part.pop_back();
    Put("parts/" + std::to_string(100 + i), i % 5 == 0 ? Packed(part) : part);
  }
  Put("whole", all);
  const Result<Matrix> parts = Read("parts");
  const Result<Matrix> whole = Read("whole");
  ASSERT_TRUE(parts.ok()) << parts.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(*parts, *whole));
}

}  // namespace
}  // namespace heddle::ops
