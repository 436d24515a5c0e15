// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/run_counted_on_device.h"

#include <utility>
#include <vector>

#include "ops/device/device_matrix.h"
#include "ops/device/operators/nonzero_cells.h"
#include "ops/device/operators/united_entries.h"

namespace heddle::ops {
namespace {

// The entries of the driver are counted, then made; then come the tiles, and the entries of results that are
// dense so far are counted, then made.
class QueuedCounted : public QueuedCall {
 public:
  QueuedCounted(std::shared_ptr<const DeviceTiles> tiles, const KernelCall& call, DeviceQueue& queue,
                std::span<Value> results, std::map<NodeId, Value> scalars, bool keeps_scalars)
      : tiles_(std::move(tiles)),
        program_(tiles_->program()),
        call_(call),
        inputs_(call.inputs.begin(), call.inputs.end()),
        infos_(call.input_infos.begin(), call.input_infos.end()),
        queue_(queue),
        results_(results),
        scalars_(std::move(scalars)),
        keeps_scalars_(keeps_scalars) {}

  Status Queue() {
    if (call_.inputs[static_cast<size_t>(program_.fused.driver)]->matrix().rows() == 0)
      return Unimplemented("on a device: entries of no rows");
    return program_.united.empty() ? QueueTiles() : CountEntries();
  }

  bool HasMore() const override {
    return tiles_call_ == nullptr || tiles_call_->HasMore() || !nonzeros_.empty();
  }
  Status QueueMore() override {
    if (tiles_call_ == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix driver, entries_->Make(queue_));
      there_[0] = Value(std::move(driver));
      entries_.reset();
      return QueueTiles();
    }
    if (tiles_call_->HasMore()) {
      HEDDLE_RETURN_IF_ERROR(tiles_call_->QueueMore());
      return CountCells();
    }
    for (const auto& [result, cells] : nonzeros_) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix made, cells->Make(queue_));
      results_[result] = Value(std::move(made));
    }
    nonzeros_.clear();
    return OkStatus();
  }
  bool HasRest() const override { return tiles_call_->HasRest(); }
  bool IsLong() const override { return tiles_call_->IsLong(); }
  Status Finish(std::span<Value> results) override { return tiles_call_->Finish(results); }

 private:
  Status CountEntries() {
    std::vector<int> united = {program_.fused.driver};
    united.insert(united.end(), program_.united.begin(), program_.united.end());
    there_.resize(united.size());
    std::vector<Matrix> matrices;
    for (size_t i = 0; i < united.size(); ++i) {
      const auto input = static_cast<size_t>(united[i]);
      HEDDLE_ASSIGN_OR_RETURN(matrices.emplace_back(),
                              EntriesToDevice(call_.inputs[input]->matrix(), tiles_->device(), queue_));
      there_[i] = Value(matrices.back());
      inputs_[input] = &there_[i];
    }
    HEDDLE_ASSIGN_OR_RETURN(entries_, UnitedEntries::Count(std::move(matrices), tiles_->device(), queue_));
    return OkStatus();
  }

  Status QueueTiles() {
    KernelCall call = call_;
    call.inputs = inputs_;
    call.input_infos = infos_;
    HEDDLE_ASSIGN_OR_RETURN(tiles_call_, tiles_->Queue(call, queue_, results_, scalars_, keeps_scalars_));
    return CountCells();
  }

  // When all tiles are queued.
  Status CountCells() {
    for (size_t r = 0; r < results_.size() && !tiles_call_->HasMore(); ++r) {
      if (!IsMadeDense(program_, r)) continue;
      HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<NonzeroCells> cells,
                              NonzeroCells::Count(results_[r].matrix(), tiles_->device(), queue_));
      nonzeros_.emplace_back(r, std::move(cells));
    }
    return OkStatus();
  }

  const std::shared_ptr<const DeviceTiles> tiles_;
  const TileProgram& program_;
  const KernelCall call_;
  std::vector<const Value*> inputs_;
  const std::vector<ValueInfo> infos_;
  DeviceQueue& queue_;
  const std::span<Value> results_;
  const std::map<NodeId, Value> scalars_;
  const bool keeps_scalars_;
  std::vector<Value> there_;  // On the device: CSR inputs whose entries are put together, the driver first.
  std::unique_ptr<UnitedEntries> entries_;
  std::unique_ptr<QueuedCall> tiles_call_;
  std::vector<std::pair<size_t, std::unique_ptr<NonzeroCells>>> nonzeros_;  // By result.
};

}  // namespace

bool IsMadeDense(const TileProgram& program, size_t r) {
  const NodeId root = program.fused.roots[r];
  const BodyRole role = program.roles.nodes[static_cast<size_t>(root)];
  return program.fused.body[root].info.format == Format::kSparse && role == BodyRole::kRows &&
         !program.IsPatterned(static_cast<int>(r));
}

bool CountsEntries(const TileProgram& program) {
  bool counts = !program.united.empty();
  for (size_t r = 0; r < program.fused.roots.size(); ++r) counts |= IsMadeDense(program, r);
  return counts;
}

Result<std::unique_ptr<QueuedCall>> QueueCounted(std::shared_ptr<const DeviceTiles> tiles,
                                                 const KernelCall& call, DeviceQueue& queue,
                                                 std::span<Value> results, std::map<NodeId, Value> scalars,
                                                 bool keeps_scalars) {
  auto queued = std::make_unique<QueuedCounted>(std::move(tiles), call, queue, results, std::move(scalars),
                                                keeps_scalars);
  if (const Status status = queued->Queue(); !status.ok()) {
    HoldUntilDone(queue, std::shared_ptr<QueuedCounted>(std::move(queued)));
    return status;
  }
  return std::unique_ptr<QueuedCall>(std::move(queued));
}

}  // namespace heddle::ops
