// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/product.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/device_forms.h"
#include "ops/device/operators/join_leaves.h"
#include "ops/device/operators/long_rows.h"
#include "ops/device/operators/product_sources.h"
#include "ops/product/matmul.h"
#include "ops/product/transposed_order.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {
namespace {

// Steps of terms at which launches of a long chain begin: whole blocks of chains of floats.
constexpr int64_t kTermsOfStep = 256;

// Memory that one step allocates and others use.
struct MemoryOfSteps {
  std::shared_ptr<DeviceMemory> memory;
};
using Place = std::shared_ptr<MemoryOfSteps>;

Place PlaceIn(std::shared_ptr<DeviceMemory> memory) {
  return std::make_shared<MemoryOfSteps>(MemoryOfSteps{std::move(memory)});
}

// The launches of one product. A payload is allocated by the step that computes it, so that no more of them
// are there at a time than the tree joins.
class ProductSteps : public DeviceSteps {
 public:
  ProductSteps(const DeviceCommands& commands, const DeviceProduct& product, const ProductLimits& limits)
      : DeviceSteps(commands),
        product_(product),
        limits_(limits),
        tile_(limits.is_in_local_memory ? kTileInLocalMemory : kTileOfVectors),
        source_(OverCells(product.type,
                          std::string(kTreeOfLeaves) + std::string(limits.is_in_local_memory
                                                                       ? kProductInLocalMemory
                                                                       : kProductOfVectors))),
        node_source_(OverCells(product.type, kNodesOfProducts)) {}

  int64_t cells() const { return product_.m * product_.n; }

  /// The cells of the result, each one chain.
  void AddChains(const Place& out) {
    Place sums = out;
    if (product_.type == ElementType::kFloat32 && product_.terms > kTermsOfStep) {
      sums = PlaceIn(nullptr);
      AddAllocation(cells() * 8, sums);
    }
    AddLaunches(0, 1, 1, sums, out);
  }

  /// The payload of the node over leaves [begin, end), in memory of its own.
  Place AddNode(int64_t begin, int64_t end) {
    const int64_t run = RunOf(end - begin), runs = CeilDivide(end - begin, run), levels = LevelsOf(run);
    const int64_t arrays = runs * (levels + (runs > 1 ? 1 : 0));
    if (runs > 1 && arrays * cells() * 8 > limits_.payload_bytes) {
      const int64_t middle = begin + FloorPowerOfTwo(end - begin - 1);
      const Place left = AddNode(begin, middle), right = AddNode(middle, end);
      Add([this, left, right] {
        return LaunchOnCells("heddle_add", {cells(), left->memory, std::exchange(right->memory, nullptr)});
      });
      return left;
    }
    const Place root = PlaceIn(nullptr);
    AddAllocation(cells() * 8, root);
    // The queue does one thing after the other, so that all nodes share the memory of their leaves.
    AddAllocation(runs * levels * cells() * 8, nodes_);
    if (runs == 1) {
      AddLaunches(begin, end, run, root, nullptr);
      return root;
    }
    AddAllocation(runs * cells() * 8, payloads_);
    AddLaunches(begin, end, run, payloads_, nullptr);
    Add([this, runs, root] {
      return JoinLeaves(commands(), {.memory = payloads_->memory, .width = cells()}, /*begin=*/0, runs,
                        root->memory);
    });
    return root;
  }

  /// The cells of the result, from the payload of its root.
  void AddRoot(const Place& root, const Place& out) {
    Add([this, root, out] {
      const FinishedCells finished = {.kind = FinishedCells::Kind::kProduct,
                                      .rows = product_.m,
                                      .columns = product_.n,
                                      .row_step = product_.n,
                                      .column_step = 1,
                                      .is_symmetric = product_.is_symmetric,
                                      .type = product_.type};
      return FinishCells(commands(), finished, std::exchange(root->memory, nullptr), out->memory,
                         /*flags=*/nullptr);
    });
  }

  /// Keeps the cells on and above the diagonal of a payload.
  void AddPacking(const Place& payload) {
    Add([this, payload]() -> Status {
      const int64_t n = product_.n;
      HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> packed,
                              commands().device().Allocate(n * (n + 1) / 2 * 8));
      HEDDLE_RETURN_IF_ERROR(LaunchOnCells("heddle_pack", {n, payload->memory, packed}));
      payload->memory = std::move(packed);
      return OkStatus();
    });
  }

 private:
  int64_t TilesOfLeaf() const {
    return CeilDivide(product_.m, tile_.rows) * CeilDivide(product_.n, tile_.columns);
  }
  int64_t WorkOfTerm() const { return 2 * tile_.rows * tile_.columns; }

  // How many of so many leaves a group computes one after the other, which writes fewer payloads: a power of
  // two or all, so that the device is busy and launches are short.
  int64_t RunOf(int64_t leaves) const {
    const int64_t of_tiles = leaves * TilesOfLeaf() / limits_.least_tiles;
    const int64_t of_time = limits_.work_of_launch / (WorkOfTerm() * product_.height * limits_.least_tiles);
    const int64_t most = std::max<int64_t>(1, std::min(of_tiles, of_time));
    return most >= leaves ? leaves : FloorPowerOfTwo(most);
  }
  static int64_t LevelsOf(int64_t run) { return std::bit_width(static_cast<uint64_t>(run - 1)); }

  // At least so many bytes; more that are there already are as good.
  void AddAllocation(int64_t bytes, const Place& place) {
    Add([this, bytes, place]() -> Status {
      if (place->memory != nullptr && place->memory->bytes() >= bytes) return OkStatus();
      HEDDLE_ASSIGN_OR_RETURN(place->memory, commands().device().Allocate(bytes));
      return OkStatus();
    });
  }

  Status LaunchOnCells(const char* name, std::vector<DeviceArgument> arguments) {
    return commands().Launch(node_source_, name, arguments, commands().ShapeOfCells(cells()));
  }

  // Leaves [begin, end), in runs, to `out` as cells of the result, or, where it is nullptr, to `sums`.
  void AddLaunches(int64_t begin_leaf, int64_t end_leaf, int64_t run, const Place& sums, const Place& out) {
    const int64_t first_term = begin_leaf * product_.height;
    const int64_t terms = std::min(product_.terms, end_leaf * product_.height) - first_term;
    const int64_t most = std::max<int64_t>(1, std::min(product_.height, terms));
    const int64_t tiles = CeilDivide(end_leaf - begin_leaf, run) * TilesOfLeaf();
    const int64_t least = std::min(tiles, limits_.least_tiles);
    const int64_t tiles_at_once =
        std::clamp(limits_.work_of_launch / (WorkOfTerm() * most * run), least, tiles);
    const int64_t fitting = limits_.work_of_launch / (WorkOfTerm() * tiles_at_once);
    const int64_t terms_at_once =
        run > 1 || fitting >= most ? most : std::max(kTermsOfStep, fitting / kTermsOfStep * kTermsOfStep);
    for (int64_t tile = 0; tile < tiles; tile += tiles_at_once)
      for (int64_t term = 0; term < most; term += terms_at_once)
        AddLong([=, this] {
          const int64_t end = std::min(most, term + terms_at_once), is_symmetric = product_.is_symmetric;
          const int64_t is_last = out != nullptr && end == most;
          const std::shared_ptr<DeviceMemory>& to = sums->memory;
          const std::vector<DeviceArgument> arguments = {
              product_.m, product_.n, terms, product_.height, run, tile, is_symmetric, term, end,
              product_.a.memory, product_.a.first_cell + first_term * product_.a_column, product_.a_row,
              product_.a_column, product_.b.memory, product_.b.first_cell + first_term * product_.n,
              product_.n, to, run > 1 ? nodes_->memory : to, LevelsOf(run), out != nullptr ? out->memory : to,
              is_last};
          return commands().Launch(source_, "heddle_product", arguments,
                                   {std::min(tiles_at_once, tiles - tile), tile_.group_size});
        });
  }

  const DeviceProduct product_;
  const ProductLimits limits_;
  const ProductTile tile_;
  const std::string source_, node_source_;
  const Place payloads_ = PlaceIn(nullptr);  // Of runs.
  const Place nodes_ = PlaceIn(nullptr);     // Of runs of several leaves: those that wait for others.
};

}  // namespace

int64_t DeviceProduct::leaves() const {
  return height >= terms ? 1 : CeilDivide(terms, height);
}

ProductLimits ProductLimits::Of(const DeviceDescription& device) {
  // A unit of a device that computes doubles slowly does 3e9 operations a second: 50 ms.
  constexpr int64_t kWorkOfUnit = 150'000'000, kTilesOfUnit = 4, kPayloadBytes = int64_t{256} << 20;
  constexpr int64_t kPartOfMemory = 16;
  const bool has_groups = device.most_group_size >= kTileInLocalMemory.group_size &&
                          device.local_bytes >= kTileInLocalMemory.local_bytes;
  return {.is_in_local_memory = has_groups && !device.is_host,
          .work_of_launch = kWorkOfUnit * device.compute_units,
          .least_tiles = kTilesOfUnit * device.compute_units,
          .payload_bytes = std::min({kPayloadBytes, device.largest_allocation_bytes,
                                     device.memory_bytes / kPartOfMemory})};
}

// What ProductSteps::AddChains and AddNode allocate.
int64_t ScratchBytes(const DeviceProduct& product, const ProductLimits& limits, bool gives_nodes) {
  const int64_t payload = SaturatingProduct(SaturatingProduct(product.m, product.n), 8);
  const int64_t leaves = product.leaves();
  if (leaves == 1 && !product.is_symmetric && !gives_nodes) {
    const bool has_sums = product.type == ElementType::kFloat32 && product.terms > kTermsOfStep;
    return has_sums ? payload : 0;
  }
  // Nodes that wait for others while a group joins its leaves: one of each level. Payloads of all leaves, and
  // those nodes, are together in the bound, or the leaves are halved; each half has a root.
  const int64_t levels = std::bit_width(static_cast<uint64_t>(leaves - 1));
  const int64_t waiting = SaturatingProduct(payload, levels);
  const int64_t all = SaturatingProduct(payload, SaturatingSum(leaves, levels));
  const int64_t together = std::min(all, std::max(waiting, limits.payload_bytes));
  int64_t roots = all > limits.payload_bytes ? levels + 1 : 1;
  // Of a list: those of all nodes, which are one or two of each level, and the triangles of one.
  if (gives_nodes) roots += 2 * levels + 1;
  return SaturatingSum(together, SaturatingProduct(payload, roots));
}

Result<std::shared_ptr<const CellsOnDevice>> Multiply(const DeviceCommands& commands,
                                                      const DeviceProduct& product,
                                                      const ProductLimits& limits) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> result,
                          MakeOnDevice(commands.device(), {product.m, product.n}, product.type));
  if (product.m == 0 || product.n == 0) return result;
  const auto steps = std::make_shared<ProductSteps>(commands, product, limits);
  const Place out = PlaceIn(result->memory());
  if (product.leaves() == 1 && !product.is_symmetric)
    steps->AddChains(out);
  else
    steps->AddRoot(steps->AddNode(0, product.leaves()), out);
  HEDDLE_RETURN_IF_ERROR(steps->Run());
  return result;
}

Result<Matrix> NodesOf(const DeviceCommands& commands, const DeviceProduct& product, int64_t first_leaf,
                       const ProductLimits& limits) {
  const auto steps = std::make_shared<ProductSteps>(commands, product, limits);
  const bool is_empty = product.terms == 0 || product.m == 0 || product.n == 0;
  const std::vector<TreeNode> nodes =
      CoveringNodes(first_leaf, first_leaf + (is_empty ? 0 : product.leaves()));
  const int64_t width = product.is_symmetric ? product.n * (product.n + 1) / 2 : steps->cells();
  HEDDLE_ASSIGN_OR_RETURN(Matrix list, Matrix::Dense(static_cast<int64_t>(nodes.size()), 2 + width));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int64_t begin = nodes[i].FirstLeaf() - first_leaf;
    const Place payload = steps->AddNode(begin, begin + (int64_t{1} << nodes[i].level));
    if (product.is_symmetric) steps->AddPacking(payload);
    double* const row = list.mutable_data() + static_cast<int64_t>(i) * list.columns();
    row[0] = static_cast<double>(nodes[i].index);
    row[1] = nodes[i].level;
    steps->Add([list, payload, width, row, &queue = commands.queue()] {
      const Status read = queue.Read(*payload->memory, 0, width * 8, row + 2);
      // What is queued reads the payload and writes to the list.
      const auto held = [list, memory = std::exchange(payload->memory, nullptr)](const Status&) {};
      const Status holds = queue.WhenDone(held);
      if (!holds.ok()) static_cast<void>(queue.Finish());
      return read.ok() ? holds : read;
    });
  }
  HEDDLE_RETURN_IF_ERROR(steps->Run());
  return list;
}

Result<std::optional<Value>> MultiplyOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const std::optional<Value> nothing;
  const Matrix &x = call.inputs[0]->matrix(), &y = call.inputs[1]->matrix();
  if (x.columns() != y.rows() || x.element_type() != y.element_type()) return nothing;
  if (IsNarrow(y.columns())) {
    if (x.columns() <= kColumnChunk || y.columns() == 0) return nothing;
    return MultiplyLongRowsOnDevice(call, queue);
  }
  const int64_t all_rows = call.input_infos[0].shape.IsKnown() ? call.input_infos[0].shape.rows : x.rows();
  const DeviceProduct product = {
      .m = x.rows(),
      .n = y.columns(),
      .terms = x.columns(),
      .height = SplitsInner(all_rows, x.columns(), y.columns()) ? Granule(x.columns()) : x.columns(),
      .type = x.element_type(),
      .a = PlaceOf(x),
      .a_row = x.columns(),
      .b = PlaceOf(y)};
  DeviceCommands commands(call, queue);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> cells,
                          Multiply(commands, product, ProductLimits::Of(commands.description())));
  return std::optional<Value>(Matrix::OfDeviceCells(cells));
}

Result<std::optional<Value>> MultiplyTransposedOnDevice(const KernelCall& call, DeviceQueue& queue) {
  const std::optional<Value> nothing;
  const Matrix &x = call.inputs[0]->matrix(), &y = call.inputs[1]->matrix();
  if (IsNarrow(y.columns()) || x.rows() != y.rows() || x.element_type() != y.element_type()) return nothing;
  const bool is_whole = call.phase == Phase::kWhole;
  const TransposedOrder order(call.node, call.input_infos, is_whole ? x.rows() : call.total_rows, x.columns(),
                              y.columns());
  if (order.accumulation != Accumulation::kCells) return nothing;
  const DeviceProduct product = {.m = order.n,
                                 .n = order.k,
                                 .terms = x.rows(),
                                 .height = order.height,
                                 .type = x.element_type(),
                                 .a = PlaceOf(x),
                                 .a_row = 1,
                                 .a_column = order.n,
                                 .b = PlaceOf(y),
                                 .is_symmetric = order.symmetric};
  DeviceCommands commands(call, queue);
  const ProductLimits limits = ProductLimits::Of(commands.description());
  if (is_whole) {
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> cells,
                            Multiply(commands, product, limits));
    return std::optional<Value>(Matrix::OfDeviceCells(cells));
  }
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix nodes, NodesOf(commands, product, x.rows() == 0 ? 0 : call.row_begin / order.height, limits));
  return std::optional<Value>(std::move(nodes));
}

}  // namespace heddle::ops
