// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/adjoint/adjoint_total.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

// Cells of a row of a list, which begins with its list's first group and its own number. Rows are cut of
// one run of numbers, in which each piece says what it is; zeros stand behind the last.
constexpr int64_t kListCells = 1022;
constexpr int64_t kHead = 2;
enum class Piece : uint8_t {
  kEnd,
  kNodes,   ///< parameter, numbers, those of the nodes
  kLooked,  ///< parameter, group, column, rows, columns, the number of each row, the cells
};

double Number(int64_t number) { return static_cast<double>(number); }
double Number(Piece piece) { return static_cast<double>(piece); }

template <typename Cell>
void CopyWidened(const Matrix& from, double* to) {
  std::copy_n(from.data<Cell>(), from.cells(), to);
}
void CopyAsDoubles(const Matrix& from, double* to) {
  if (from.element_type() == ElementType::kFloat64)
    CopyWidened<double>(from, to);
  else
    CopyWidened<float>(from, to);
}

// Columns are shared out, so that each row of the parameter has the nodes' one after the other.
Status AddLooked(const AdjointSums::LookupRows& looked, Matrix* to) {
  constexpr int64_t kCellsAtOnce = 1 << 14;
  const int64_t width = looked.rows.columns();
  for (const double number : looked.numbers)
    if (!(number >= 1 && number < Number(to->rows()) + 1))
      return Internal("a row is looked up that is not there");
  ParallelFor(width, std::max<int64_t>(16, kCellsAtOnce / std::max<int64_t>(looked.rows.rows(), 1)),
              [&](int64_t first, int64_t last) {
                for (int64_t i = 0; i < looked.rows.rows(); ++i)
                  AddRow(looked.rows, i, first, last - first, to,
                         static_cast<int64_t>(looked.numbers[static_cast<size_t>(i)]) - 1,
                         looked.column + first);
              });
  return OkStatus();
}

}  // namespace

int64_t AdjointTotal::CellsOf(const std::string& parameter) const {
  return ops::CellsOf(wanted_->at(parameter));
}

double AdjointTotal::PlaceOf(const std::string& parameter) const {
  return Number(std::distance(wanted_->begin(), wanted_->find(parameter)));
}

// Leaves that are missing change nothing: one node for all is the root.
void AdjointTotal::BeginAll(int64_t end) { covering_ = {{0, CommonLevel(0, end - 1)}}; }

void AdjointTotal::BeginPart(int64_t begin, int64_t end) { covering_ = CoveringNodes(begin, end); }

void AdjointTotal::Add(int64_t group, AdjointSums sums) {
  while (group >= (covering_[covered_].index + 1) << covering_[covered_].level) CloseNode();
  for (const auto& [parameter, cells] : sums.cells()) {
    std::unique_ptr<PayloadStack>& stack = sums_[parameter].stack;
    if (stack == nullptr)
      stack = std::make_unique<PayloadStack>(Join::kSum, cells.cells(), covering_[covered_].level);
    CopyAsDoubles(cells, stack->Next(group));
    stack->Push();
  }
  for (AdjointSums::LookupRows& looked : sums.lookups()) lookups_.push_back({group, std::move(looked)});
}

void AdjointTotal::CloseNode() {
  for (auto& [parameter, sum] : sums_) {
    if (sum.stack == nullptr) continue;
    sum.nodes.insert(sum.nodes.end(), {Number(covering_[covered_].index), Number(covering_[covered_].level)});
    const double* const root = sum.stack->Finish();
    sum.nodes.insert(sum.nodes.end(), root, root + CellsOf(parameter));
    sum.stack.reset();
  }
  ++covered_;
}

Result<Matrix> AdjointTotal::ToList() {
  const double first = covering_.empty() ? 0 : Number(covering_[0].FirstLeaf());
  while (covered_ < covering_.size()) CloseNode();
  std::vector<double> numbers;
  for (const auto& [parameter, sum] : sums_) {
    numbers.insert(numbers.end(), {Number(Piece::kNodes), PlaceOf(parameter),
                                   Number(static_cast<int64_t>(sum.nodes.size()))});
    numbers.insert(numbers.end(), sum.nodes.begin(), sum.nodes.end());
  }
  for (const LookupOfGroup& looked : lookups_) {
    const Matrix& rows = looked.rows.rows;
    numbers.insert(numbers.end(),
                   {Number(Piece::kLooked), PlaceOf(looked.rows.parameter), Number(looked.group),
                    Number(looked.rows.column), Number(rows.rows()), Number(rows.columns())});
    numbers.insert(numbers.end(), looked.rows.numbers.begin(), looked.rows.numbers.end());
    numbers.resize(numbers.size() + static_cast<size_t>(rows.cells()));
    CopyAsDoubles(rows, numbers.data() + numbers.size() - rows.cells());
  }
  const auto size = static_cast<int64_t>(numbers.size());
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix list, ZeroCells({CeilDivide(size, kListCells), kHead + kListCells}, ElementType::kFloat64));
  for (int64_t row = 0; row < list.rows(); ++row) {
    double* const to = list.mutable_data() + row * list.columns();
    to[0] = first;
    to[1] = Number(row);
    std::copy_n(numbers.data() + row * kListCells, std::min(kListCells, size - row * kListCells), to + kHead);
  }
  return list;
}

Status AdjointTotal::AddLists(const Matrix& list) {
  std::vector<const double*> rows;
  for (int64_t row = 0; row < list.rows(); ++row) rows.push_back(list.data() + row * list.columns());
  std::sort(rows.begin(), rows.end(),
            [](const double* a, const double* b) { return std::pair(a[0], a[1]) < std::pair(b[0], b[1]); });
  std::vector<double> numbers;
  for (auto row = rows.begin(); row != rows.end();) {
    const double first = **row;
    numbers.clear();
    for (; row != rows.end() && **row == first; ++row)
      numbers.insert(numbers.end(), *row + kHead, *row + list.columns());
    numbers.push_back(Number(Piece::kEnd));
    HEDDLE_RETURN_IF_ERROR(AddPieces(numbers));
  }
  return OkStatus();
}

Status AdjointTotal::AddPieces(const std::vector<double>& numbers) {
  const double* at = numbers.data();
  const auto next = [&at] { return static_cast<int64_t>(*at++); };
  for (auto piece = static_cast<Piece>(next()); piece != Piece::kEnd; piece = static_cast<Piece>(next())) {
    const std::string& parameter = std::next(wanted_->begin(), next())->first;
    if (piece == Piece::kNodes) {
      const int64_t size = next();
      std::vector<double>& nodes = sums_[parameter].nodes;
      nodes.insert(nodes.end(), at, at + size);
      at += size;
      continue;
    }
    LookupOfGroup looked;
    looked.group = next();
    looked.rows.parameter = parameter;
    looked.rows.column = next();
    const int64_t rows = next(), columns = next();
    looked.rows.numbers.assign(at, at + rows);
    HEDDLE_ASSIGN_OR_RETURN(looked.rows.rows, Matrix::Dense(rows, columns));
    std::copy_n(at + rows, rows * columns, looked.rows.rows.mutable_data());
    at += rows + rows * columns;
    lookups_.push_back(std::move(looked));
  }
  return OkStatus();
}

Result<RootPayload> AdjointTotal::RootOf(Sum* sum, int64_t cells) const {
  if (sum->stack != nullptr) {
    AlignedArray root(cells);
    std::copy_n(sum->stack->Finish(), cells, root.data());
    return RootPayload(std::move(root));
  }
  const int64_t width = 2 + cells;
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes,
                          Matrix::Dense(static_cast<int64_t>(sum->nodes.size()) / width, width));
  std::copy(sum->nodes.begin(), sum->nodes.end(), nodes.mutable_data());
  return JoinNodes({.join = Join::kSum, .width = cells}, nodes);
}

Result<Matrix> AdjointTotal::Take(const std::string& parameter) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix adjoint, ZeroAdjoint(wanted_->at(parameter)));
  if (const auto sum = sums_.find(parameter); sum != sums_.end()) {
    HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, RootOf(&sum->second, adjoint.cells()));
    if (adjoint.element_type() == ElementType::kFloat64)
      std::copy_n(root.data(), adjoint.cells(), adjoint.mutable_data<double>());
    else
      std::transform(root.data(), root.data() + adjoint.cells(), adjoint.mutable_data<float>(),
                     [](double cell) { return static_cast<float>(cell); });
  }
  std::stable_sort(lookups_.begin(), lookups_.end(),
                   [](const LookupOfGroup& a, const LookupOfGroup& b) { return a.group < b.group; });
  for (const LookupOfGroup& looked : lookups_)
    if (looked.rows.parameter == parameter) HEDDLE_RETURN_IF_ERROR(AddLooked(looked.rows, &adjoint));
  return adjoint;
}

}  // namespace heddle::ops
