// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other of their shares of a parfor, and how that is put together.
#include <algorithm>
#include <utility>

#include "engine/control/shared_iterations.h"
#include "engine/variables/merge_cells.h"
#include "engine/variables/merge_variable.h"
#include "engine/variables/shared_changes.h"
#include "engine/variables/variable_bytes.h"
#include "ops/cells/move_cells.h"

namespace heddle::engine {
namespace {

// Changes of frames and lists travel as bytes, those of matrices as cells to where the matrix is.
bool ChangesAsBytes(const Block& loop, const VariableTable& before) {
  return std::any_of(loop.merged.begin(), loop.merged.end(),
                     [&](const std::string& name) { return !before.Find(name)->info.IsMatrix(); });
}

// What the first rank that assigned variable i says of it; nullptr when none has.
const ShareReport::Change* WhoTouched(const std::vector<ShareReport>& reports, size_t i) {
  for (const ShareReport& report : reports)
    if (report.changes[i].is_touched) return &report.changes[i];
  return nullptr;
}

// All rows on rank r alone, as a distribution.
Distribution RowsOfEach(const std::vector<int64_t>& rows) {
  Distribution distribution{.kind = Distribution::Kind::kSplit};
  distribution.split.cuts = {0};
  for (const int64_t count : rows) distribution.split.cuts.push_back(distribution.split.cuts.back() + count);
  return distribution;
}

Result<Variable> TextOfThisRank(std::string_view text, int ranks) {
  static const auto kSchema = std::make_shared<const Schema>(Schema{.types = {ColumnType::kString}});
  Variable variable;
  variable.distribution = RowsOfEach(std::vector<int64_t>(static_cast<size_t>(ranks), 1));
  variable.info = ValueInfo::OfFrame(ranks, kSchema);
  const std::string_view texts[] = {text};
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfTexts(texts));
  variable.value = Value(Frame(kSchema, {std::move(column)}));
  return variable;
}

}  // namespace

Status SharedIterations::FindChanges(const Block& loop, const VariableTable& before,
                                     const VariableTable& after, ShareReport* own, std::vector<Matrix>* cells,
                                     ShareContents* contents) {
  ListOf<Variable> changes;  // Of each variable; none of matrices.
  for (size_t i = 0; i < loop.merged.size(); ++i) {
    const Variable& old = *before.Find(loop.merged[i]);
    const Variable* const changed = after.Find(loop.merged[i]);
    ShareReport::Change& change = own->changes.emplace_back();
    change.info = changed == nullptr ? old.info : changed->info;
    change.is_touched = changed != nullptr && !SharesValue(old, *changed);
    Variable others = Variable::OfList(std::make_shared<ListOf<Variable>>());
    if (change.is_touched && old.info.IsMatrix()) {
      Variable from = old, to = *changed;
      HEDDLE_RETURN_IF_ERROR(BringIntoMemory(&from));
      HEDDLE_RETURN_IF_ERROR(BringIntoMemory(&to));
      HEDDLE_ASSIGN_OR_RETURN((*cells)[i], ChangedCells(from.value.matrix(), to.value.matrix()));
      change.cells = (*cells)[i].rows();
    } else if (change.is_touched) {
      HEDDLE_ASSIGN_OR_RETURN(others, ChangesOf(old, *changed));
    }
    HEDDLE_RETURN_IF_ERROR(changes.Add("", std::move(others)));
  }
  if (ChangesAsBytes(loop, before))
    contents->changes = {
        EncodeVariable(Variable::OfList(std::make_shared<ListOf<Variable>>(std::move(changes))))};
  return OkStatus();
}

Result<std::vector<ShareReport>> SharedIterations::ExchangeReports(const Block& loop,
                                                                   const VariableTable& before,
                                                                   const ShareReport& own,
                                                                   ShareContents* contents) {
  VariableTable texts;
  HEDDLE_ASSIGN_OR_RETURN(Variable report, TextOfThisRank(own.ToText(), options_.ranks));
  texts.Set("%report", std::move(report));
  HEDDLE_ASSIGN_OR_RETURN(Variable lines, TextOfThisRank(EncodeTexts(contents->printed), options_.ranks));
  texts.Set("%printed", std::move(lines));
  std::map<std::string, Distribution> wanted = {{"%report", Distribution::Each()},
                                                {"%printed", Distribution::One()}};
  const bool has_sums = !loop.sums.empty(), has_changes = ChangesAsBytes(loop, before);
  if (has_sums) {
    HEDDLE_ASSIGN_OR_RETURN(Variable own_terms, TextOfThisRank(contents->terms, options_.ranks));
    texts.Set("%terms", std::move(own_terms));
    wanted["%terms"] = Distribution::Each();
  }
  if (has_changes) {
    const std::string_view own_changes =
        contents->changes.empty() ? std::string_view() : contents->changes[0];
    HEDDLE_ASSIGN_OR_RETURN(Variable changes, TextOfThisRank(own_changes, options_.ranks));
    texts.Set("%changes", std::move(changes));
    wanted["%changes"] = Distribution::Each();
  }
  HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, &texts));
  *contents = ShareContents();
  if (has_sums) {
    const Column all = texts.Find("%terms")->value.frame().column(0);
    for (int64_t rank = 0; rank < all.rows(); ++rank) contents->terms.append(all.TextAt(rank));
  }
  if (has_changes) {
    const Column all = texts.Find("%changes")->value.frame().column(0);
    for (int64_t rank = 0; rank < all.rows(); ++rank) contents->changes.emplace_back(all.TextAt(rank));
  }
  std::vector<ShareReport> reports;
  const Column column = texts.Find("%report")->value.frame().column(0);
  for (int64_t rank = 0; rank < column.rows(); ++rank) {
    HEDDLE_ASSIGN_OR_RETURN(reports.emplace_back(), ShareReport::Parse(column.TextAt(rank)));
  }
  if (options_.rank != 0) return reports;
  const Column all = texts.Find("%printed")->value.frame().column(0);
  for (int64_t rank = 0; rank < all.rows(); ++rank)
    HEDDLE_RETURN_IF_ERROR(DecodeTexts(all.TextAt(rank), &contents->printed));
  return reports;
}

Result<bool> SharedIterations::AddTerms(const Block& loop, std::vector<SumTerm> terms, VariableTable* frame) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const SumTerm& a, const SumTerm& b) { return a.iteration < b.iteration; });
  const LoopFacts& facts = FactsOf(loop);
  VariableTable sums;
  for (const std::string& name : loop.sums) sums.Set(name, *frame->Find(name));
  for (SumTerm& term : terms) {
    const auto block = facts.adding.find(term.block);
    if (block == facts.adding.end()) return false;
    for (auto& [name, variable] : term.values) sums.Set(name, std::move(variable));
    const Status added = blocks_.Run(term.block, block->second->graph, &sums);
    if (added.is_on_every_rank()) return false;
    HEDDLE_RETURN_IF_ERROR(added);  // The others may have gone on.
  }
  HEDDLE_RETURN_IF_ERROR(blocks_.Settle());
  for (const std::string& name : loop.sums) frame->Set(name, *sums.Find(name));
  return true;
}

Status SharedIterations::ExchangeCells(const Block& loop, const std::vector<ShareReport>& reports,
                                       const VariableTable& before, std::vector<Matrix> cells,
                                       VariableTable* frame) {
  VariableTable changes;
  std::map<std::string, Distribution> wanted;
  for (size_t i = 0; i < loop.merged.size(); ++i) {
    std::vector<int64_t> rows;
    for (const ShareReport& report : reports) rows.push_back(report.changes[i].cells);
    Variable variable;
    variable.distribution = RowsOfEach(rows);
    if (variable.distribution.split.Length() == 0) continue;
    variable.info = ValueInfo::OfMatrix({variable.distribution.split.Length(), 2});
    if (cells[i].columns() != 2) {
      HEDDLE_ASSIGN_OR_RETURN(cells[i], Matrix::Dense(0, 2));
    }
    variable.value = Value(std::move(cells[i]));
    changes.Set(loop.merged[i], std::move(variable));
    const Distribution& home = frame->Find(loop.merged[i])->distribution;
    wanted[loop.merged[i]] = home.IsOne() ? home : Distribution::Each();
  }
  if (!wanted.empty()) HEDDLE_RETURN_IF_ERROR(blocks_.Exchange(wanted, &changes));
  for (size_t i = 0; i < loop.merged.size(); ++i) {
    const std::string& name = loop.merged[i];
    const ShareReport::Change* const touched = WhoTouched(reports, i);
    if (touched == nullptr || !before.Find(name)->info.IsMatrix()) continue;
    Variable merged = *frame->Find(name);
    merged.source = nullptr;
    merged.info = touched->info;
    if (!merged.IsHeldBy(options_.rank)) {
      merged.SetOnHost(Value());
    } else {
      const Variable* const changed = changes.Find(name);
      HEDDLE_RETURN_IF_ERROR(BringToHost(&merged));
      Matrix result = merged.value.matrix();
      if (changed != nullptr) {
        Variable old = *before.Find(name);
        HEDDLE_RETURN_IF_ERROR(BringIntoMemory(&old));
        const Matrix& whole = old.value.matrix();
        const Split& split = merged.distribution.split;
        const bool is_split = merged.distribution.IsSplit();
        const bool has_rows = is_split && split.axis == Axis::kRows;
        HEDDLE_ASSIGN_OR_RETURN(
            result, WithCells(whole, has_rows ? split.Begin(options_.rank) : 0,
                              has_rows ? split.End(options_.rank) : whole.rows(), changed->value.matrix()));
        if (is_split && !has_rows) {
          HEDDLE_ASSIGN_OR_RETURN(
              result, ops::SliceColumns(result, split.Begin(options_.rank), split.End(options_.rank)));
        }
      }
      HEDDLE_ASSIGN_OR_RETURN(result,
                              merged.info.format == Format::kDense ? ToDense(result) : ToSparse(result));
      merged.SetOnHost(Value(std::move(result)));
    }
    frame->Set(name, std::move(merged));
  }
  return OkStatus();
}

Status SharedIterations::AdoptChanges(const Block& loop, const std::vector<ShareReport>& reports,
                                      const VariableTable& before, const std::vector<std::string>& changes,
                                      VariableTable* frame) {
  std::vector<Variable> of_ranks;
  for (const std::string& bytes : changes) {
    HEDDLE_ASSIGN_OR_RETURN(of_ranks.emplace_back(), DecodeVariable(bytes));
    if (of_ranks.back().list == nullptr || of_ranks.back().list->size() != loop.merged.size())
      return Internal("what a parfor changed arrived damaged");
  }
  for (size_t i = 0; i < loop.merged.size() && !of_ranks.empty(); ++i) {
    const std::string& name = loop.merged[i];
    const ShareReport::Change* const touched = WhoTouched(reports, i);
    if (touched == nullptr || touched->info.IsMatrix()) continue;
    std::vector<Variable> own;
    for (const Variable& all : of_ranks) own.push_back(all.list->elements[i]);
    Variable merged = *frame->Find(name);
    merged.source = nullptr;
    if (touched->info.IsFrame()) {
      merged.info = touched->info;
      if (merged.IsHeldBy(options_.rank)) {
        HEDDLE_ASSIGN_OR_RETURN(const Variable whole, WithChanges(*before.Find(name), own));
        const Frame& cells = whole.value.frame();
        std::vector<Column> columns;
        for (int64_t j = 0; j < cells.columns(); ++j) columns.push_back(cells.column(j));
        const Frame renamed(merged.info.schema, std::move(columns));
        const Split& split = merged.distribution.split;
        merged.value = Value(merged.distribution.IsSplit()
                                 ? renamed.Rows(split.Begin(options_.rank), split.End(options_.rank))
                                 : renamed);
      }
    } else {
      // Elements that nobody changed stay where they are.
      HEDDLE_ASSIGN_OR_RETURN(merged, WithChanges(merged, own));
    }
    frame->Set(name, std::move(merged));
  }
  return OkStatus();
}

}  // namespace heddle::engine
