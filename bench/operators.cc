// SPDX-License-Identifier: Apache-2.0
#include "bench/operators.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "bench/hand.h"
#include "bench/probe.h"
#include "core/clock.h"
#include "core/double_text.h"
#include "ops/formats/files.h"
#include "ops/operator.h"
#include "ops/parallel.h"

namespace heddle::bench {
namespace {

// Calls an operator the way the actor runtime does.
class OperatorCall {
 public:
  OperatorCall(const std::string& op, std::vector<Value> inputs, ops::Arena* arena)
      : inputs_(std::move(inputs)), arena_(arena) {
    node_.op = op;
    files_ = ops::MakeFiles(std::filesystem::current_path());
    context_.files = files_.get();
    context_.clock = &SystemClock();
    context_.threads = arena->threads();
    std::vector<const Scalar*> scalars;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      node_.inputs.push_back(static_cast<NodeId>(i));
      const bool matrix = inputs_[i].IsMatrix();
      infos_.push_back(
          matrix ? ValueInfo::OfMatrix(inputs_[i].matrix().shape(), FormatOf(inputs_[i].matrix().storage()))
                 : ValueInfo::OfScalar(inputs_[i].scalar().type()));
      scalars.push_back(matrix ? nullptr : &inputs_[i].scalar());
    }
    Result<ValueInfo> info = ops::Infer({node_, infos_, scalars, files_.get()});
    if (!info.ok()) Fail(info.status());
    node_.info = *info;
    total_rows_ =
        !inputs_.empty() && inputs_[0].IsMatrix() ? inputs_[0].matrix().rows() : node_.info.shape.rows;
  }

  Value operator()() {
    std::vector<const Value*> pointers;
    for (const Value& input : inputs_) pointers.push_back(&input);
    Value result;
    arena_->Execute([&] {
      Result<Value> outcome = ops::CatalogKernels().Run(
          {node_, Phase::kWhole, pointers, infos_, 0, total_rows_, total_rows_, context_});
      if (!outcome.ok()) Fail(outcome.status());
      result = std::move(*outcome);
    });
    return result;
  }

 private:
  [[noreturn]] static void Fail(const Status& status) {
    std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
    std::exit(1);
  }

  Node node_;
  std::vector<Value> inputs_;
  std::vector<ValueInfo> infos_;
  int64_t total_rows_ = 0;
  std::unique_ptr<ops::Files> files_;
  ops::KernelContext context_;
  ops::Arena* arena_;
};

struct Case {
  std::string name;
  double bytes = 0;  // Compulsory traffic: what is read and written at least.
  std::function<void()> ours;
  std::function<void()> hand;
};

Matrix Fill(int64_t rows, int64_t columns, ops::Arena* arena) {
  Result<Matrix> matrix = Matrix::Dense(rows, columns);
  if (!matrix.ok()) {
    std::fprintf(stderr, "heddle-bench: %s\n", matrix.status().ToString().c_str());
    std::exit(1);
  }
  double* cells = matrix->mutable_data();
  arena->Execute([&] {
    ops::ParallelFor(rows * columns, 1 << 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        cells[i] = static_cast<double>((i * 2654435761u) % 1000003u) * 1e-6;
    });
  });
  return std::move(*matrix);
}

void PrintCase(const BenchOptions& options, const Case& c, double ms, double limit_ms, double probe) {
  const double bandwidth = c.bytes / ms / 1e6;
  const double hand_share = c.bytes / limit_ms / 1e6 / probe;
  if (options.json) {
    std::printf(
        "{\"bench\":\"operators\",\"case\":\"%s\",\"ms\":%.2f,\"gb_per_s\":%.2f,\"limit_ms\":%.2f,\"ratio_to_limit\":%.3f,"
        "\"hand_to_probe\":%.3f,\"probe_gb_per_s\":%.2f,\"threads\":%d}\n",
        c.name.c_str(), ms, bandwidth, limit_ms, ms / limit_ms, hand_share, probe, options.threads);
  } else {
    std::printf("%-28s %9.2f ms %7.2f GB/s   limit %9.2f ms   ratio %.3f   loop/probe %.2f\n", c.name.c_str(),
                ms, bandwidth, limit_ms, ms / limit_ms, hand_share);
  }
  std::fflush(stdout);
}

bool Wanted(const BenchOptions& options, const std::string& name) {
  return name.find(options.only) != std::string::npos;
}

// Probe, loop and operator take turns, so that all three see the same machine; the best of each counts.
void RunCase(const BenchOptions& options, const Case& c, const Matrix& probe_data) {
  constexpr int kRounds = 15;
  double probe = 0, hand = 1e300, ours = 1e300;
  c.ours();
  c.hand();
  for (int round = 0; round < kRounds; ++round) {
    probe = std::max(probe, ReadBandwidth(probe_data.data(), probe_data.cells(), options.threads));
    hand = std::min(hand, Time(c.hand));
    ours = std::min(ours, Time(c.ours));
  }
  PrintCase(options, c, ours, hand, probe);
}

void RunDense(const BenchOptions& options, ops::Arena* arena) {
  for (const int64_t columns : {10, 100, 1000}) {
    const int64_t rows = options.cells / columns;
    const std::string shape = fmt::format(" {}x{}", rows, columns);
    bool any = false;
    for (const char* name : {"X*Y", "sum(X)", "X%*%v", "t(X)%*%v", "rowSums(X)", "colSums(X)"})
      any = any || Wanted(options, name + shape);
    if (!any) continue;
    const Matrix x = Fill(rows, columns, arena);
    const Matrix v = Fill(columns, 1, arena);
    const Matrix w = Fill(rows, 1, arena);
    Matrix out = Fill(std::max(rows, columns), 1, arena);
    const auto bytes = static_cast<double>(x.cells()) * 8, column_bytes = static_cast<double>(rows) * 8;
    const int threads = options.threads;
    std::vector<Case> cases;
    if (columns == 10) {
      const Matrix y = Fill(rows, columns, arena);
      auto product = std::make_shared<Matrix>(Fill(rows, columns, arena));
      cases.push_back(
          {"X*Y" + shape, 3 * bytes,
           [call = std::make_shared<OperatorCall>("*", std::vector<Value>{x, y}, arena)] { (*call)(); },
           [=] { HandMultiply(x.data(), y.data(), product->mutable_data(), x.cells(), threads); }});
    }
    cases.push_back(
        {"sum(X)" + shape, bytes,
         [call = std::make_shared<OperatorCall>("sum", std::vector<Value>{x}, arena)] { (*call)(); },
         [=] { HandSum(x.data(), x.cells(), threads); }});
    cases.push_back(
        {"X%*%v" + shape, bytes + column_bytes,
         [call = std::make_shared<OperatorCall>("%*%", std::vector<Value>{x, v}, arena)] { (*call)(); },
         [=]() mutable { HandProduct(x.data(), v.data(), out.mutable_data(), rows, columns, threads); }});
    cases.push_back(
        {"t(X)%*%v" + shape, bytes + column_bytes,
         [call = std::make_shared<OperatorCall>("t%*%", std::vector<Value>{x, w}, arena)] { (*call)(); },
         [=]() mutable {
           HandTransposedProduct(x.data(), w.data(), out.mutable_data(), rows, columns, threads);
         }});
    cases.push_back(
        {"rowSums(X)" + shape, bytes + column_bytes,
         [call = std::make_shared<OperatorCall>("rowSums", std::vector<Value>{x}, arena)] { (*call)(); },
         [=]() mutable { HandRowSums(x.data(), out.mutable_data(), rows, columns, threads); }});
    cases.push_back(
        {"colSums(X)" + shape, bytes,
         [call = std::make_shared<OperatorCall>("colSums", std::vector<Value>{x}, arena)] { (*call)(); },
         [=]() mutable { HandColSums(x.data(), out.mutable_data(), rows, columns, threads); }});
    for (const Case& c : cases)
      if (Wanted(options, c.name)) RunCase(options, c, x);
  }
}

void RunMatmul(const BenchOptions& options, ops::Arena* arena) {
  constexpr int64_t kSize = 2000;
  const std::string name = "X%*%Y 2000x2000x2000";
  if (!Wanted(options, name)) return;
  OperatorCall call("%*%", {Fill(kSize, kSize, arena), Fill(kSize, kSize, arena)}, arena);
  double ms = 1e300, peak = 0;
  for (int round = 0; round < 8; ++round) {
    ms = std::min(ms, Time([&] { call(); }));
    peak = std::max(peak, FmaPeak(options.threads, ms));
  }
  const double flops = 2.0 * kSize * kSize * kSize;
  const double limit_ms = flops / peak / 1e6;
  std::printf(
      options.json
          ? "{\"bench\":\"operators\",\"case\":\"%s\",\"ms\":%.2f,\"gflop_per_s\":%.1f,\"limit_ms\":%.2f,"
            "\"ratio_to_limit\":%.3f,\"share_of_fma_peak\":%.3f,\"threads\":%d}\n"
          : "%-28s %9.2f ms %7.1f GFLOP/s  limit %9.2f ms   ratio %.3f   share of FMA peak %.3f   (%d threads)\n",
      name.c_str(), ms, flops / ms / 1e6, limit_ms, ms / limit_ms, limit_ms / ms, options.threads);
}

// Seconds that pandas needs for the same file; negative when it is not installed.
double PandasSeconds(const std::string& path) {
  const char* python = std::getenv("HEDDLE_BENCH_PYTHON");
  const std::string command = fmt::format(
      "{} -c \"import time, pandas as p; p.read_csv('{}', header=None, nrows=10)\nbest = 1e9\nfor _ in range(3):\n"
      "  t = time.time(); p.read_csv('{}', header=None); best = min(best, time.time() - t)\nprint(best)\" 2>/dev/null",
      python ? python : "python3", path, path);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return -1;
  double seconds = -1;
  if (std::fscanf(pipe, "%lf", &seconds) != 1) seconds = -1;
  pclose(pipe);
  return seconds;
}

void RunCsv(const BenchOptions& options, ops::Arena* arena) {
  const std::string name = "read csv 1000000x20";
  if (!Wanted(options, name)) return;
  const std::string path =
      fmt::format("{}/heddle-bench-{}.csv", std::filesystem::temp_directory_path().string(), getpid());
  {
    std::ofstream file(path);
    std::string line;
    for (int64_t i = 0; i < 1'000'000; ++i) {
      line.clear();
      for (int64_t j = 0; j < 20; ++j) {
        if (j > 0) line += ',';
        AppendDouble(static_cast<double>((i * 20 + j) * 2654435761u % 1000003u) / 1000003.0, &line);
      }
      line += '\n';
      file << line;
    }
  }
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  OperatorCall call("read", {Value(Scalar(path))}, arena);
  // The first look at the file is part of the cost: forget it by touching the file.
  const double ms = BestTime(3, [&] {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now());
    OperatorCall fresh("read", {Value(Scalar(path))}, arena);
    fresh();
  });
  const double pandas = PandasSeconds(path);
  std::filesystem::remove(path);
  std::string peer = pandas > 0 ? fmt::format("{:.1f}", bytes / pandas / 1e6) : "null";
  std::string ratio = pandas > 0 ? fmt::format("{:.3f}", pandas * 1000 / ms) : "null";
  std::printf(
      options.json
          ? "{\"bench\":\"operators\",\"case\":\"%s\",\"ms\":%.2f,\"mb_per_s\":%.1f,\"pandas_mb_per_s\":%s,"
            "\"ratio_to_pandas\":%s,\"threads\":%d}\n"
          : "%-28s %9.2f ms %7.1f MB/s   pandas %s MB/s   ratio to pandas %s   (%d threads)\n",
      name.c_str(), ms, bytes / ms / 1e3, peer.c_str(), ratio.c_str(), options.threads);
}

}  // namespace

int RunOperators(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  RunDense(options, &arena);
  RunMatmul(options, &arena);
  RunCsv(options, &arena);
  return 0;
}

}  // namespace heddle::bench
