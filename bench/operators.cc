// SPDX-License-Identifier: Apache-2.0
#include "bench/operators.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/base/probe.h"
#include "bench/matrices/random_matrices.h"
#include "core/environment/clock.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/io/files/files.h"

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

bool Wanted(const BenchOptions& options, const std::string& name) {
  return name.find(options.only) != std::string::npos;
}

// `bytes`: compulsory traffic, what is read and written at least. Probe and operator take turns, so that both
// see the same machine; the best of each counts.
void RunCase(const BenchOptions& options, const std::string& name, double bytes, OperatorCall call,
             const Matrix& probe_data) {
  constexpr int kRounds = 15;
  double probe = 0, ms = 1e300;
  call();
  for (int round = 0; round < kRounds; ++round) {
    probe = std::max(probe, ReadBandwidth(probe_data.data(), probe_data.cells(), options.threads));
    ms = std::min(ms, Time([&] { call(); }));
  }
  const double limit_ms = bytes / probe / 1e6;
  std::printf(
      options.json
          ? "{\"bench\":\"operators\",\"case\":\"%s\",\"ms\":%.2f,\"gb_per_s\":%.2f,\"limit_ms\":%.2f,"
            "\"ratio_to_limit\":%.3f,\"probe_gb_per_s\":%.2f,\"threads\":%d}\n"
          : "%-28s %9.2f ms %7.2f GB/s   limit %9.2f ms   ratio %.3f   probe %.2f GB/s (%d threads)\n",
      name.c_str(), ms, bytes / ms / 1e6, limit_ms, ms / limit_ms, probe, options.threads);
  std::fflush(stdout);
}

void RunDense(const BenchOptions& options, ops::Arena* arena) {
  for (const int64_t columns : {10, 100, 1000}) {
    const int64_t rows = options.cells / columns;
    const Matrix x = RandomDense(rows, columns, 1, arena), v = RandomDense(columns, 1, 2, arena),
                 w = RandomDense(rows, 1, 3, arena);
    const double bytes = 8 * static_cast<double>(x.cells()), column_bytes = 8 * static_cast<double>(rows);
    const auto run = [&](const std::string& text, const std::string& op, double traffic,
                         std::vector<Value> inputs) {
      const std::string name = fmt::format("{} {}x{}", text, rows, columns);
      if (Wanted(options, name))
        RunCase(options, name, traffic, OperatorCall(op, std::move(inputs), arena), x);
    };
    if (columns == 10) run("X*Y", "*", 3 * bytes, {x, RandomDense(rows, columns, 4, arena)});
    run("sum(X)", "sum", bytes, {x});
    run("X%*%v", "%*%", bytes + column_bytes, {x, v});
    run("t(X)%*%v", "t%*%", bytes + column_bytes, {x, w});
    run("rowSums(X)", "rowSums", bytes + column_bytes, {x});
    run("colSums(X)", "colSums", bytes, {x});
  }
}

}  // namespace

int RunOperators(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  RunDense(options, &arena);
  return 0;
}

}  // namespace heddle::bench
