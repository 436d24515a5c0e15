// SPDX-License-Identifier: Apache-2.0
#include "bench/memory/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>

#include "bench/base/probe.h"
#include "bench/memory/data.h"
#include "bench/memory/limited_run.h"
#include "core/memory/memory_bounds.h"
#include "ops/io/formats/file_format.h"

namespace heddle::bench {
namespace {

constexpr const char* kPeers[] = {"duckdb", "polars", "dask"};
// A peer that takes longer is stopped.
constexpr double kMostTimesSlower = 20, kLeastSecondsOfPeer = 120;
// Of docs/memory.md: what a process takes at most beyond the limit.
constexpr double kShareBeyond = 0.15;
constexpr int64_t kBytesBeyond = 64'000'000;

struct Case {
  const char* script;
  bool has_peers = false;
  bool reads_once = true;  // Its time is compared with that of one pass.
};
constexpr Case kCases[] = {
    {.script = "sum", .has_peers = true},
    {.script = "column_means", .has_peers = true},
    {.script = "cross_product", .has_peers = true},
    {.script = "transposed_product"},
    {.script = "l2svm", .has_peers = true, .reads_once = false},
    {.script = "kmeans", .reads_once = false},
    {.script = "glm", .reads_once = false},
    {.script = "pca", .reads_once = false},
    {.script = "pipeline"},
};

Result<int64_t> BytesIn(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string units = "kmgt";
  const size_t unit = *end == '\0' ? std::string::npos : units.find(*end);
  if (number <= 0 || (*end != '\0' && (unit == std::string::npos || end[1] != '\0')))
    return InvalidArgument("--memory: {} is no number of bytes, as 1g is", text);
  const double factor = *end == '\0' ? 1 : std::pow(1024.0, static_cast<double>(unit + 1));
  return static_cast<int64_t>(number * factor);
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string LastLineOf(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// The sum of the absolute cells of a binary file: what results of peers are compared with.
Result<double> SizeOfResult(const std::string& path) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles("/");
  Node node;
  node.op = "read";
  HEDDLE_ASSIGN_OR_RETURN(const ops::ReadOptions options, ops::ResolveReadOptions(node, path, *files));
  HEDDLE_ASSIGN_OR_RETURN(const ops::FileSummary summary, ops::Summarize(options, *files));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix matrix,
                          ops::ReadRows(options, summary, 0, summary.shape.rows, *files));
  double sum = 0;
  for (int64_t i = 0; i < matrix.rows(); ++i)
    for (int64_t j = 0; j < matrix.columns(); ++j) sum += std::abs(matrix.At(i, j));
  return sum;
}

// Seconds of rounds, the least of which counts.
struct Seconds {
  std::vector<double> all;
  void Add(double seconds) { all.push_back(seconds); }
  double best() const { return all.empty() ? 0 : *std::min_element(all.begin(), all.end()); }
};

struct Peer {
  std::string name;
  Seconds seconds;
  int64_t peak_bytes = 0;
  std::string why_not;  // It has no time.
};

struct Figures {
  Seconds script, read, decode, compute, write;
  int64_t peak_bytes = 0, read_bytes = 0, written_bytes = 0;
  std::string bytes = "not compared";  // With those of a run in memory.
  std::vector<Peer> peers;
};

class MemoryBench {
 public:
  MemoryBench(const BenchOptions& options, const MemoryBenchOptions& memory, std::string folder)
      : options_(options), memory_(memory), folder_(std::move(folder)) {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    own_ = program;
    heddle_ = program.parent_path() / "heddle";
    scripts_ = (program.parent_path() / "../../bench/scripts/memory").lexically_normal();
  }

  Status Run(bool* all_right) {
    HEDDLE_ASSIGN_OR_RETURN(limit_, BytesIn(memory_.memory));
    promise_ = static_cast<int64_t>(static_cast<double>(limit_) * (1 + kShareBeyond)) + kBytesBeyond;
    // What is as large as the promise, and some pages for its files.
    group_ = ControlGroup::Make(promise_ + (int64_t{4} << 20));
    if (!group_->is_enforced())
      std::fprintf(stderr, "heddle-bench: the limit is not enforced, memory is measured only: %s\n",
                   group_->why_not().c_str());
    for (const bool is_csv : {false, true}) {
      std::optional<LargeFile> file;
      for (const Case& one : kCases) {
        const std::string name = fmt::format("{} {}", is_csv ? "csv" : "binary", one.script);
        if (name.find(options_.only) == std::string::npos) continue;
        if (!file) {
          HEDDLE_ASSIGN_OR_RETURN(file, MakeLargeFile(heddle_, folder_, is_csv,
                                                      is_csv ? memory_.csv_gigabytes : memory_.gigabytes));
          if (!memory_.peers.empty()) HEDDLE_RETURN_IF_ERROR(PrepareForPeers(*file));
        }
        const Status status = Measure(one, name, is_csv, *file, all_right);
        if (status.ok()) continue;
        *all_right = false;
        std::fprintf(stderr, "heddle-bench: %s: %s\n", name.c_str(), status.ToString().c_str());
      }
    }
    return OkStatus();
  }

 private:
  static void Drop(const LargeFile& file) {
    DropFromPageCache(file.x);
    DropFromPageCache(file.y);
    DropFromPageCache(file.x + ".parquet");            // Of peers, where it is.
    std::ofstream("/proc/sys/vm/drop_caches") << "1";  // Where it may.
  }

  std::vector<std::string> WordsOf(const Case& one, const LargeFile& file, const std::string& out,
                                   bool is_limited) const {
    // Spill files are on the disk of the data.
    std::vector<std::string> words = {"env", "TMPDIR=" + folder_, heddle_,
                                      "run", "--threads",         std::to_string(options_.threads)};
    if (is_limited) words.insert(words.end(), {"--memory", memory_.memory});
    for (const std::string& word : {scripts_ + "/" + one.script + ".dml", std::string("-nvargs"),
                                    "X=" + file.x, "y=" + file.y, "out=" + out})
      words.push_back(word);
    return words;
  }

  Status RunScript(const Case& one, const LargeFile& file, const std::string& out, Figures* figures) {
    Drop(file);
    HEDDLE_ASSIGN_OR_RETURN(const LimitedRun run,
                            RunLimited(WordsOf(one, file, out, /*is_limited=*/true), *group_));
    if (run.exit_code != 0) return Internal("exit code {}:\n{}", run.exit_code, run.output);
    figures->script.Add(run.seconds);
    figures->peak_bytes = std::max(figures->peak_bytes, run.peak_uncached_bytes);
    figures->read_bytes = run.disk_read_bytes;
    figures->written_bytes = run.disk_written_bytes;
    return OkStatus();
  }

  Status RunStage(const char* stage, const LargeFile& file, Seconds* seconds) {
    Drop(file);
    HEDDLE_ASSIGN_OR_RETURN(
        const LimitedRun run,
        RunLimited({own_, "memory-stage", stage, file.x, std::to_string(options_.threads)}, *group_));
    if (run.exit_code != 0) return Internal("{} alone: exit code {}:\n{}", stage, run.exit_code, run.output);
    seconds->Add(std::atof(run.output.c_str()));
    return OkStatus();
  }

  // The program of the peers and more words for it.
  std::vector<std::string> WordsOfPeer(const std::vector<std::string>& more) const {
    std::istringstream prefix(memory_.peers);
    std::vector<std::string> words{std::istream_iterator<std::string>(prefix), {}};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // What peers read best is written once, without a limit.
  Status PrepareForPeers(const LargeFile& file) const {
    const auto no_limit = ControlGroup::Make(DefaultMemoryLimit());
    HEDDLE_ASSIGN_OR_RETURN(const LimitedRun run, RunLimited(WordsOfPeer({"prepare", file.x}), *no_limit));
    return run.exit_code == 0 ? OkStatus()
                              : Internal("--peers: exit code {}:\n{}", run.exit_code, run.output);
  }

  // The peer prints its seconds and the sum of the absolute cells of its result, or why it has none.
  Status RunPeer(const Case& one, const LargeFile& file, const std::string& out, double own_seconds,
                 Peer* peer) {
    if (!peer->why_not.empty()) return OkStatus();
    Drop(file);
    HEDDLE_ASSIGN_OR_RETURN(
        const LimitedRun run,
        RunLimited(WordsOfPeer({peer->name, one.script, file.x, file.y, std::to_string(limit_),
                                std::to_string(options_.threads)}),
                   *group_, std::max(kMostTimesSlower * own_seconds, kLeastSecondsOfPeer)));
    peer->peak_bytes = std::max(peer->peak_bytes, run.peak_uncached_bytes);
    std::istringstream answer(LastLineOf(run.output));
    double seconds = 0, size = 0;
    if (run.was_stopped) {
      peer->why_not = fmt::format("not ready after {:.0f} s", run.seconds);
    } else if (run.exit_code != 0) {
      const std::string last = LastLineOf(run.output);
      peer->why_not = run.exit_code == 128 + SIGKILL ? std::string("killed: out of memory")
                                                     : fmt::format("exit code {}: {}", run.exit_code, last);
    } else if (!(answer >> seconds >> size)) {
      peer->why_not = LastLineOf(run.output);
    } else {
      peer->seconds.Add(seconds);
      HEDDLE_ASSIGN_OR_RETURN(const double own_size, SizeOfResult(out));
      if (!(std::abs(size - own_size) <= 1e-6 * std::abs(own_size)))
        return Internal("the result of {} is another one: {} in place of {}", peer->name, size, own_size);
    }
    return OkStatus();
  }

  // A run without --memory, where the machine has room for it.
  Status CompareBytes(const Case& one, const LargeFile& file, const std::string& out, Figures* figures) {
    const int64_t room = DefaultMemoryLimit();
    if (static_cast<double>(file.cell_bytes) * 1.3 > static_cast<double>(room)) {
      figures->bytes = fmt::format("not compared: {} MB do not fit in memory", file.cell_bytes / 1'000'000);
      return OkStatus();
    }
    const auto no_limit = ControlGroup::Make(room);
    const std::string other = out + ".in_memory";
    HEDDLE_ASSIGN_OR_RETURN(const LimitedRun run,
                            RunLimited(WordsOf(one, file, other, /*is_limited=*/false), *no_limit));
    if (run.exit_code != 0) return Internal("in memory: exit code {}:\n{}", run.exit_code, run.output);
    const bool is_same =
        std::string_view(one.script) == "pipeline" ? AreSame(out, other) : BytesOf(out) == BytesOf(other);
    figures->bytes = is_same ? "same" : "OTHER";
    std::filesystem::remove(other);
    std::filesystem::remove(other + ".mtd");
    return OkStatus();
  }

  // Of files larger than memory.
  static bool AreSame(const std::string& a, const std::string& b) {
    if (std::filesystem::file_size(a) != std::filesystem::file_size(b)) return false;
    std::ifstream left(a, std::ios::binary), right(b, std::ios::binary);
    std::string x(1 << 20, '\0'), y(1 << 20, '\0');
    do {
      left.read(x.data(), static_cast<std::streamsize>(x.size()));
      right.read(y.data(), static_cast<std::streamsize>(y.size()));
      if (std::memcmp(x.data(), y.data(), static_cast<size_t>(left.gcount())) != 0) return false;
    } while (left && right);
    return true;
  }

  Status Measure(const Case& one, const std::string& name, bool is_csv, const LargeFile& file,
                 bool* all_right) {
    const std::string out = fmt::format("{}/{}-{}.result", folder_, is_csv ? "csv" : "binary", one.script);
    const bool is_pipeline = std::string_view(one.script) == "pipeline";
    Figures figures;
    if (one.has_peers && !memory_.peers.empty())
      for (const char* peer : kPeers) figures.peers.push_back({.name = peer});
    for (int round = 0; round < options_.rounds; ++round) {
      HEDDLE_RETURN_IF_ERROR(RunStage("read", file, &figures.read));
      if (is_csv || is_pipeline) HEDDLE_RETURN_IF_ERROR(RunStage("decode", file, &figures.decode));
      if (is_pipeline) {
        HEDDLE_RETURN_IF_ERROR(RunStage("compute", file, &figures.compute));
        HEDDLE_RETURN_IF_ERROR(RunStage("write", file, &figures.write));
      }
      HEDDLE_RETURN_IF_ERROR(RunScript(one, file, out, &figures));
      for (Peer& peer : figures.peers)
        HEDDLE_RETURN_IF_ERROR(RunPeer(one, file, out, figures.script.best(), &peer));
    }
    HEDDLE_RETURN_IF_ERROR(CompareBytes(one, file, out, &figures));
    *all_right &= figures.bytes != "OTHER" && figures.peak_bytes <= promise_;
    Print(one, name, figures);
    std::filesystem::remove(out);
    std::filesystem::remove(out + ".mtd");
    return OkStatus();
  }

  void Print(const Case& one, const std::string& name, const Figures& figures) const {
    const double alone =
        std::max({figures.read.best(), figures.decode.best(), figures.compute.best(), figures.write.best()});
    const double ratio = figures.script.best() / alone;
    const auto mb = [](int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
    if (options_.json) {
      std::string line = fmt::format(
          R"({{"bench":"memory","case":"{}","s":{:.2f},"read_s":{:.2f},"decode_s":{:.2f},"compute_s":{:.2f},)"
          R"("write_s":{:.2f},"ratio_to_slowest_stage":{:.3f},"peak_mb":{:.1f},"promise_mb":{:.1f},)"
          R"("enforced":{},"read_mb":{:.1f},"written_mb":{:.1f},"bytes":"{}","threads":{})",
          name, figures.script.best(), figures.read.best(), figures.decode.best(), figures.compute.best(),
          figures.write.best(), ratio, mb(figures.peak_bytes), mb(promise_), group_->is_enforced(),
          mb(figures.read_bytes), mb(figures.written_bytes), figures.bytes, options_.threads);
      for (const Peer& peer : figures.peers)
        line += peer.why_not.empty() ? fmt::format(R"(,"{}_s":{:.2f},"{}_peak_mb":{:.1f})", peer.name,
                                                   peer.seconds.best(), peer.name, mb(peer.peak_bytes))
                                     : fmt::format(R"(,"{}":{:?})", peer.name, peer.why_not);
      std::printf("%s}\n", line.c_str());
    } else {
      std::printf("%-26s %8.2f s", name.c_str(), figures.script.best());
      std::printf("  read %.2f", figures.read.best());
      if (!figures.decode.all.empty()) std::printf(", decode %.2f", figures.decode.best());
      if (!figures.write.all.empty())
        std::printf(", compute %.2f, write %.2f", figures.compute.best(), figures.write.best());
      std::printf(one.reads_once ? " s alone: %.2f of the slowest" : " s alone, %.2f times that", ratio);
      std::printf("; peak %.0f of %.0f MB; disk gave %.0f MB, took %.0f MB; bytes of a run in memory: %s\n",
                  mb(figures.peak_bytes), mb(promise_), mb(figures.read_bytes), mb(figures.written_bytes),
                  figures.bytes.c_str());
      for (const Peer& peer : figures.peers) {
        if (peer.why_not.empty())
          std::printf("  %-24s %8.2f s, %.2f times ours; peak %.0f MB\n", peer.name.c_str(),
                      peer.seconds.best(), peer.seconds.best() / figures.script.best(), mb(peer.peak_bytes));
        else
          std::printf("  %-24s %s\n", peer.name.c_str(), peer.why_not.c_str());
      }
    }
    std::fflush(stdout);
  }

  const BenchOptions& options_;
  const MemoryBenchOptions& memory_;
  const std::string folder_;
  std::string own_, heddle_, scripts_;
  int64_t limit_ = 0, promise_ = 0;
  std::unique_ptr<ControlGroup> group_;
};

}  // namespace

int RunMemory(const BenchOptions& options, const MemoryBenchOptions& memory) {
  const bool is_kept = !options.data.empty();
  const std::string folder = std::filesystem::absolute(is_kept ? options.data : MakeTemporaryFolder());
  std::filesystem::create_directories(folder);
  bool all_right = true;
  const Status status = MemoryBench(options, memory, folder).Run(&all_right);
  if (!status.ok()) std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
  if (!is_kept) std::filesystem::remove_all(folder);
  return status.ok() && all_right ? 0 : 1;
}

}  // namespace heddle::bench
