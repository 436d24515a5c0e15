// SPDX-License-Identifier: Apache-2.0
// Panels of files of very many chunks.
#include "ops/io/formats/read_chunks.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "ops/io/files/replacement.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

/// Where threads that read wait for each other: a little at each chunk, since a worker of oneTBB that has
/// missed one task comes with the next.
struct Readers {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::thread::id> threads;
  int waits_left = 20;

  void Enter() {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    changed.notify_all();
    if (waits_left == 0) return;
    --waits_left;
    changed.wait_for(lock, std::chrono::seconds(1), [&] { return threads.size() > 1; });
  }
};

class WatchedFile : public InputFile {
 public:
  WatchedFile(std::unique_ptr<InputFile> file, Readers* readers)
      : file_(std::move(file)), readers_(readers) {}
  int64_t size() const override { return file_->size(); }
  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes* buffer) const override {
    if (begin > 0) readers_->Enter();  // Who opens a file reads its beginning.
    return file_->Read(begin, count, buffer);
  }

 private:
  std::unique_ptr<InputFile> file_;
  Readers* const readers_;
};

class WatchedFiles : public Files {
 public:
  WatchedFiles(Files& files, Readers* readers) : files_(files), readers_(readers) {}
  Result<std::unique_ptr<InputFile>> Open(const std::string& path) override {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, files_.Open(path));
    return std::unique_ptr<InputFile>(std::make_unique<WatchedFile>(std::move(file), readers_));
  }
  bool Exists(const std::string& path) override { return files_.Exists(path); }
  bool IsDirectory(const std::string& path) override { return files_.IsDirectory(path); }
  Result<std::vector<std::string>> List(const std::string& path) override { return files_.List(path); }
  Result<std::string> Fingerprint(const std::string& path) override { return files_.Fingerprint(path); }
  Result<std::unique_ptr<NewFile>> Begin(const std::string& path) override { return files_.Begin(path); }
  Status Remove(const std::string& path) override { return files_.Remove(path); }

 private:
  Files& files_;
  Readers* const readers_;
};

class ReadChunksTest : public FormatsTest {
 protected:
  void ExpectTwoThreadsRead(const std::string& name, FileFormat format) {
    Node node;
    Result<ReadOptions> options = ResolveReadOptions(node, name, *files_);
    ASSERT_TRUE(options.ok()) << options.status().ToString();
    ASSERT_EQ(options->format, format);
    options->chunk_bytes = 32;
    const Result<FileSummary> summary = Summarize(*options, *files_);
    ASSERT_TRUE(summary.ok()) << summary.status().ToString();
    ASSERT_GT(summary->chunks(), 5000);
    Readers readers;
    WatchedFiles watched(*files_, &readers);
    Arena arena(2);
    Result<Matrix> rows = Matrix();
    arena.Execute([&] { rows = ReadRows(*options, *summary, 20'000, 20'064, watched); });
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    EXPECT_EQ(rows->At(3, 0), 20'003);
    EXPECT_EQ(readers.threads.size(), 2);
  }
};

TEST_F(ReadChunksTest, ThreadsShareTheChunksOfAPanel) {
  std::string csv, libsvm;
  for (int i = 0; i < 40'000; ++i) {
    csv += std::to_string(i) + ",1\n";
    libsvm += "1 1:" + std::to_string(i) + " 2:1\n";
  }
  Put("rows.csv", csv);
  Put("rows.libsvm", libsvm);
  ExpectTwoThreadsRead("rows.csv", FileFormat::kCsv);
  ExpectTwoThreadsRead("rows.libsvm", FileFormat::kLibsvm);
}

}  // namespace
}  // namespace heddle::ops
