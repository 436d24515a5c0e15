// SPDX-License-Identifier: Apache-2.0
#include "bench/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/probe.h"
#include "bench/matrices/data_shapes.h"
#include "core/environment/clock.h"
#include "core/values/column_groups.h"
#include "engine/engine.h"
#include "engine/interactive/interactive_session.h"
#include "ops/base/parallel.h"
#include "ops/compressed/compression_records.h"

namespace heddle::bench {
namespace {

struct Case {
  const char* name;
  const char* text;  ///< X is the matrix, r the result.
  int runs = 0;      ///< 0: as many as rounds.
};

// v, w, y and labels are those of Prepare(). Algorithms have a fixed number of rounds.
constexpr Case kCases[] = {
    {"sum", "r = as.matrix(sum(X))"},
    {"colSums", "r = colSums(X)"},
    {"rowSums", "r = rowSums(X)"},
    {"max", "r = as.matrix(max(X))"},
    {"X^2", "r = X^2"},
    {"X%*%v", "r = X %*% v"},
    {"t(v)%*%X", "r = t(w) %*% X"},
    {"t(X)%*%X", "r = t(X) %*% X"},
    {"mmchain", "r = t(X) %*% (w * (X %*% v))"},
    {"scale and shift", "r = (X - shifts) * scales"},
    {"k-means", "[r, assigned] = kmeans(X, 5, 1, 10, 0, FALSE, 50, 7)", 2},
    {"PCA", "[reduced, r, centers, factors] = pca(X, 2)", 2},
    {"multinomial regression",
     "r = multiLogReg(X=X, Y=labels, icpt=1, tol=0, reg=1, maxi=5, maxii=5, verbose=FALSE)", 2},
    {"linear regression, CG", "r = lmCG(X=X, y=y, reg=0.001, tol=0, maxi=20, verbose=FALSE)", 2},
    {"linear regression, direct", "r = lmDS(X=X, y=y, reg=0.001, verbose=FALSE)", 2},
    {"L2SVM", "r = l2svm(X=X, Y=classes, epsilon=0, reg=1, maxIterations=10)", 2},
};

constexpr const char* kPreparation =
    "v = rand(rows=ncol(D), cols=1, min=-1, max=1, seed=1)\n"
    "w = rand(rows=nrow(D), cols=1, min=-1, max=1, seed=2)\n"
    "shifts = colMeans(D)\n"
    "scales = 1 / (colMaxs(abs(D)) + 1)\n"
    "scores = D %*% (v * t(scales))\n"
    "y = scores + 0.1 * w\n"
    "classes = 2 * (y > mean(y)) - 1\n"
    "labels = 1 + (y > mean(y)) + (y > mean(y) + sd(y))\n";

[[noreturn]] void Fail(const std::string& what, const Status& status) {
  std::fprintf(stderr, "heddle-bench: compression: %s: %s\n", what.c_str(), status.ToString().c_str());
  std::exit(1);
}

struct Times {
  double dense = 0, sparse = 0, compressed = 0;  // Milliseconds; 0: not a contender.
};

// Milliseconds of all cores, which other programs on the machine do not take part in.
double CpuTime(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) * 1e3 / CLOCKS_PER_SEC;
}

// One matrix, stored in each way.
class DataSet {
 public:
  DataSet(const BenchOptions& options, std::string name) : options_(options), name_(std::move(name)) {
    engine::EngineOptions engine_options;
    engine_options.session.threads = options.threads;
    engine_options.session.seed = 1;
    Result<std::unique_ptr<engine::Engine>> engine = engine::Engine::Create(std::move(engine_options));
    if (!engine.ok()) Fail("engine", engine.status());
    engine_ = *std::move(engine);
    session_ = engine_->NewSession();
  }

  void Set(const std::string& variable, const Matrix& matrix) {
    if (Status status = session_->Set(variable, engine::HostValue(matrix)); !status.ok()) Fail(name_, status);
  }
  void Run(const std::string& text) {
    if (Status status = session_->Run(text, nullptr); !status.ok()) Fail(name_ + ": " + text, status);
  }
  Matrix Get(const std::string& variable) const {
    Result<engine::HostValue> value = session_->Get(variable);
    if (!value.ok()) Fail(name_, value.status());
    return value->value.matrix();
  }

  // Compresses, and prints what that took. `csr_bytes`: of the matrix as CSR. False where it stays as it is.
  bool Compress(int64_t csr_bytes) {
    const Matrix dense = Get("D");
    double read_cpu_ms = std::numeric_limits<double>::max(), read_gb_s = 0;
    double ms = read_cpu_ms, cpu_ms = read_cpu_ms;
    for (int i = 0; i < options_.rounds; ++i) {
      read_cpu_ms = std::min(read_cpu_ms, CpuTime([&] {
                               read_gb_s = std::max(
                                   read_gb_s, ReadBandwidth(dense.data(), dense.cells(), options_.threads));
                             }));
      cpu_ms = std::min(cpu_ms, CpuTime([&] { ms = std::min(ms, Time([&] { Run("C = compress(D)"); })); }));
    }
    const double read_ms = static_cast<double>(dense.bytes()) / read_gb_s / 1e6;
    const Value compressed = session_->variables().Find("C")->value;
    const bool is_compressed = compressed.IsMatrix() && compressed.matrix().IsCompressed();
    const std::string groups = is_compressed ? ops::GroupsText(compressed.matrix().groups()) : "as it is";
    const double ratio = static_cast<double>(dense.bytes()) / static_cast<double>(compressed.bytes());
    const double csr_ratio = static_cast<double>(csr_bytes) / static_cast<double>(compressed.bytes());
    if (options_.json)
      std::printf(
          R"({"bench":"compression","data":"%s","rows":%ld,"columns":%ld,"bytes":%ld,"compressed_bytes":%ld,)"
          R"("ratio":%.2f,"csr_ratio":%.2f,"compress_ms":%.2f,"read_ms":%.2f,"times_read":%.2f,"cpu_ms":%.2f,"cpu_times_read":%.2f,)"
          R"("groups":"%s","threads":%d})"
          "\n",
          name_.c_str(), static_cast<long>(dense.rows()), static_cast<long>(dense.columns()),
          static_cast<long>(dense.bytes()), static_cast<long>(compressed.bytes()), ratio, csr_ratio, ms,
          read_ms, ms / read_ms, cpu_ms, cpu_ms / read_cpu_ms, groups.c_str(), options_.threads);
    else
      std::printf(
          "%s, %ld x %ld: %.1f MB to %.1f MB, %.1f times smaller (%.1f times as CSR), in %.1f ms, %.1f times reading it once (of all cores %.1f ms, %.1f times)\n  %s\n",
          name_.c_str(), static_cast<long>(dense.rows()), static_cast<long>(dense.columns()),
          static_cast<double>(dense.bytes()) / 1e6, static_cast<double>(compressed.bytes()) / 1e6, ratio,
          csr_ratio, ms, ms / read_ms, cpu_ms, cpu_ms / read_cpu_ms, groups.c_str());
    std::fflush(stdout);
    return is_compressed;
  }

  // Best of the rounds, in turns. False where bytes differ.
  bool Measure(const Case& one, bool has_sparse) {
    const int runs = one.runs == 0 ? options_.rounds : one.runs;
    const std::vector<std::string> variables =
        has_sparse ? std::vector<std::string>{"D", "C", "S"} : std::vector<std::string>{"D", "C"};
    std::vector<double> ms(3, 0), cpu_ms(3, 0);
    std::vector<Matrix> results(3);
    for (int i = 0; i < runs; ++i)
      for (size_t k = 0; k < variables.size(); ++k) {
        Run("X = " + variables[k]);
        double took = 0;
        const double cpu_took = CpuTime([&] { took = Time([&] { Run(one.text); }); });
        ms[k] = i == 0 ? took : std::min(ms[k], took);
        cpu_ms[k] = i == 0 ? cpu_took : std::min(cpu_ms[k], cpu_took);
        results[k] = Get("r");
      }
    bool is_same = true;
    for (size_t k = 1; k < variables.size(); ++k)
      is_same = is_same && Matrix::SameCells(results[0], results[k]);
    const double best = has_sparse ? std::min(ms[0], ms[2]) : ms[0];
    if (options_.json)
      std::printf(R"({"bench":"compression","data":"%s","case":"%s","dense_ms":%.3f,"csr_ms":%.3f,"ms":%.3f,)"
                  R"("faster_than_dense":%.2f,"faster_than_best":%.2f,"dense_cpu_ms":%.3f,"cpu_ms":%.3f,)"
                  R"("same_bytes":%s})"
                  "\n",
                  name_.c_str(), one.name, ms[0], ms[2], ms[1], ms[0] / ms[1], best / ms[1], cpu_ms[0],
                  cpu_ms[1], is_same ? "true" : "false");
    else
      std::printf("  %-26s dense %10.3f ms  %s compressed %10.3f ms %8.2f times dense, %6.2f by CPU time%s\n",
                  one.name, ms[0], has_sparse ? fmt::format("CSR {:10.3f} ms ", ms[2]).c_str() : "", ms[1],
                  ms[0] / ms[1], cpu_ms[0] / std::max(cpu_ms[1], 1e-3), is_same ? "" : "  OTHER BYTES");
    std::fflush(stdout);
    if (!is_same)
      std::fprintf(stderr, "heddle-bench: compression: %s: %s has other bytes\n", name_.c_str(), one.name);
    return is_same;
  }

 private:
  const BenchOptions& options_;
  const std::string name_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::InteractiveSession> session_;
};

bool MeasureAll(const BenchOptions& options, DataSet* data, const std::string& name) {
  const Matrix given = data->Get("D");
  const int64_t nonzeros = given.CountNonzeros();
  const bool has_sparse = nonzeros < given.cells() / 2;
  const Result<Matrix> dense = ToDense(given);
  const Result<Matrix> sparse = has_sparse ? ToSparse(given) : Matrix();
  if (!dense.ok() || !sparse.ok()) Fail(name, dense.ok() ? sparse.status() : dense.status());
  data->Set("D", *dense);
  if (has_sparse) data->Set("S", *sparse);
  if (!options.data.empty())
    data->Run(fmt::format("write(D, \"{}/{}.csv\", format=\"csv\")", options.data, name));
  data->Run(kPreparation);
  const int64_t bytes_of_entry = BytesOf(given.element_type()) + static_cast<int64_t>(sizeof(int32_t));
  if (!data->Compress(nonzeros * bytes_of_entry + (given.rows() + 1) * static_cast<int64_t>(sizeof(int64_t))))
    return true;
  bool all_same = true;
  for (const Case& one : kCases) {
    const std::string whole = name + " " + one.name;
    if (whole.find(options.only) != std::string::npos) all_same = data->Measure(one, has_sparse) && all_same;
  }
  return all_same;
}

bool IsWanted(const BenchOptions& options, const std::string& name) {
  return std::any_of(std::begin(kCases), std::end(kCases), [&](const Case& one) {
    return (name + " " + one.name).find(options.only) != std::string::npos;
  });
}

}  // namespace

int RunCompression(const BenchOptions& options, bool is_full, const std::vector<std::string>& files) {
  bool all_same = true;
  for (const std::string& file : files) {
    const std::string name = std::filesystem::path(file).filename().string();
    if (!IsWanted(options, name)) continue;
    DataSet data(options, name);
    data.Run(fmt::format("D = as.matrix(read(\"{}\"))", file));
    all_same = MeasureAll(options, &data, name) && all_same;
  }
  if (!files.empty()) return all_same ? 0 : 1;
  ops::Arena arena(options.threads);
  for (const DataShape& shape : DataShapes()) {
    if (!IsWanted(options, shape.name)) continue;
    DataSet data(options, shape.name);
    Result<Matrix> matrix = Matrix();
    arena.Execute([&] { matrix = MatrixOfShape(shape, is_full ? shape.rows : shape.few_rows); });
    if (!matrix.ok()) Fail(shape.name, matrix.status());
    data.Set("D", *matrix);
    all_same = MeasureAll(options, &data, shape.name) && all_same;
  }
  return all_same ? 0 : 1;
}

}  // namespace heddle::bench
