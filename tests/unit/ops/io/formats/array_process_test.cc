// SPDX-License-Identifier: Apache-2.0
// The process in which a library reads: what it answers, that its end is an error, and that it keeps to its
// memory.
#include "ops/io/formats/libraries/array_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "core/environment/modules.h"
#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"
#include "ops/io/files/input_files.h"
#include "ops/io/files/packing.h"
#include "tests/support/process.h"

namespace heddle::ops {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMegabyte = 1 << 20;

using Opened = Result<std::unique_ptr<StoredArray>>;

// A folder with the program and, as HDF5, the library of tests/support/library_of_tests.cc.
class ArrayProcessTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/heddle-array-process-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = new std::string(name);
    fs::copy_file(HEDDLE_BINARY_DIR "/heddle-array-process", *folder_ + "/program");
    fs::copy_file(HEDDLE_BINARY_DIR "/libheddle_library_of_tests.so", *folder_ + "/libheddle_hdf5.so");
  }
  static void TearDownTestSuite() {
    fs::remove_all(*folder_);
    delete folder_;
    folder_ = nullptr;
  }
  void TearDown() override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
    EXPECT_EQ(errno, ECHILD);
  }

  // With `dataset` tests tell the library what to do.
  static Opened Open(const std::string& dataset, std::shared_ptr<const InputFile> file = AnyFile()) {
    return OpenInProcess({.path = "file", .file = std::move(file), .choice = {.dataset = dataset}},
                         *folder_ + "/program");
  }
  static std::shared_ptr<const InputFile> AnyFile() {
    CountedBytes bytes;
    EXPECT_TRUE(bytes.Renew(3, "file").ok());
    std::copy_n("abc", 3, bytes.data());
    return MakeFileInMemory(std::move(bytes));
  }
  static std::shared_ptr<const InputFile> FileOf(const std::string& bytes) {
    static int number = 0;
    const std::string name = fmt::format("data{}", number++);
    testing_support::WriteText(*folder_ + "/" + name, bytes);
    Result<std::unique_ptr<InputFile>> file = MakeFiles(*folder_)->Open(name);
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return std::move(*file);
  }
  static std::string* folder_;
};
std::string* ArrayProcessTest::folder_ = nullptr;

TEST_F(ArrayProcessTest, CellsAndFaultsComeBack) {
  const Opened array = Open("numbers 300001");
  ASSERT_TRUE(array.ok()) << array.status().ToString();
  EXPECT_EQ((*array)->sizes(), (std::vector<int64_t>{300'001, 2}));
  EXPECT_EQ((*array)->column_major_writer(), "somebody");
  std::vector<double> cells(600'000);
  ASSERT_TRUE((*array)->Read(0, 300'000, cells.data()).ok());
  for (size_t k = 0; k < cells.size(); ++k) ASSERT_EQ(cells[k], static_cast<double>(k));
  EXPECT_EQ((*array)->Read(300'000, 300'001, cells.data()).ToString(), "the last row is damaged\nso it is");
  EXPECT_EQ(Open("").status().message(), "nothing is there");
}

// The library gets all bytes, of a file that is opened by its descriptor and of one that Heddle has to unpack
// or holds in memory, and from no other place.
TEST_F(ArrayProcessTest, TheBytesOfTheFileComeToTheLibrary) {
  std::string bytes(3'000'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
  std::string packed;
  ASSERT_TRUE(PackPiece(Packing::kGzip, bytes, &packed).ok());
  CountedBytes memory;
  ASSERT_TRUE(memory.Renew(static_cast<int64_t>(bytes.size()), "file").ok());
  std::copy(bytes.begin(), bytes.end(), memory.data());
  const std::shared_ptr<const InputFile> plain = FileOf(bytes);
  EXPECT_GE(DescriptorOf(*plain), 0);
  for (const auto& file :
       {plain, FileOf(packed), std::shared_ptr<const InputFile>(MakeFileInMemory(std::move(memory)))}) {
    ASSERT_EQ(file->size(), 3'000'000);
    const Opened array = Open("bytes", file);
    ASSERT_TRUE(array.ok()) << array.status().ToString();
    std::vector<double> cells(510);
    const Status read = (*array)->Read(0, 255, cells.data());
    ASSERT_TRUE(read.ok()) << read.ToString();
    for (size_t i = 0; i < 255; ++i) {
      EXPECT_EQ(cells[2 * i], static_cast<double>(i));
      EXPECT_EQ(cells[2 * i + 1], i < 3'000'000 % 251 ? 11953 : i < 251 ? 11952 : 0) << i;
    }
  }
  EXPECT_EQ(Open("beyond", plain).status().message(),
            "cannot read 'file': it became shorter while it was read, it had 3000000 bytes");
  EXPECT_EQ(Open("beyond", FileOf(packed)).status().message(),
            "cannot read 'file': it is damaged, or HDF5 cannot handle it");
}

TEST_F(ArrayProcessTest, AnEndOfTheProcessIsAnError) {
  const std::string lost = "cannot read 'file': it is damaged, or HDF5 cannot handle it";
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGKILL}) {
    const std::string note = fmt::format("\nits library ended with signal {}", number);
    EXPECT_EQ(Open(fmt::format("signal {}", number)).status().ToString(), lost + note);
    const Opened array = Open(fmt::format("signal_at_read {}", number));
    ASSERT_TRUE(array.ok()) << array.status().ToString();
    double cells[2];
    EXPECT_EQ((*array)->Read(7, 8, cells).ToString(), lost + note);
    EXPECT_EQ((*array)->Read(7, 8, cells).code(), StatusCode::kDataLoss) << "it is lost for good";
  }
  EXPECT_EQ(Open(fmt::format("signal {}", SIGXCPU)).status().ToString(),
            lost + "\nits library did not end within 30 s");
  EXPECT_EQ(Open("exit 3").status().ToString(), lost);
  EXPECT_EQ(Open("exit 0").status().ToString(), lost);
}

// Ctrl-C at the terminal reaches all processes of its group; the one that was asked to stop is Heddle, which
// then closes the socket.
TEST_F(ArrayProcessTest, InterruptsAreForHeddle) {
  const Opened array = Open(fmt::format("signal_at_read {}", SIGINT));
  ASSERT_TRUE(array.ok()) << array.status().ToString();
  double cells[2];
  EXPECT_TRUE((*array)->Read(7, 8, cells).ok());
}

TEST_F(ArrayProcessTest, ManyAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 24; ++t)
    threads.emplace_back([&, t] {
      const Opened array = Open(t % 3 == 0 ? fmt::format("signal {}", SIGSEGV) : "numbers 1000");
      std::vector<double> cells(1000);
      const bool is_good = t % 3 == 0 ? array.status().code() == StatusCode::kDataLoss
                                      : array.ok() && (*array)->Read(100, 600, cells.data()).ok() &&
                                            cells[0] == 200 && cells[999] == 1199;
      if (is_good) ++right;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 24);
}

// Who waits for the end of a pipe or socket does not wait for a process that reads a file.
TEST_F(ArrayProcessTest, HoldsNoConversationOfItsParent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Opened array = Open("numbers 1000");
  ASSERT_TRUE(array.ok()) << array.status().ToString();
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
  double cells[2];
  EXPECT_TRUE((*array)->Read(7, 8, cells).ok());
}

TEST_F(ArrayProcessTest, AProgramThatIsNotThereIsNamed) {
  const Status fault =
      OpenInProcess({.path = "file", .file = AnyFile(), .choice = {}}, *folder_ + "/absent").status();
  EXPECT_EQ(fault.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(
      fault.ToString(),
      "cannot read 'file': the program that reads files with HDF5 is not there\n"
      "cannot start the process that reads the file (" +
          *folder_ +
          "/absent): No such file or directory: heddle-array-process belongs beside Heddle and its modules");
}

// What copies of this test program do; started by the next test.
TEST(CopiedProgramTest, DISABLED_FindsNoModule) {
  EXPECT_EQ(FindInstalled("libheddle_hdf5.so").status().code(), StatusCode::kNotFound);
  const Status fault = OpenInProcess({.path = "file", .file = nullptr, .choice = {}}).status();
  EXPECT_EQ(fault.ToString(),
            "cannot read 'file': this Heddle was built without HDF5\n"
            "install libhdf5-dev and build it again, or use format=\"npy\" or \"csv\"");
}
TEST(CopiedProgramTest, DISABLED_FindsNoProgram) {
  EXPECT_TRUE(FindInstalled("libheddle_hdf5.so").ok());
  const std::string fault =
      OpenInProcess({.path = "file", .file = nullptr, .choice = {}}).status().ToString();
  EXPECT_TRUE(
      fault.starts_with("cannot read 'file': the program that reads files with HDF5 is not there\n"
                        "heddle-array-process is not beside /tmp/"))
      << fault;
}

TEST_F(ArrayProcessTest, WhatIsInstalledIsLookedForBesideTheProgram) {
  const std::string folder = *folder_ + "/copy";
  fs::create_directories(folder + "/bin");
  fs::create_directories(folder + "/lib/heddle");
  fs::copy_file("/proc/self/exe", folder + "/bin/program");
  const auto expect_passes = [&](const std::string& test) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const std::string filter = "--gtest_filter=CopiedProgramTest.DISABLED_" + test;
      // The name says nothing of where it lies.
      execl((folder + "/bin/program").c_str(), "heddle", "--gtest_also_run_disabled_tests", filter.c_str(),
            nullptr);
      _exit(9);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << test << ": " << status;
  };
  expect_passes("FindsNoModule");
  for (const std::string place : {"/lib/heddle", "", "/bin"}) {
    fs::copy_file(*folder_ + "/libheddle_hdf5.so", folder + place + "/libheddle_hdf5.so");
    expect_passes("FindsNoProgram");
    fs::remove(folder + place + "/libheddle_hdf5.so");
  }
}

class MemoryOfArrayProcessTest : public ArrayProcessTest {
 protected:
  void SetUp() override {
    if (!HeapIsCounted()) GTEST_SKIP() << "the heap is the sanitizer's";
    limit_ = MemoryBudget::Process().limit();
    BlockPool::Process().Trim(INT64_MAX);  // What earlier tests have left there would make room.
    MemoryBudget::Process().SetLimit(MemoryBudget::Process().used() + 100 * kMegabyte);
  }
  void TearDown() override {
    if (HeapIsCounted()) MemoryBudget::Process().SetLimit(limit_);
  }
  int64_t limit_ = 0;
};

// As a damaged file makes libraries do it.
TEST_F(MemoryOfArrayProcessTest, WhatALibraryAsksForBeyondItsShareIsRefused) {
  const Opened large = Open("at_once 314572800");
  EXPECT_EQ(large.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(large.status().message().starts_with(
      "out of memory: cannot read 'file': 314572800 bytes are asked for at once, "))
      << large.status().ToString();
  EXPECT_EQ(
      large.status().notes()[0],
      "it is damaged, or its pieces are very large: write it in smaller ones, or allow more memory with "
      "--memory BYTES");
  const Opened many = Open("in_pieces 300");
  EXPECT_EQ(many.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(many.status().message().starts_with("out of memory: cannot read 'file': 10"))
      << many.status().ToString();
}

TEST_F(MemoryOfArrayProcessTest, TheBudgetIsChargedForWhatItMayHold) {
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t before = budget.used();
  {
    const Opened array = Open(fmt::format("numbers 1000 {}", 40 * kMegabyte));
    ASSERT_TRUE(array.ok()) << array.status().ToString();
    EXPECT_GE(budget.used(), before + 16 * kMegabyte);
    double cells[2];
    ASSERT_TRUE((*array)->Read(7, 8, cells).ok());
    EXPECT_EQ(cells[1], 15);
    EXPECT_GE(budget.used(), before + 56 * kMegabyte);
  }
  EXPECT_LT(budget.used(), before + kMegabyte);
  const Opened array = Open(fmt::format("numbers 1000 {}", 200 * kMegabyte));
  ASSERT_TRUE(array.ok()) << array.status().ToString();
  double cells[2];
  const Status refused = (*array)->Read(7, 8, cells);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(refused.message().starts_with("out of memory: what HDF5 takes to read 'file', 209715"))
      << refused.ToString();
}

}  // namespace
}  // namespace heddle::ops
