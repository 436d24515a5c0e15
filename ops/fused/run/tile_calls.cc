// SPDX-License-Identifier: Apache-2.0
// What the steps of a tile program need before the first tile of a call and keep behind the last one. Small
// operators run hundreds of thousands of times in a second: whatever is the same at every call is made once.
#include <algorithm>
#include <numeric>

#include "core/values/panels.h"
#include "ops/fused/run/tile_steps.h"

namespace heddle::ops {
namespace {

// Most that waits for the next call of a program: a thread's buffers of plain tiles.
constexpr int64_t kMostIdleDoubles = (64 << 10) / sizeof(double);

// Columns of buffers that take little room beside decoded rows.
constexpr int64_t kFewBufferColumns = 8;

bool IsPlain(const TileProgram& program) {
  if (program.by_pattern || program.cut_columns > 0) return false;
  const bool steps = std::all_of(program.steps.begin(), program.steps.end(), [](const Step& step) {
    switch (step.kind) {
      case Step::Kind::kRegion:
      case Step::Kind::kWiden:
      case Step::Kind::kRound:
      case Step::Kind::kNarrow:
      case Step::Kind::kExpand:
      case Step::Kind::kCopy:
      case Step::Kind::kFoldRows:
      case Step::Kind::kRoot: return true;
      default: return false;
    }
  });
  return steps && std::all_of(program.roots.begin(), program.roots.end(), [](const TileRoot& root) {
           return root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns;
         });
}

}  // namespace

std::shared_ptr<TileSteps> IdleTileSteps::Take() {
  const std::lock_guard lock(mutex_);
  steps_.reserve(kMost);  // So that giving back, in destructors, allocates nothing.
  if (steps_.empty()) return nullptr;
  std::shared_ptr<TileSteps> steps = std::move(steps_.back());
  steps_.pop_back();
  return steps;
}

void IdleTileSteps::GiveBack(std::shared_ptr<TileSteps> steps) {
  const std::lock_guard lock(mutex_);
  if (steps_.size() < kMost) steps_.push_back(std::move(steps));
}

TileSteps::TileSteps(const TileProgram& program)
    : program_(program),
      pair_of_program_(FindPairedProduct(program)),
      sparse_pair_(FindSparsePair(program)),
      is_plain_(IsPlain(program)),
      scalars_(program),
      narrow_(program.steps.size()),
      narrow_spread_(program.steps.size()),
      finite_(program.steps.size(), true),
      packed_(program.steps.size()),
      packed_singles_(program.steps.size()),
      results_(program.fused.roots.size(), nullptr),
      background_(program.fused.roots.size(), nullptr),
      column_leaves_(program.roots.size()),
      saved_(static_cast<size_t>(program.saved_arrays), nullptr) {}

TileSteps::~TileSteps() { delete of_others_.load(std::memory_order_relaxed); }

Status TileSteps::Prepare(const KernelCall& call) {
  ++calls_;
  body_.emplace(program_, call);
  HEDDLE_RETURN_IF_ERROR(scalars_.Evaluate(call));
  HEDDLE_RETURN_IF_ERROR(MakeTileInputs(program_, call, &inputs_));
  // Decoded rows are in the first-level cache: there is nothing to wait for.
  pair_ = pair_of_program_;
  if (pair_.root >= 0 && IsDecoded(program_.steps[static_cast<size_t>(pair_.root)].from)) pair_ = {};
  int64_t decoded = 0;  // Columns.
  for (const auto& decoder : inputs_.decoders)
    if (decoder != nullptr) decoded = std::max(decoded, decoder->columns());
  sizes_ = ChooseTileSizes(program_, pair_, inputs_.doubles);
  if (is_plain_)  // No more than there are: buffers of small operators stay small, and in the caches.
    sizes_.rows = std::min(sizes_.rows,
                           std::max<int64_t>(CeilDivide(driver().rows(), kRowsTogether), 1) * kRowsTogether);
  if (decoded > 0 && !HasWideProduct(program_)) {
    // Rows stay in the first-level cache until the last step has read them.
    const int64_t rows = TileDecoder<double>::RowsOfTile(decoded);
    const int64_t buffers = std::accumulate(program_.buffers.begin(), program_.buffers.end(), int64_t{0});
    sizes_.rows = buffers <= kFewBufferColumns ? rows : std::min(rows, sizes_.rows);
  }
  repeated_.resize(program_.repeated.size());
  for (size_t r = 0; r < repeated_.size(); ++r) {
    const TileProgram::Repeated& repeated = program_.repeated[r];
    const double* row = inputs_.doubles[static_cast<size_t>(repeated.input)].data();
    AlignedArray& cells = repeated_[r];
    cells = AlignedArray(sizes_.rows * repeated.columns + 8);
    for (int64_t i = 0; i < sizes_.rows; ++i)
      std::copy_n(row, repeated.columns, cells.data() + i * repeated.columns);
  }
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (step.kind != Step::Kind::kMultiply) continue;
    PrepareSpread(s);
    if (MultipliesSingles(program_, step)) {
      const Matrix& right = inputs_.singles[static_cast<size_t>(step.right)];
      if (PacksRight(step) && right.cells() > 0)
        packed_singles_[s] =
            std::make_unique<SinglePackedRight>(right.data<float>(), right.rows(), right.columns());
      continue;
    }
    const Matrix& right = inputs_.doubles[static_cast<size_t>(step.right)];
    const bool by_entries = IsByEntry(step.from) ||
                            (step.index >= 0 && inputs_.doubles[static_cast<size_t>(step.index)].IsSparse());
    if (step.columns <= kFewColumns) narrow_[s] = NarrowRight(right, by_entries);
    if (PacksRight(step) && right.cells() > 0)
      packed_[s] = std::make_unique<PackedRight>(right.data(), right.rows(), right.columns());
  }
  int64_t offset = 0;
  buffer_offsets_.clear();
  for (int64_t columns : program_.buffers) {
    buffer_offsets_.push_back(offset);
    offset += (sizes_.rows * (program_.cut_columns > 0 ? std::min(columns, kTileColumns) : columns) + 15) /
              8 * 8;  // Whole lines, and room for RepeatEach's overrun.
  }
  scratch_doubles_ = offset;
  return OkStatus();
}

bool TileSteps::Release() {
  const bool decoded = std::any_of(inputs_.decoders.begin(), inputs_.decoders.end(),
                                   [](const auto& decoder) { return decoder != nullptr; });
  inputs_.decoders.clear();
  body_.reset();
  failure_ = OkStatus();
  inputs_.doubles.clear();
  inputs_.singles.clear();
  std::fill(results_.begin(), results_.end(), nullptr);
  std::fill(background_.begin(), background_.end(), nullptr);
  owner_.store(kNobody, std::memory_order_relaxed);
  int64_t doubles = of_owner_ == nullptr ? 0 : of_owner_->room;
  for (const TileProgram::Repeated& repeated : program_.repeated) doubles += sizes_.rows * repeated.columns;
  return is_plain_ && !decoded && of_others_.load(std::memory_order_relaxed) == nullptr &&
         doubles <= kMostIdleDoubles;
}

std::unique_ptr<TileScratch> TileSteps::Take() {
  const size_t thread = ThreadNumber();
  size_t owner = kNobody;
  const bool owns = owner_.load(std::memory_order_relaxed) == thread ||
                    owner_.compare_exchange_strong(owner, thread, std::memory_order_relaxed);
  std::unique_ptr<TileScratch> scratch;
  if (owns)
    scratch = std::move(of_owner_);
  else if (ThreadSlots<TileScratch>* others = of_others_.load(std::memory_order_acquire); others != nullptr)
    scratch = others->Take();
  if (scratch == nullptr) {
    scratch = std::make_unique<TileScratch>();
    scratch->cells.resize(results_.size());
    scratch->arguments.resize(program_.steps.size());
  }
  if (scratch->call != calls_) Bind(*scratch);
  return scratch;
}

void TileSteps::GiveBack(std::unique_ptr<TileScratch> scratch) {
  if (owner_.load(std::memory_order_relaxed) == ThreadNumber() && of_owner_ == nullptr) {
    of_owner_ = std::move(scratch);
    return;
  }
  ThreadSlots<TileScratch>* others = of_others_.load(std::memory_order_acquire);
  if (others == nullptr) {
    auto made = std::make_unique<ThreadSlots<TileScratch>>();
    if (of_others_.compare_exchange_strong(others, made.get(), std::memory_order_acq_rel))
      others = made.release();
  }
  others->GiveBack(std::move(scratch));
}

void TileSteps::DecodeRows(TileScratch& scratch, int64_t row, int64_t row_end) const {
  for (size_t i = 0; i < scratch.decoded.size(); ++i) {
    const TileDecoder<double>* const decoder = inputs_.decoders[i].get();
    DecodedRows& rows = scratch.decoded[i];
    if (decoder == nullptr || (rows.begin <= row && row_end <= rows.end)) continue;
    const int64_t height = TileDecoder<double>::RowsOfTile(decoder->columns());
    // Tasks begin and end at multiples of the height, or of the tile.
    rows.begin = row;
    rows.end = std::min(inputs_.doubles[i].rows(), std::max(row_end, (row / height + 1) * height));
    decoder->Decode(&rows.cursor, rows.begin, rows.end, rows.cells.data());
  }
}

void TileSteps::Bind(TileScratch& scratch) const {
  scratch.call = calls_;
  scratch.decoded.clear();
  for (size_t i = 0; i < inputs_.decoders.size(); ++i) {
    if (inputs_.decoders[i] == nullptr) continue;
    const int64_t columns = inputs_.decoders[i]->columns();
    const int64_t cells = (sizes_.rows + TileDecoder<double>::RowsOfTile(columns)) * columns;
    scratch.decoded.resize(inputs_.decoders.size());
    scratch.decoded[i].cells = AlignedArray(cells);
  }
  if (scratch.room < scratch_doubles_) {
    scratch.buffers = AlignedArray(scratch_doubles_);
    scratch.room = scratch_doubles_;
  }
  for (size_t s = 0; s < program_.steps.size(); ++s)
    if (program_.steps[s].kind == Step::Kind::kRegion)
      BindRegion(scratch, program_.steps[s], &scratch.arguments[s]);
}

void TileSteps::BindRegion(TileScratch& scratch, const Step& step, RegionArguments* arguments) const {
  arguments->Clear();
  const auto moves = [](const TileRef& tile) {
    return tile.kind != TileRef::Kind::kBuffer && tile.kind != TileRef::Kind::kNone;
  };
  for (const RegionOperand& operand : step.operands) {
    Place place;
    switch (operand.from) {
      case RegionOperand::From::kTile:
        if (moves(operand.tile))
          arguments->moving_inputs.push_back(arguments->inputs.size());
        else
          place = Locate(scratch, operand.tile, 0);
        break;
      case RegionOperand::From::kWhole:
        if (program_.cut_columns > 0) arguments->moving_inputs.push_back(arguments->inputs.size());
        place.cells = const_cast<double*>(inputs_.doubles[static_cast<size_t>(operand.index)].data());
        break;
      case RegionOperand::From::kRepeated:
        place = {const_cast<double*>(repeated_[static_cast<size_t>(operand.index)].data()), step.columns};
        break;
      case RegionOperand::From::kScalar:
        place.cells = const_cast<double*>(&scalars_[static_cast<size_t>(operand.index)]);
        break;
    }
    arguments->inputs.push_back(place.cells);
    arguments->input_strides.push_back(place.stride);
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    Place place;
    if (step.output_roots[i] >= 0 || moves(step.outputs[i]))
      arguments->moving_outputs.push_back(i);
    else
      place = Locate(scratch, step.outputs[i], 0);
    arguments->outputs.push_back(place.cells);
    arguments->output_strides.push_back(place.stride);
  }
}

}  // namespace heddle::ops
