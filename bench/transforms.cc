// SPDX-License-Identifier: Apache-2.0
#include "bench/transforms.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/base/probe.h"
#include "core/environment/clock.h"
#include "core/values/frame.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"

namespace heddle::bench {
namespace {

constexpr int64_t kWords = 10'000;

// Cell (i, j) of every column is a word of "word0" to "word9999", drawn by the bits of (i, j).
Frame FrameOfWords(int64_t rows, int64_t columns) {
  std::vector<Column> made;
  Schema schema;
  for (int64_t j = 0; j < columns; ++j) {
    std::string texts;
    std::vector<int64_t> offsets = {0};
    for (int64_t i = 0; i < rows; ++i) {
      const uint64_t bits = static_cast<uint64_t>(i * columns + j) * 0x9e3779b97f4a7c15ULL;
      texts += "word" + std::to_string((bits >> 32) % kWords);
      offsets.push_back(static_cast<int64_t>(texts.size()));
    }
    Column column =
        *Column::Make(ColumnType::kString, rows, static_cast<int64_t>(texts.size()), /*may_miss=*/false);
    std::copy(offsets.begin(), offsets.end(), column.mutable_offsets());
    std::copy(texts.begin(), texts.end(), column.mutable_texts());
    made.push_back(std::move(column));
    schema.types.push_back(ColumnType::kString);
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(made));
}

std::string SpecOf(const char* key, int64_t columns) {
  std::string spec = fmt::format("{{ids: true, {}: [", key);
  for (int64_t j = 1; j <= columns; ++j) spec += fmt::format("{}{}", j > 1 ? ", " : "", j);
  return spec + "]}";
}

[[noreturn]] void Fail(const Status& status) {
  std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

double EncodeMs(const Frame& frame, const std::string& spec, int rounds, ops::Arena* arena) {
  const Value target(frame), text{Scalar(spec)};
  const Value* const inputs[] = {&target, &text};
  const ValueInfo infos[] = {ValueInfo::OfFrame(frame.rows(), frame.schema()),
                             ValueInfo::OfScalar(ValueType::kString)};
  const Scalar* const scalars[] = {nullptr, &text.scalar()};
  Node node;
  node.op = "transformencode";
  node.inputs = {0, 1};
  const Result<ValueInfo> info = ops::Infer({node, infos, scalars}, &node.results);
  if (!info.ok()) Fail(info.status());
  node.info = *info;
  ops::KernelContext context;
  context.clock = &SystemClock();
  context.threads = arena->threads();
  return BestTime(rounds, [&] {
    arena->Execute([&] {
      Value results[2];
      const Status status = ops::CatalogKernels().Run(
          {node, Phase::kWhole, inputs, infos, 0, frame.rows(), frame.rows(), context}, results);
      if (!status.ok()) Fail(status);
    });
  });
}

}  // namespace

int RunTransforms(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  for (const int64_t columns : {1, 10, 100}) {
    const int64_t rows = options.cells / columns;
    const std::string size = fmt::format("{}x{}", rows, columns);
    for (const auto& [name, key] :
         {std::pair("recode", "recode"), std::pair("recode+dummycode", "dummycode")}) {
      if (std::string(name).find(options.only) == std::string::npos) continue;
      const Frame frame = FrameOfWords(rows, columns);
      const double ms = EncodeMs(frame, SpecOf(key, columns), options.rounds, &arena);
      std::printf(options.json
                      ? "{\"bench\":\"transforms\",\"case\":\"%s %s\",\"ms\":%.1f,\"ns_per_cell\":%.2f,"
                        "\"threads\":%d}\n"
                      : "%-18s %-14s %9.1f ms %7.2f ns a cell (%d threads)\n",
                  name, size.c_str(), ms, ms * 1e6 / static_cast<double>(rows * columns), options.threads);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace heddle::bench
