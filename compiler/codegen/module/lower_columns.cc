// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/codegen/module/lowering.h"

namespace heddle::codegen {

using namespace ops::emitted;
using llvm::BasicBlock;
using ops::Access;
using ops::RegionNode;
using ops::RegionOp;
using ops::RegionOutput;
using ops::Sink;

// A light body is limited by loads and by the loop around it; a large one fills the machine as it is: 0,
// LargeLoop.
int Lowering::UnrollFactor() const {
  int cells = 0;
  for (size_t i = 0; i < region_.nodes.size(); ++i) {
    if (rates_[i] != Rate::kPerCell) continue;
    if (IsHeavyNode(region_.nodes[i])) return 0;
    ++cells;
  }
  return cells <= 14 ? 2 : 0;
}

// The nodes of one rate that are not inputs per cell.
void Lowering::ComputeAt(Rate rate, Values& values) {
  for (size_t i = 0; i < region_.nodes.size(); ++i) {
    const RegionNode& node = region_.nodes[i];
    if (rates_[i] != rate) continue;
    Vector value;
    if (node.op == RegionOp::kLiteral) {
      value = Broadcast(node.literal);
    } else if (node.op == RegionOp::kInput) {
      if (rate == Rate::kPerCell) {
        value = *values[i];
      } else {
        const size_t k = static_cast<size_t>(node.input);
        value = BroadcastFrom(rate == Rate::kOnce ? inputs_[k] : rows_of_inputs_[k]);
      }
    } else {
      const auto operand = [&](int k) {
        if (k < 0) return Vector{};
        const std::optional<Vector>& own = values[static_cast<size_t>(k)];
        return own ? *own : *values_[static_cast<size_t>(k)];
      };
      value = DividesByOneNumber(i) ? DivideCells(operand(node.a), operand(node.b), divisors_.at(node.b))
                                    : EmitCell(node, operand(node.a), operand(node.b), operand(node.c));
    }
    values[i] = node.drops_negative_zero ? value + Zero() : value;
  }
  if (rate != Rate::kPerCell) FindDivisors(rate);
}

bool Lowering::IsCells(size_t i) const {
  return region_.nodes[i].op == RegionOp::kInput && rates_[i] == Rate::kPerCell;
}

// Where the cells of each node that is an input per cell begin, in the current row.
std::vector<Cells> Lowering::Sources() const {
  std::vector<Cells> sources(region_.nodes.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!IsCells(i)) continue;
    const size_t k = static_cast<size_t>(region_.nodes[i].input);
    sources[i] = region_.nodes[i].access == Access::kCells ? rows_of_inputs_[k] : inputs_[k];
  }
  return sources;
}

// All values at eight columns from j.
Lowering::Values Lowering::ComputeCells(const std::vector<Cells>& sources, llvm::Value* j, const Mask* mask) {
  Values values(region_.nodes.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (IsCells(i)) values[i] = LoadCells(PointerTo(sources[i], j), mask);
  return Complete(std::move(values));
}

// All values, where those of inputs per cell are given.
Lowering::Values Lowering::Complete(Values values) {
  ComputeAt(Rate::kPerCell, values);
  for (size_t i = 0; i < values.size(); ++i)
    if (!values[i]) values[i] = values_[i];
  return values;
}

void Lowering::FoldInto(size_t o, Vector value, llvm::Value* j, const Mask* mask) {
  const RegionOutput& output = region_.outputs[o];
  if (output.sink == Sink::kFoldColumns) {
    // Padded to whole eights: lanes behind the last column may take anything.
    const Cells cells = PointerTo(outputs_[o], j);
    return Store(cells, EmitFold(output.fold, Load(cells), value));
  }
  if (output.eights > 1 && eight_ < 0) {
    const Cells cells = PointerTo(outputs_[o], Get(place_));
    const Vector before = Load(cells), after = EmitFold(output.fold, before, value);
    return Store(cells, mask == nullptr ? after : Select(*mask, after, before));
  }
  Accumulator& accumulator = output.eights > 1 ? sums_[o][static_cast<size_t>(eight_)] : accumulators_[o];
  const Vector before = Get(accumulator);
  const Vector after = EmitFold(output.fold, before, value);
  Set(accumulator, mask == nullptr ? after : Select(*mask, after, before));
}

void Lowering::WriteWhole(const Stores& stores) {
  if (stores.empty()) return;
  BasicBlock* const past = emitter_.NewBlock("stream");
  BasicBlock* const normal = emitter_.NewBlock("store");
  BasicBlock* const after = emitter_.NewBlock("stored");
  b_.CreateCondBr(Get(row_stream_), past, normal);
  b_.SetInsertPoint(past);
  for (const auto& [cells, value] : stores) Stream(cells, value);
  b_.CreateBr(after);
  b_.SetInsertPoint(normal);
  for (const auto& [cells, value] : stores) Store(cells, value);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// `unroll` whole eights at j.
void Lowering::WholeBody(int unroll) {
  Stores stores;
  const bool in_registers = eight_ >= 0;
  FetchAhead(Get(j_), unroll);
  for (int u = 0; u < unroll; ++u) {
    if (in_registers) eight_ = u;
    llvm::Value* const j = b_.CreateNSWAdd(Get(j_), Integer(8 * u));
    const Values values = ComputeCells(Sources(), j, nullptr);
    for (size_t o = 0; o < region_.outputs.size(); ++o) {
      const Vector value = *values[static_cast<size_t>(region_.outputs[o].node)];
      if (region_.outputs[o].sink == Sink::kStore)
        stores.emplace_back(PointerTo(rows_of_outputs_[o], j), value);
      else
        FoldInto(o, value, j, nullptr);
    }
    if (!in_registers) NextPlace();
  }
  WriteWhole(stores);
  b_.CreateStore(b_.CreateNSWAdd(Get(j_), Integer(8 * unroll)), j_);
}

// while (j + 8 * unroll <= columns) body
void Lowering::WholeLoop(int unroll) {
  llvm::Value* const last = b_.CreateNSWSub(row_columns_, Integer(8 * unroll));
  If(b_.CreateICmpSLE(Get(j_), last), [&] {
    BasicBlock* const loop = emitter_.NewBlock("columns");
    BasicBlock* const done = emitter_.NewBlock("columns_done");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    WholeBody(unroll);
    b_.CreateCondBr(b_.CreateICmpSLE(Get(j_), last), loop, done);
    b_.SetInsertPoint(done);
  });
}

void Lowering::NextPlace() {
  if (eights_ == 1) return;
  llvm::Value* const next = b_.CreateNSWAdd(Get(place_), Integer(8));
  b_.CreateStore(b_.CreateSelect(b_.CreateICmpEQ(next, Integer(8 * eights_)), Integer(0), next), place_);
}

// Folds of several eights: all of them in registers, as long as there are that many cells.
void Lowering::PeriodLoop() {
  sums_.resize(outputs_.size());
  for (size_t o = 0; o < outputs_.size(); ++o) {
    if (region_.outputs[o].sink != Sink::kFoldFlat) continue;
    for (int k = 0; k < eights_; ++k) {
      sums_[o].push_back(NewAccumulator());
      Set(sums_[o].back(), Load(PointerTo(outputs_[o], Integer(8 * k))));
    }
  }
  eight_ = 0;
  WholeLoop(eights_);
  eight_ = -1;
  for (size_t o = 0; o < outputs_.size(); ++o)
    for (int k = 0; k < static_cast<int>(sums_[o].size()); ++k)
      Store(PointerTo(outputs_[o], Integer(8 * k)), Get(sums_[o][static_cast<size_t>(k)]));
}

// 1 to 7 columns at j.
void Lowering::RaggedBody(llvm::Value* count) {
  const Mask mask = FirstLanes(count);
  llvm::Value* const j = Get(j_);
  FetchAhead(j, 1);
  const Values values = ComputeCells(Sources(), j, &mask);
  Stores stores;
  for (size_t o = 0; o < region_.outputs.size(); ++o) {
    const Vector value = *values[static_cast<size_t>(region_.outputs[o].node)];
    if (region_.outputs[o].sink == Sink::kStore)
      stores.emplace_back(PointerTo(rows_of_outputs_[o], j), value);
    else
      FoldInto(o, value, j, &mask);
  }
  if (!stores.empty()) StoreFirst(stores, count);
}

// Sources(), but where the step is ragged: copies on the stack, padded to EightsAtOnce() eights at column j.
std::vector<Cells> Lowering::PaddedSources(llvm::Value* is_ragged, llvm::Value* count) {
  std::vector<Cells> sources = Sources();
  std::vector<llvm::AllocaInst*> chosen(sources.size());
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i].at != nullptr) chosen[i] = Variable(sources[i].at, "source");
  const auto cells = static_cast<uint64_t>(kLanes * EightsAtOnce());
  const auto copy_cells = [&] {
    const Mask mask = FirstLanes(count);
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].at == nullptr) continue;
      llvm::Type* const type = sources[i].type();
      llvm::AllocaInst* const copy = emitter_.Reserve(llvm::ArrayType::get(type, cells), "padded");
      copy->setAlignment(llvm::Align(64));
      Store({copy, sources[i].single}, LoadWhere(mask, PointerTo(sources[i], Get(j_))));
      b_.CreateStore(b_.CreateGEP(type, copy, b_.CreateNeg(Get(j_))), chosen[i]);
    }
  };
  If(is_ragged, [&] { WithEights(EightsAtOnce(), copy_cells); });
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i].at != nullptr) sources[i].at = Get(chosen[i]);
  return sources;
}

// Columns at j: as many as EightsAtOnce() eights have, or less.
void Lowering::LargeBody(llvm::Value* count) {
  const int eights = EightsAtOnce();
  llvm::Value* const is_ragged = b_.CreateICmpSLT(count, Integer(kLanes * eights));
  llvm::Value* const j = Get(j_);
  FetchAhead(j, eights);
  const Values values = ComputeEights(PaddedSources(is_ragged, count), j, eights);
  const auto value_of = [&](size_t o) { return *values[static_cast<size_t>(region_.outputs[o].node)]; };
  const auto count_from = [&](int e) { return b_.CreateNSWSub(count, Integer(kLanes * e)); };
  const auto fold_columns = [&](int e) {
    for (size_t o = 0; o < region_.outputs.size(); ++o)
      if (region_.outputs[o].sink == Sink::kFoldColumns)
        FoldInto(o, EightOf(value_of(o), e), b_.CreateNSWAdd(j, Integer(kLanes * e)), nullptr);
  };
  Stores stores;
  // Those of registers and, before each eight, what they held.
  std::vector<std::pair<Accumulator, std::vector<Vector>>> before;
  for (size_t o = 0; o < region_.outputs.size(); ++o) {
    const Sink sink = region_.outputs[o].sink;
    if (sink == Sink::kStore) stores.emplace_back(PointerTo(rows_of_outputs_[o], j), value_of(o));
    if (sink == Sink::kStore || sink == Sink::kFoldColumns || region_.outputs[o].eights > 1) continue;
    before.emplace_back(accumulators_[o], std::vector<Vector>());
    for (int e = 0; e < eights; ++e) {
      before.back().second.push_back(Get(accumulators_[o]));
      FoldInto(o, EightOf(value_of(o), e), j, nullptr);
    }
  }
  for (int e = 0; e < eights && eights_ > 1; ++e, NextPlace()) {
    const Mask mask = FirstLanes(count_from(e));
    for (size_t o = 0; o < region_.outputs.size(); ++o)
      if (region_.outputs[o].eights > 1) FoldInto(o, EightOf(value_of(o), e), j, &mask);
  }
  BasicBlock* const whole = emitter_.NewBlock("whole");
  BasicBlock* const ragged = emitter_.NewBlock("ragged");
  BasicBlock* const after = emitter_.NewBlock("stepped");
  b_.CreateCondBr(is_ragged, ragged, whole);
  b_.SetInsertPoint(whole);
  for (int e = 0; e < eights; ++e) fold_columns(e);
  WithEights(eights, [&] { WriteWhole(stores); });
  b_.CreateBr(after);
  b_.SetInsertPoint(ragged);
  for (auto& [accumulator, states] : before) {
    states.push_back(Get(accumulator));
    Vector kept = states[0];
    for (int e = 0; e < eights; ++e)
      kept = Select(FirstLanes(count_from(e)), states[static_cast<size_t>(e + 1)], kept);
    Set(accumulator, kept);
  }
  fold_columns(0);
  if (eights > 1 && Any(Sink::kFoldColumns))
    If(b_.CreateICmpSGT(count, Integer(kLanes)), [&] { fold_columns(1); });
  if (!stores.empty()) WithEights(eights, [&] { StoreFirst(stores, count); });
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// exp and the like are one long chain of dependent operations: the processor finds too little to do beside
// one or two registers, so that several eights take turns, four registers together. A function takes long to
// compile for each register: of nine and more two registers take turns (with AVX2 an eight is two), of 17 and
// more none.
int Lowering::EightsTogether() const {
  if (eights_ > 1) return 1;
  int heavy = 0;
  for (size_t i = 0; i < region_.nodes.size(); ++i)
    heavy += rates_[i] == Rate::kPerCell && IsHeavyNode(region_.nodes[i]) ? 1 : 0;
  if (heavy == 0 || heavy > 16) return 1;
  return (heavy <= 8 ? kMostParts : 2) * EightsAtOnce() / emitter_.parts();
}

// True where registers of AVX-512 hold sixteen cells.
bool Lowering::IsOfFloats() const {
  return emitter_.register_lanes() >= 8 &&
         std::any_of(region_.nodes.begin(), region_.nodes.end(),
                     [&](const RegionNode& node) { return UsesCells(node) && node.single; });
}

// Vectors are so many eights side by side in `body`. Of floats, two eights are one value.
void Lowering::WithEights(int eights, const std::function<void()>& body) {
  const int lanes = emitter_.register_lanes(), parts = emitter_.parts();
  const bool pairs = IsOfFloats() && eights % 2 == 0;
  emitter_.SetShape(pairs ? 2 * lanes : lanes, pairs ? eights / 2 : eights * parts);
  body();
  emitter_.SetShape(lanes, parts);
}

// Lanes of an eight out of a vector of several.
Vector Lowering::EightOf(const Vector& value, int eight) {
  if (IsOfFloats()) return {{HalfOf(value.v[static_cast<size_t>(eight / 2)], eight % 2)}};
  const int parts = emitter_.parts();
  Vector result = {};
  std::copy_n(value.v.begin() + eight * parts, parts, result.v.begin());
  return result;
}

// ComputeCells at so many whole eights.
Lowering::Values Lowering::ComputeEights(const std::vector<Cells>& sources, llvm::Value* j, int eights) {
  if (eights == 1) return ComputeCells(sources, j, nullptr);
  const Values of_eight = values_;
  const std::map<int, Divisor> divisors_of_eight = divisors_;
  Values values;
  const size_t parts = IsOfFloats() ? 1 : static_cast<size_t>(emitter_.parts());
  WithEights(eights, [&] {
    const auto repeat = [&](Vector* value) {
      if (IsOfFloats()) value->v[0] = Twice(value->v[0]);
      for (size_t k = parts; k < static_cast<size_t>(emitter_.parts()); ++k)
        value->v[k] = value->v[k - parts];
    };
    for (std::optional<Vector>& value : values_)
      if (value) repeat(&*value);
    for (auto& [unused, divisor] : divisors_) {
      repeat(&divisor.reciprocal);
      repeat(&divisor.least);
    }
    values = ComputeCells(sources, j, nullptr);
  });
  values_ = of_eight;
  divisors_ = divisors_of_eight;
  return values;
}

// So many whole eights at j, computed side by side and folded one after the other.
void Lowering::InterleavedBody(int eights) {
  llvm::Value* const first = Get(j_);
  FetchAhead(first, eights);
  const Values values = ComputeEights(Sources(), first, eights);
  Stores stores;
  for (size_t o = 0; o < region_.outputs.size(); ++o) {
    const Vector value = *values[static_cast<size_t>(region_.outputs[o].node)];
    if (region_.outputs[o].sink == Sink::kStore) {
      stores.emplace_back(PointerTo(rows_of_outputs_[o], first), value);
      continue;
    }
    for (int e = 0; e < eights; ++e)
      FoldInto(o, EightOf(value, e), b_.CreateNSWAdd(first, Integer(8 * e)), nullptr);
  }
  WithEights(eights, [&] { WriteWhole(stores); });
  b_.CreateStore(b_.CreateNSWAdd(first, Integer(8 * eights)), j_);
}

// A large body exists once, since its time to compile counts; ragged ends go through it on padded copies of
// their cells.
void Lowering::LargeLoop() {
  const int eights = EightsTogether();
  llvm::Value* const step_cells = Integer(kLanes * EightsAtOnce());
  const auto next_count = [&](llvm::Value* j) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateNSWSub(row_columns_, j), step_cells);
  };
  llvm::Value* first = next_count(Integer(0));
  if (Any(Sink::kStore))
    first = b_.CreateSelect(b_.CreateICmpSGT(Get(count_), Integer(0)), Get(count_), first);
  b_.CreateStore(first, count_);
  If(b_.CreateICmpSGT(row_columns_, Integer(0)), [&] {
    BasicBlock* const loop = emitter_.NewBlock("columns");
    BasicBlock* const done = emitter_.NewBlock("columns_done");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    const auto step = [&] {
      LargeBody(Get(count_));
      b_.CreateStore(b_.CreateNSWAdd(Get(j_), Get(count_)), j_);
    };
    if (eights > 1) {
      BasicBlock* const together = emitter_.NewBlock("together");
      BasicBlock* const alone = emitter_.NewBlock("alone");
      BasicBlock* const next = emitter_.NewBlock("next");
      llvm::Value* const enough =
          b_.CreateICmpSGE(b_.CreateNSWSub(row_columns_, Get(j_)), Integer(8 * eights));
      b_.CreateCondBr(b_.CreateAnd(enough, b_.CreateICmpEQ(Get(count_), step_cells)), together, alone);
      b_.SetInsertPoint(together);
      InterleavedBody(eights);
      b_.CreateBr(next);
      b_.SetInsertPoint(alone);
      step();
      b_.CreateBr(next);
      b_.SetInsertPoint(next);
    } else {
      step();
    }
    b_.CreateStore(next_count(Get(j_)), count_);
    b_.CreateCondBr(b_.CreateICmpSLT(Get(j_), row_columns_), loop, done);
    b_.SetInsertPoint(done);
  });
}

// The stores of a row go past the caches where all outputs reach a line at the same column. Lanes of folds
// start at column 0, so that next to a fold this must be the first column.
void Lowering::FindStream() {
  llvm::Value* offset = nullptr;
  llvm::Value* agree = stream_;
  for (size_t o = 0; o < region_.outputs.size(); ++o) {
    if (region_.outputs[o].sink != Sink::kStore) continue;
    llvm::Value* const address = b_.CreatePtrToInt(rows_of_outputs_[o].at, b_.getInt64Ty());
    // Cells before the next eight: a line of doubles, half a line of floats.
    llvm::Value* const own = b_.CreateAnd(
        b_.CreateLShr(b_.CreateNeg(address), Integer(region_.outputs[o].single ? 2 : 3)), Integer(7));
    if (offset == nullptr) {
      offset = own;
    } else {
      agree = b_.CreateAnd(agree, b_.CreateICmpEQ(own, offset));
    }
  }
  if (Any(Sink::kFoldFlat) || Any(Sink::kFoldColumns) || Any(Sink::kFoldRows)) {
    agree = b_.CreateAnd(agree, b_.CreateICmpEQ(offset, Integer(0)));
  }
  b_.CreateStore(agree, row_stream_);
  llvm::Value* const head = b_.CreateSelect(agree, offset, Integer(0));
  b_.CreateStore(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, head, row_columns_), count_);
}

// Head (up to the first line, when streaming), whole eights, rest.
void Lowering::EmitColumns() {
  b_.CreateStore(Integer(0), j_);
  if (Any(Sink::kStore)) FindStream();
  const int unroll = UnrollFactor();
  if (unroll == 0) return LargeLoop();
  BasicBlock* const next = emitter_.NewBlock("next");
  BasicBlock* const whole = emitter_.NewBlock("whole");
  BasicBlock* const ragged = emitter_.NewBlock("ragged");
  BasicBlock* const done = emitter_.NewBlock("row_done");
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  if (Any(Sink::kStore))
    b_.CreateCondBr(b_.CreateICmpSGT(Get(count_), Integer(0)), ragged, whole);
  else
    b_.CreateBr(whole);
  b_.SetInsertPoint(whole);
  if (eights_ > 1) PeriodLoop();
  if (unroll > 1 && eights_ == 1) WholeLoop(unroll);
  WholeLoop(1);
  b_.CreateStore(b_.CreateNSWSub(row_columns_, Get(j_)), count_);
  b_.CreateCondBr(b_.CreateICmpSGT(Get(count_), Integer(0)), ragged, done);
  b_.SetInsertPoint(ragged);
  RaggedBody(Get(count_));
  b_.CreateStore(b_.CreateNSWAdd(Get(j_), Get(count_)), j_);
  b_.CreateStore(Integer(0), count_);
  if (Any(Sink::kStore))
    b_.CreateCondBr(b_.CreateICmpSLT(Get(j_), row_columns_), next, done);
  else
    b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

}  // namespace heddle::codegen
