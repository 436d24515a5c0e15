// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/recursion/adjoint/adjoint_sums.h"
#include "ops/recursion/adjoint/recursive_adjoint.h"
#include "ops/recursion/run/run_classes.h"

namespace heddle::ops {
namespace {

using Term = RecursiveAdjoint::Term;

// Matrices with a row for each place. Classes share them: one class takes the first of a width, and so does
// the next, as nodes of two classes have different places.
class RowMatrices {
 public:
  using Width = std::pair<int64_t, ElementType>;
  using Used = std::map<Width, size_t>;
  explicit RowMatrices(int64_t places) : places_(places) {}

  // `used`: how many of each width the class has taken.
  Result<Matrix> Take(const RecursiveAdjoint::Row& row, Used* used) {
    const Width width = {row.cells, row.type};
    std::vector<Matrix>& of_width = by_width_[width];
    const size_t i = (*used)[width]++;
    if (i == of_width.size()) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(places_, row.cells, row.type));
      of_width.push_back(std::move(rows));
    }
    return of_width[i];
  }

 private:
  const int64_t places_;
  std::map<Width, std::vector<Matrix>> by_width_;
};

class ForwardRows {
 public:
  ForwardRows(const Linearized& structure, const FindAdjoint& find_adjoint)
      : structure_(structure),
        find_adjoint_(find_adjoint),
        row_matrices_(static_cast<int64_t>(structure.nodes.size())) {
    nodes_.saved.resize(structure.classes.size());
    nodes_.classes.resize(structure.classes.size());
  }

  // False where there is no derivative.
  Result<bool> Prepare(size_t at) {
    HEDDLE_ASSIGN_OR_RETURN(nodes_.classes[at], find_adjoint_(structure_.classes[at], nodes_.results.infos));
    if (nodes_.classes[at] == nullptr) return false;
    const RecursiveAdjoint& adjoint = *nodes_.classes[at];
    const size_t results = adjoint.forward.results.size() - adjoint.saved.size();
    for (size_t i = 0; i < results; ++i) {
      ValueInfo info = adjoint.forward.values[static_cast<size_t>(adjoint.forward.results[i])].node.info;
      if (info.IsScalar()) info = ValueInfo::OfScalar(ValueType::kDouble);
      if (nodes_.results.infos.size() > i) {
        const ValueInfo& known = nodes_.results.infos[i];
        if (known.data_type != info.data_type || known.shape != info.shape) return false;
        continue;
      }
      if (!info.IsScalar() && !(info.IsMatrix() && info.shape.IsKnown())) return false;
      HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(static_cast<int64_t>(structure_.nodes.size()),
                                                         CellsOf(info), info.element_type));
      nodes_.results.infos.push_back(info);
      nodes_.results.rows.push_back(std::move(rows));
    }
    RowMatrices::Used used;
    for (const RecursiveAdjoint::Row& row : adjoint.saved) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix rows, row_matrices_.Take(row, &used));
      nodes_.saved[at].push_back(std::move(rows));
    }
    return true;
  }

  // Where the forward body of the class stores: the function's results, and the saved values of the class.
  NodeResults RowsOf(size_t at) const {
    NodeResults rows = nodes_.results;
    rows.rows.insert(rows.rows.end(), nodes_.saved[at].begin(), nodes_.saved[at].end());
    return rows;
  }

  SavedNodes nodes_;

 private:
  const Linearized& structure_;
  const FindAdjoint& find_adjoint_;
  RowMatrices row_matrices_;
};

class BackwardSweep {
 public:
  BackwardSweep(const Linearized& structure, const SavedNodes& nodes,
                const std::map<std::string, ValueInfo>& wanted,
                const std::map<std::string, Value>& parameters, const KernelSource& kernels,
                KernelContext& context, RecursionCache& cache)
      : structure_(structure),
        nodes_(nodes),
        parameters_(parameters),
        kernels_(kernels),
        context_(context),
        cache_(cache),
        row_matrices_(static_cast<int64_t>(structure.nodes.size())),
        classes_(structure.classes.size()),
        sums_(wanted) {}

  Result<AdjointSums> Run(const std::vector<AdjointAt>& given) {
    HEDDLE_RETURN_IF_ERROR(Begin(given));
    for (size_t at = 0; at < classes_.size(); ++at) HEDDLE_RETURN_IF_ERROR(BeginClass(at));
    const TreeParts& parts = nodes_.results.parts;
    HEDDLE_RETURN_IF_ERROR(RunDown(parts.RestOf(structure_)));
    HEDDLE_RETURN_IF_ERROR(EachPart(parts, [&](size_t part) { return RunDown(parts.parts[part]); }));
    HEDDLE_RETURN_IF_ERROR(AddCells());
    for (size_t at = 0; at < classes_.size(); ++at)
      for (const Term& term : nodes_.classes[at]->terms)
        if (term.kind != Term::Kind::kCells) HEDDLE_RETURN_IF_ERROR(AddTerm(at, term));
    return std::move(sums_);
  }

 private:
  // A class in the sweep. Its array of children has the node itself as one call more.
  struct OfClass {
    Linearized::Class node_class;
    std::unique_ptr<BodyRun> run;
    NodeResults rows;
  };

  Status Begin(const std::vector<AdjointAt>& given) {
    for (const Matrix& rows : nodes_.results.rows) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix adjoints, ZeroCells(rows.shape(), rows.element_type()));
      adjoints_.push_back(std::move(adjoints));
    }
    for (const AdjointAt& one : given)
      for (size_t i = 0; i < one.of_results.size(); ++i) HEDDLE_RETURN_IF_ERROR(BeginAt(one, i));
    return OkStatus();
  }

  Status BeginAt(const AdjointAt& one, size_t result) {
    const Value& value = one.of_results[result];
    Matrix& to = adjoints_[result];
    if (value.IsScalar()) {
      to.mutable_data()[one.place] += value.scalar().AsDouble();
    } else if (value.IsMatrix()) {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, ToDense(value.matrix()));
      if (cells.cells() != to.columns()) return Internal("an adjoint has another size");
      AddRow(cells.Reshaped(1, cells.cells()), 0, 0, cells.cells(), &to, one.place, 0);
    }
    return OkStatus();
  }

  Status BeginClass(size_t at) {
    OfClass& one = classes_[at];
    const RecursiveAdjoint& adjoint = *nodes_.classes[at];
    one.node_class = structure_.classes[at];
    const int64_t nodes = one.node_class.end - one.node_class.begin;
    const auto calls = static_cast<int32_t>(static_cast<int64_t>(one.node_class.children.size()) / nodes);
    for (int64_t place = one.node_class.begin; place < one.node_class.end; ++place)
      one.node_class.children.push_back(static_cast<int32_t>(place));
    // An output that is a row of the node itself needs no matrix: the row is stored already.
    const auto own_row = [&](size_t output) -> std::optional<int32_t> {
      const RecursiveBody& body = adjoint.backward;
      const BodyValue& value = body.values[static_cast<size_t>(body.results[output])];
      const bool is_own = value.source == BodyValue::Source::kChild && value.index == calls;
      return is_own ? std::optional(value.result) : std::nullopt;
    };
    RowMatrices::Used used;
    for (size_t i = 0; i < adjoint.outputs.size(); ++i) {
      Matrix rows;
      if (!own_row(i)) {
        HEDDLE_ASSIGN_OR_RETURN(rows, row_matrices_.Take(adjoint.outputs[i], &used));
      }
      one.rows.rows.push_back(std::move(rows));
    }
    const std::vector<Matrix>& saved = nodes_.saved[at];
    for (const std::vector<Matrix>* more : {&nodes_.results.rows, &saved, &std::as_const(adjoints_)})
      one.rows.rows.insert(one.rows.rows.end(), more->begin(), more->end());
    for (size_t i = 0; i < adjoint.outputs.size(); ++i)
      if (const std::optional<int32_t> row = own_row(i))
        one.rows.rows[i] = one.rows.rows[static_cast<size_t>(*row)];
    one.run = std::make_unique<BodyRun>(
        std::shared_ptr<const RecursiveBody>(nodes_.classes[at], &nodes_.classes[at]->backward),
        one.node_class, structure_.nodes, kernels_, context_, cache_);
    return one.run->Begin(parameters_, &one.rows);
  }

  // From the last batch to the first.
  Status RunDown(std::span<const Linearized::Batch> batches) {
    PendingProducts none;
    for (size_t i = batches.size(); i-- > 0;) {
      const auto at = static_cast<size_t>(batches[i].node_class);
      OfClass& one = classes_[at];
      HEDDLE_RETURN_IF_ERROR(one.run->RunBatch(batches[i].begin, batches[i].end, &one.rows, &none));
      for (const RecursiveAdjoint::OfChild& child : nodes_.classes[at]->children)
        AddToChildren(one, child, batches[i]);
    }
    return OkStatus();
  }

  // Adds the rows of one call to the adjoints of the children, by place. Threads take columns, not rows, so
  // two nodes may have one child.
  void AddToChildren(const OfClass& one, const RecursiveAdjoint::OfChild& child,
                     const Linearized::Batch& batch) {
    const Matrix& from = one.rows.rows[static_cast<size_t>(child.output)];
    Matrix& to = adjoints_[static_cast<size_t>(child.result)];
    const Linearized::Class& node_class = one.node_class;
    const int32_t* const places =
        node_class.children.data() + child.call * (node_class.end - node_class.begin) - node_class.begin;
    const int64_t rows = batch.end - batch.begin;
    ParallelFor(from.columns(), std::max<int64_t>(64, kCellsAtOnce / std::max<int64_t>(rows, 1)),
                [&](int64_t first, int64_t last) {
                  for (int64_t place = batch.begin; place < batch.end; ++place)
                    AddRow(from, place, first, last - first, &to, places[place], first);
                });
  }

  // Terms that are matrices are added in the order in which batches would run one after the other.
  Status AddCells() {
    for (size_t i = structure_.batches.size(); i-- > 0;) {
      const Linearized::Batch& batch = structure_.batches[i];
      const auto at = static_cast<size_t>(batch.node_class);
      for (const Term& term : nodes_.classes[at]->terms)
        if (term.kind == Term::Kind::kCells)
          for (int64_t place = batch.begin; place < batch.end; ++place)
            HEDDLE_RETURN_IF_ERROR(
                sums_.AddCells(term, classes_[at].rows.rows[static_cast<size_t>(term.right)], place));
    }
    return OkStatus();
  }

  Status AddTerm(size_t at, const Term& term) {
    const OfClass& one = classes_[at];
    const auto rows_of = [&](int32_t output) {
      return one.rows.rows[static_cast<size_t>(output)].Rows(one.node_class.begin, one.node_class.end);
    };
    return sums_.Add(term, one.node_class, rows_of(term.left), rows_of(term.right), kernels_, context_);
  }

  static constexpr int64_t kCellsAtOnce = 1 << 14;

  const Linearized& structure_;
  const SavedNodes& nodes_;
  const std::map<std::string, Value>& parameters_;
  const KernelSource& kernels_;
  KernelContext& context_;
  RecursionCache& cache_;
  RowMatrices row_matrices_;
  std::vector<OfClass> classes_;
  std::vector<Matrix> adjoints_;  // of results, by place
  AdjointSums sums_;
};

}  // namespace

Result<std::optional<SavedNodes>> EvaluateForward(const Linearized& structure,
                                                  const FindAdjoint& find_adjoint,
                                                  const std::map<std::string, Value>& parameters,
                                                  const KernelSource& kernels, KernelContext& context,
                                                  RecursionCache& cache) {
  ForwardRows forward(structure, find_adjoint);
  std::vector<ClassRun> classes(structure.classes.size());
  std::vector<NodeResults> rows(structure.classes.size());
  for (const Linearized::Batch& batch : structure.batches) {
    const auto at = static_cast<size_t>(batch.node_class);
    ClassRun& one = classes[at];
    if (one.run != nullptr) continue;
    HEDDLE_ASSIGN_OR_RETURN(const bool is_there, forward.Prepare(at));
    if (!is_there) return std::optional<SavedNodes>();
    const std::shared_ptr<const RecursiveAdjoint>& adjoint = forward.nodes_.classes[at];
    rows[at] = forward.RowsOf(at);
    one.results = &rows[at];
    one.run = std::make_unique<BodyRun>(std::shared_ptr<const RecursiveBody>(adjoint, &adjoint->forward),
                                        structure.classes[at], structure.nodes, kernels, context, cache);
    HEDDLE_RETURN_IF_ERROR(one.run->Begin(parameters, one.results));
  }
  const TreeParts& parts = forward.nodes_.results.parts = ChooseParts(structure, classes);
  HEDDLE_ASSIGN_OR_RETURN(const bool is_there, RunClasses(structure, classes, parts));
  if (!is_there) return std::optional<SavedNodes>();
  return std::optional<SavedNodes>(std::move(forward.nodes_));
}

Result<AdjointSums> SweepBackward(const Linearized& structure, const SavedNodes& nodes,
                                  const std::vector<AdjointAt>& given,
                                  const std::map<std::string, ValueInfo>& wanted,
                                  const std::map<std::string, Value>& parameters, const KernelSource& kernels,
                                  KernelContext& context, RecursionCache& cache) {
  return BackwardSweep(structure, nodes, wanted, parameters, kernels, context, cache).Run(given);
}

}  // namespace heddle::ops
