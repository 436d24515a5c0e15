// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/run_compressed.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/cells/decode_sparse.h"
#include "ops/cells/storage.h"
#include "ops/cells/stored_inputs.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {
namespace {

// Cells of a tile: with what a kernel makes of them they stay in the second level of the cache.
constexpr int64_t kTileCells = 1 << 14;

bool IsCompressed(const Value* input) {
  return input != nullptr && input->IsMatrix() && input->matrix().IsCompressed();
}

// A call that is cut into tiles of rows.
class TiledCall {
 public:
  TiledCall(const Operator& op, const KernelCall& call, const RunDecoded& run)
      : op_(op), call_(call), run_(run), rule_(RowRuleOf(call.node, call.input_infos)) {}

  // Finds out how to cut; false where rows cannot be.
  bool Prepare() {
    const bool is_reduced = rule_ == RowRule::kReduce;
    if (call_.phase != Phase::kWhole && call_.phase != Phase::kPartial) return false;
    if (!is_reduced && (rule_ != RowRule::kRowWise || op_.run == nullptr || !call_.node.info.IsMatrix()))
      return false;
    int64_t widest = is_reduced ? 1 : call_.node.info.shape.columns;
    rows_ = call_.row_end - call_.row_begin;
    by_rows_.assign(call_.inputs.size(), false);
    sparse_rows_.resize(call_.inputs.size());
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const Value* const input = call_.inputs[i];
      if (input == nullptr || input->IsScalar() ||
          InputUseOf(call_.node, call_.input_infos, static_cast<int>(i)) != InputUse::kRows)
        continue;
      if (input->IsPanels() || input->shape().rows != rows_) return false;
      by_rows_[i] = true;
      has_rows_ = has_rows_ || IsCompressed(input);
      widest = std::max(widest, WidthOf(i));
    }
    const int64_t unit = is_reduced ? Granule(call_.total_rows) : 1;
    height_ = std::max<int64_t>(1, kTileCells / std::max<int64_t>(widest, 1) / unit) * unit;
    return has_rows_ && rows_ > height_ && call_.row_begin % unit == 0;
  }

  Status Run(std::span<Value> results) {
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      whole_.push_back(by_rows_[i] ? nullptr : call_.inputs[i]);
      storages_.push_back(Storage::kDense);
      if (!IsCompressed(call_.inputs[i])) continue;
      const Matrix& matrix = call_.inputs[i]->matrix();
      storages_[i] = StorageFor(op_, call_, i);
      if (by_rows_[i]) continue;
      HEDDLE_ASSIGN_OR_RETURN(Matrix decoded, StoredAs(matrix, storages_[i]));
      decoded_.push_back(std::make_unique<Value>(std::move(decoded)));
      whole_.back() = decoded_.back().get();
    }
    if (rule_ == RowRule::kReduce) return Reduce(results);
    if (call_.node.info.format == Format::kSparse) {
      HEDDLE_ASSIGN_OR_RETURN(results[0], JoinedTiles(call_.phase));
      return OkStatus();
    }
    HEDDLE_ASSIGN_OR_RETURN(results[0], RowsInPlace());
    return OkStatus();
  }

 private:
  // How many cells of a row of input i take up the cache.
  int64_t WidthOf(size_t i) {
    const Shape shape = call_.inputs[i]->shape();
    if (!IsCompressed(call_.inputs[i]) || StorageFor(op_, call_, i) != Storage::kCsr) return shape.columns;
    auto rows = std::make_unique<SparseRows>(call_.inputs[i]->matrix());
    if (!rows->HasFewEntries()) return shape.columns;
    sparse_rows_[i] = std::move(rows);
    return static_cast<int64_t>(2 * sparse_rows_[i]->EntriesOfRow()) + 1;
  }

  int64_t Tiles() const { return CeilDivide(rows_, height_); }

  Result<Value> RunTile(Phase phase, int64_t tile) const {
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    const int64_t begin = tile * height_;
    const int64_t end = std::min(rows_, begin + height_);
    std::vector<Value> rows(call_.inputs.size());
    std::vector<const Value*> inputs = whole_;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!by_rows_[i]) continue;
      if (sparse_rows_[i] != nullptr) {
        HEDDLE_ASSIGN_OR_RETURN(Matrix decoded, sparse_rows_[i]->Decode(begin, end));
        rows[i] = Value(std::move(decoded));
        inputs[i] = &rows[i];
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(rows[i], SliceRows(*call_.inputs[i], begin, end));
      if (IsCompressed(&rows[i])) {
        // Cells of a tile are in the cache: to count them there costs less than in all dictionaries.
        HEDDLE_ASSIGN_OR_RETURN(Matrix decoded, AsDense(rows[i].matrix()));
        HEDDLE_ASSIGN_OR_RETURN(decoded, StoredAs(decoded, storages_[i]));
        rows[i] = Value(std::move(decoded));
      }
      inputs[i] = &rows[i];
    }
    Value result;
    HEDDLE_RETURN_IF_ERROR(run_({.node = call_.node,
                                 .phase = phase,
                                 .inputs = inputs,
                                 .input_infos = call_.input_infos,
                                 .row_begin = call_.row_begin + begin,
                                 .row_end = call_.row_begin + end,
                                 .total_rows = call_.total_rows,
                                 .context = call_.context,
                                 .op = call_.op},
                                {&result, 1}));
    return result;
  }

  // Calls take(tile, result) for every tile, on all threads.
  Status ForTiles(Phase phase, const std::function<Status(int64_t tile, Value result)>& take) const {
    std::vector<Status> failures(static_cast<size_t>(Tiles()));
    ParallelFor(Tiles(), 1, [&](int64_t begin, int64_t end) {
      const SerialLoops serial;
      for (int64_t tile = begin; tile < end; ++tile) {
        Result<Value> result = RunTile(phase, tile);
        failures[static_cast<size_t>(tile)] =
            result.ok() ? take(tile, *std::move(result)) : std::move(result).status();
      }
    });
    for (const Status& failure : failures) HEDDLE_RETURN_IF_ERROR(failure);
    return OkStatus();
  }

  Result<Value> JoinedTiles(Phase phase) const {
    std::vector<Value> pieces(static_cast<size_t>(Tiles()));
    HEDDLE_RETURN_IF_ERROR(ForTiles(phase, [&](int64_t tile, Value result) {
      pieces[static_cast<size_t>(tile)] = std::move(result);
      return OkStatus();
    }));
    std::vector<const Value*> pointers;
    for (const Value& piece : pieces) pointers.push_back(&piece);
    return JoinRows(pointers);
  }

  Result<Value> RowsInPlace() const {
    const ValueInfo& info = call_.node.info;
    HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(rows_, info.shape.columns, info.element_type));
    const int64_t bytes_of_row = info.shape.columns * BytesOf(info.element_type);
    HEDDLE_RETURN_IF_ERROR(ForTiles(call_.phase, [&](int64_t tile, Value result) -> Status {
      const Matrix& cells = result.matrix();
      if (!cells.IsDense() || cells.columns() != info.shape.columns ||
          cells.element_type() != info.element_type)
        return Internal("{}: a tile of other cells than its result", call_.node.op);
      if (cells.cells() == 0) return OkStatus();
      std::memcpy(all.mutable_data<char>() + tile * height_ * bytes_of_row, cells.data<char>(),
                  static_cast<size_t>(cells.rows() * bytes_of_row));
      return OkStatus();
    }));
    return Value(std::move(all));
  }

  Status Reduce(std::span<Value> results) const {
    HEDDLE_ASSIGN_OR_RETURN(Value nodes, JoinedTiles(Phase::kPartial));
    if (call_.phase == Phase::kPartial) {
      results[0] = std::move(nodes);
      return OkStatus();
    }
    const Value* const inputs[] = {&nodes};
    return run_({.node = call_.node,
                 .phase = Phase::kFinish,
                 .inputs = inputs,
                 .input_infos = call_.input_infos,
                 .total_rows = call_.total_rows,
                 .context = call_.context,
                 .op = call_.op},
                results);
  }

  const Operator& op_;
  const KernelCall& call_;
  const RunDecoded& run_;
  const RowRule rule_;
  std::vector<bool> by_rows_;
  bool has_rows_ = false;  // Of a compressed matrix.
  int64_t rows_ = 0;
  int64_t height_ = 1;
  std::vector<const Value*> whole_;  // What every tile reads, by inputs; nullptr: rows, or nothing.
  std::vector<Storage> storages_;    // In which the inputs are decoded.
  std::vector<std::unique_ptr<SparseRows>> sparse_rows_;  // Of inputs whose rows are decoded as CSR.
  std::vector<std::unique_ptr<Value>> decoded_;
};

}  // namespace

bool HasCompressed(const KernelCall& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), IsCompressed);
}

Status RunCompressed(const Operator& op, const KernelCall& call, std::span<Value> results,
                     const RunDecoded& run) {
  const bool is_cut = call.phase == Phase::kWhole || call.phase == Phase::kPartial;
  if (op.run_compressed != nullptr && is_cut) {
    HEDDLE_ASSIGN_OR_RETURN(std::optional<Value> result, op.run_compressed(call));
    if (result) {
      results[0] = *std::move(result);
      return OkStatus();
    }
  }
  TiledCall tiles(op, call, run);
  if (tiles.Prepare()) return tiles.Run(results);
  return run(call, results);
}

}  // namespace heddle::ops
