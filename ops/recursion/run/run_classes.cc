// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/run_classes.h"

#include <algorithm>
#include <optional>

#include "ops/base/parallel.h"
#include "ops/recursion/body/batch_time.h"

namespace heddle::ops {
namespace {

size_t ProductsOf(const std::vector<ClassRun>& classes) {
  size_t products = 0;
  for (const ClassRun& one : classes)
    if (one.results != nullptr) products = std::max(products, one.results->products.size());
  return products;
}

}  // namespace

TreeParts ChooseParts(const Linearized& structure, const std::vector<ClassRun>& classes) {
  if (ParallelThreads() < 2) return {};
  std::vector<std::optional<BodyTime>> times;
  for (const ClassRun& one : classes)
    times.push_back(one.run == nullptr ? std::nullopt : std::optional(one.run->time()));
  return ChooseParts(structure, ParallelThreads(), [&](int32_t node_class, int64_t rows, int threads) {
    return times[static_cast<size_t>(node_class)]->Of(rows, threads);
  });
}

Result<bool> RunClasses(const Linearized& structure, const std::vector<ClassRun>& classes,
                        const TreeParts& parts) {
  const auto run = [&](std::span<const Linearized::Batch> batches, PendingProducts* pending) -> Status {
    for (const Linearized::Batch& batch : batches) {
      const ClassRun& one = classes[static_cast<size_t>(batch.node_class)];
      HEDDLE_RETURN_IF_ERROR(one.run->RunBatch(batch.begin, batch.end, one.results, pending));
      if (one.run->met_large_integer()) break;
    }
    return OkStatus();
  };
  const auto is_refused = [&] {
    return std::any_of(classes.begin(), classes.end(), [](const ClassRun& one) {
      return one.run != nullptr && one.run->met_large_integer();
    });
  };
  std::vector<PendingProducts> pending(parts.parts.size() + 1, PendingProducts(ProductsOf(classes)));
  HEDDLE_RETURN_IF_ERROR(
      EachPart(parts, [&](size_t part) { return run(parts.parts[part], &pending[part]); }));
  if (is_refused()) return false;
  PendingProducts& of_rest = pending.back();
  for (size_t part = 0; part < parts.parts.size(); ++part)
    for (size_t product = 0; product < of_rest.size(); ++product)
      of_rest[product].insert(of_rest[product].end(), pending[part][product].begin(),
                              pending[part][product].end());
  HEDDLE_RETURN_IF_ERROR(run(parts.RestOf(structure), &of_rest));
  return !is_refused();
}

}  // namespace heddle::ops
