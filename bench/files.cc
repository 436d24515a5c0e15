// SPDX-License-Identifier: Apache-2.0
#include "bench/files.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "bench/base/probe.h"
#include "bench/matrices/random_matrices.h"
#include "core/memory/block_pool.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/file_format.h"

namespace heddle::bench {
namespace {

[[noreturn]] void Fail(const Status& status) {
  std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Checked(Result<T> result) {
  if (!result.ok()) Fail(result.status());
  return *std::move(result);
}

// Numbers with two digits behind the point.
Matrix RandomDecimals(int64_t rows, int64_t columns, ops::Arena* arena) {
  Matrix matrix = RandomDense(rows, columns, 2, arena);
  for (int64_t i = 0; i < rows * columns; ++i)
    matrix.mutable_data()[i] = std::round(matrix.data()[i] * 100'000 - 50'000) / 100;
  return matrix;
}

// Columns of words and of numbers of six digits, in turns.
Frame RandomFrame(int64_t rows, int64_t columns) {
  constexpr uint64_t kWords = 10'000;
  Schema schema;
  std::vector<Column> made;
  for (int64_t j = 0; j < columns; ++j) {
    const auto bits_of = [&](int64_t i) {
      return (static_cast<uint64_t>(i * columns + j) * 0x9e3779b97f4a7c15ULL) >> 32;
    };
    if (j % 2 == 1) {
      Column column = Checked(Column::Make(ColumnType::kFloat64, rows, 0, false));
      for (int64_t i = 0; i < rows; ++i)
        column.mutable_doubles()[i] = static_cast<double>(bits_of(i) % 2'000'000) / 1e6 - 1;
      made.push_back(std::move(column));
      schema.types.push_back(ColumnType::kFloat64);
      continue;
    }
    std::vector<int64_t> offsets = {0};
    std::string texts;
    for (int64_t i = 0; i < rows; ++i) {
      texts += "word" + std::to_string(bits_of(i) % kWords);
      offsets.push_back(static_cast<int64_t>(texts.size()));
    }
    Column column = Checked(Column::Make(ColumnType::kString, rows, offsets.back(), false));
    std::copy(offsets.begin(), offsets.end(), column.mutable_offsets());
    std::copy(texts.begin(), texts.end(), column.mutable_texts());
    made.push_back(std::move(column));
    schema.types.push_back(ColumnType::kString);
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(made));
}

// A line of /proc/self/status, in bytes.
int64_t StatusBytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::atoll(line.c_str() + name.size()) * 1024;
  return 0;
}

// Bytes of memory that a call adds at its most.
int64_t PeakBytes(const std::function<void()>& work) {
  BlockPool::Process().Trim();
  malloc_trim(0);
  const int64_t before = StatusBytes("VmRSS:");
  std::ofstream("/proc/self/clear_refs") << "5";  // The peak counts from here.
  work();
  return StatusBytes("VmHWM:") - before;
}

struct Taken {
  double ms = 0;
  double cpu_ms = 0;  // Of all threads: on a machine that others use, too, it tells more.
};

double CpuMs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

// The best of `rounds` calls after one to warm up.
Taken Best(int rounds, const std::function<void()>& work) {
  work();
  Taken best{.ms = HUGE_VAL, .cpu_ms = HUGE_VAL};
  for (int i = 0; i < rounds; ++i) {
    const double before = CpuMs();
    best.ms = std::min(best.ms, Time(work));
    best.cpu_ms = std::min(best.cpu_ms, CpuMs() - before);
  }
  return best;
}

// One file, and how it is measured.
class FileCase {
 public:
  FileCase(const BenchOptions& options, std::string name, std::string path, ops::Files* files,
           ops::Arena* arena)
      : options_(options), name_(std::move(name)), path_(std::move(path)), files_(files), arena_(arena) {}

  void Write(const Value& value, const ops::WriteOptions& write) {
    Report("write",
           Best(options_.rounds,
                [&] { InArena([&] { return ops::WriteValue(value, path_, write, *files_); }); }),
           0);
  }

  void Read(DataType type) {
    Node node;
    node.op = "read";
    if (type == DataType::kFrame) node.SetAttribute("data_type", Scalar(std::string("frame")));
    int64_t result_bytes = 1;
    const auto read = [&] {
      InArena([&]() -> Status {
        HEDDLE_ASSIGN_OR_RETURN(const ops::ReadOptions options,
                                ops::ResolveReadOptions(node, path_, *files_));
        HEDDLE_ASSIGN_OR_RETURN(const ops::FileSummary summary, ops::Summarize(options, *files_));
        if (type == DataType::kFrame) {
          HEDDLE_ASSIGN_OR_RETURN(const Frame frame,
                                  ReadFrameRows(options, summary, 0, summary.shape.rows, *files_));
          result_bytes = frame.bytes();
          return OkStatus();
        }
        HEDDLE_ASSIGN_OR_RETURN(const Matrix matrix,
                                ReadRows(options, summary, 0, summary.shape.rows, *files_));
        result_bytes = matrix.bytes();
        return OkStatus();
      });
    };
    // The first look at the file is part of what is measured: a touched file is looked at anew.
    const auto anew = [&] {
      std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now());
      read();
    };
    const double peak = static_cast<double>(PeakBytes(anew)) / static_cast<double>(result_bytes);
    Report("read", Best(options_.rounds, anew), peak);
  }

  // The bytes of the file, copied to another one and to memory.
  void Copy() {
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path_));
    std::string copy(static_cast<size_t>(bytes), '\0');
    constexpr int64_t kPiece = 1 << 20;
    Report(
        "read copy",
        Best(options_.rounds,
             [&] {
               const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
               arena_->Execute([&] {
                 ops::ParallelFor(bytes, kPiece, [&](int64_t begin, int64_t end) {
                   if (pread(fd, copy.data() + begin, static_cast<size_t>(end - begin), begin) != end - begin)
                     Fail(Internal("{} cannot be read", path_));
                 });
               });
               close(fd);
             }),
        0);
    const std::string other = path_ + ".copy";
    Report("write copy",
           Best(options_.rounds,
                [&] {
                  const Status status = files_->Replace(other, [&](const ops::ByteSink& sink) -> Status {
                    for (int64_t at = 0; at < bytes; at += kPiece)
                      HEDDLE_RETURN_IF_ERROR(
                          sink(std::string_view(copy).substr(static_cast<size_t>(at), kPiece)));
                    return OkStatus();
                  });
                  if (!status.ok()) Fail(status);
                }),
           0);
    std::filesystem::remove(other);
  }

 private:
  void InArena(const std::function<Status()>& work) {
    Status status;
    arena_->Execute([&] { status = work(); });
    if (!status.ok()) Fail(status);
  }

  void Report(const char* what, const Taken& taken, double peak) const {
    const auto bytes = static_cast<double>(std::filesystem::file_size(path_));
    std::printf(options_.json
                    ? "{\"bench\":\"files\",\"case\":\"%s %s\",\"ms\":%.1f,\"cpu_ms\":%.1f,\"mb_per_s\":%.0f,"
                      "\"peak_to_result\":%.2f,\"threads\":%d}\n"
                    : "%-16s %-11s %9.1f ms %9.1f ms of cores %7.0f MB/s %6.2f x memory (%d threads)\n",
                name_.c_str(), what, taken.ms, taken.cpu_ms, bytes / taken.ms / 1e3, peak, options_.threads);
    std::fflush(stdout);
  }

  const BenchOptions& options_;
  const std::string name_;
  const std::string path_;
  ops::Files* const files_;
  ops::Arena* const arena_;
};

}  // namespace

int RunFiles(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  const bool is_kept = !options.data.empty();
  const std::string folder = is_kept ? options.data : MakeTemporaryFolder();
  std::filesystem::create_directories(folder);
  const auto files = ops::MakeFiles(folder);
  const int64_t rows = options.cells / 20;
  const auto run = [&](const std::string& name, const std::string& file, const auto& make,
                       ops::FileFormat format) {
    if (name.find(options.only) == std::string::npos) return;
    FileCase one(options, name, folder + "/" + file, files.get(), &arena);
    ops::WriteOptions write;
    write.format = format;
    if (format == ops::FileFormat::kLibsvm) write.separator = " ";  // as everybody else has it
    DataType type = DataType::kMatrix;
    {
      const Value value(make());
      if (value.IsFrame()) type = DataType::kFrame;
      one.Write(value, write);
    }
    one.Read(type);
    if (format == ops::FileFormat::kBinary) one.Copy();
    if (!is_kept) std::filesystem::remove(folder + "/" + file);
  };
  const auto doubles = [&] { return RandomDense(rows, 20, 1, &arena); };
  const auto frame = [&] { return RandomFrame(rows, 10); };
  const auto sparse = [&] { return RandomSparse(rows, 20, 0.25, 3, &arena); };
  run("csv doubles", "doubles.csv", doubles, ops::FileFormat::kCsv);
  run(
      "csv decimals", "decimals.csv", [&] { return RandomDecimals(rows, 20, &arena); },
      ops::FileFormat::kCsv);
  run("csv frame", "frame.csv", frame, ops::FileFormat::kCsv);
  run("binary doubles", "doubles.bin", doubles, ops::FileFormat::kBinary);
  run("binary frame", "frame.bin", frame, ops::FileFormat::kBinary);
  run("text sparse", "sparse.ijv", sparse, ops::FileFormat::kText);
  run("mm sparse", "sparse.mtx", sparse, ops::FileFormat::kMatrixMarket);
  run("libsvm sparse", "sparse.libsvm", sparse, ops::FileFormat::kLibsvm);
  run("text frame", "frame.txt", frame, ops::FileFormat::kText);
  if (!is_kept) std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace heddle::bench
