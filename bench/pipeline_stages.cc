// SPDX-License-Identifier: Apache-2.0
#include "bench/pipeline_stages.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "bench/base/expression.h"
#include "bench/base/probe.h"
#include "bench/matrices/random_matrices.h"
#include "core/environment/descriptor.h"
#include "ops/base/parallel.h"
#include "ops/io/files/descriptor_bytes.h"
#include "ops/io/formats/file_format.h"

namespace heddle::bench {
namespace {

constexpr int64_t kBlockBytes = int64_t{1} << 20;
constexpr int64_t kPanelBytes = int64_t{32} << 20;

struct Stage {
  std::string path;
  ops::Arena* arena;
};

Status ReadAlone(const Stage& stage) {
  const Descriptor file(open(stage.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return NotFound("{} cannot be opened", stage.path);
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(stage.path));
  std::atomic<int64_t> next = 0;
  std::vector<Status> found(static_cast<size_t>(stage.arena->threads()));
  std::vector<std::thread> threads;
  for (Status& status : found)
    threads.emplace_back([&] {
      std::string block(static_cast<size_t>(kBlockBytes), '\0');
      for (int64_t at = 0; status.ok() && (at = next.fetch_add(kBlockBytes)) < size;)
        status = ops::ReadBytesAt(file.get(), stage.path, size, at, std::min(kBlockBytes, size - at),
                                  block.data());
    });
  for (std::thread& thread : threads) thread.join();
  for (Status& status : found) HEDDLE_RETURN_IF_ERROR(std::move(status));
  return OkStatus();
}

Status DecodeAlone(const Stage& stage) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles("/");
  Node node;
  node.op = "read";
  HEDDLE_ASSIGN_OR_RETURN(const ops::ReadOptions options, ops::ResolveReadOptions(node, stage.path, *files));
  Status status;
  stage.arena->Execute([&] {
    status = [&]() -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const ops::FileSummary summary, ops::Summarize(options, *files));
      const int64_t rows = summary.shape.rows;
      const int64_t panel = std::max<int64_t>(1, kPanelBytes / (8 * summary.shape.columns));
      for (int64_t at = 0; at < rows; at += panel)
        HEDDLE_RETURN_IF_ERROR(
            ops::ReadRows(options, summary, at, std::min(rows, at + panel), *files).status());
      return OkStatus();
    }();
  });
  return status;
}

Result<Shape> ShapeOfFile(const std::string& path) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles("/");
  Node node;
  node.op = "read";
  HEDDLE_ASSIGN_OR_RETURN(const ops::ReadOptions options, ops::ResolveReadOptions(node, path, *files));
  return Shape{options.rows, options.columns};
}

Status ComputeAlone(const Stage& stage) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfFile(stage.path));
  const int64_t panel = std::max<int64_t>(1, kPanelBytes / (8 * shape.columns));
  HEDDLE_ASSIGN_OR_RETURN(
      Expression function,
      Expression::Compile("Y = sqrt(abs(X)) * 0.5 + 1", {"Y"},
                          {{"X", Value(RandomDense(panel, shape.columns, 1, stage.arena))}}, "cost",
                          stage.arena));
  for (int64_t at = 0; at < shape.rows; at += panel) function.Run();
  return OkStatus();
}

Status WriteAlone(const Stage& stage) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfFile(stage.path));
  const std::string path = stage.path + ".written";
  const std::string block(static_cast<size_t>(kBlockBytes), 'x');
  const int64_t size = 8 * shape.Cells();
  Status status;
  {
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.ok()) return NotFound("{} cannot be made", path);
    ops::EarlyFlush flush;
    for (int64_t at = 0; at < size && status.ok(); at += kBlockBytes) {
      const int64_t count = std::min(kBlockBytes, size - at);
      status = ops::WriteBytesAt(file.get(), at,
                                 std::string_view(block).substr(0, static_cast<size_t>(count)), path);
      flush.Add(file.get(), at, count);
    }
    if (status.ok() && fsync(file.get()) != 0) status = DataLoss("{} cannot be written", path);
  }
  unlink(path.c_str());
  return status;
}

}  // namespace

int RunMemoryStage(const std::vector<std::string>& words) {
  using Run = Status (*)(const Stage&);
  static const std::map<std::string, Run> stages = {
      {"read", ReadAlone}, {"decode", DecodeAlone}, {"compute", ComputeAlone}, {"write", WriteAlone}};
  const auto found = words.size() == 3 ? stages.find(words[0]) : stages.end();
  if (found == stages.end()) return 2;
  ops::Arena arena(std::max(1, std::atoi(words[2].c_str())));
  Status status;
  const double seconds = 1e-3 * Time([&] { status = found->second({words[1], &arena}); });
  if (!status.ok()) {
    std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("%.6f\n", seconds);
  return 0;
}

}  // namespace heddle::bench
