// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/static/static_reports.h"

#include <fmt/format.h>

#include <cstddef>

#include "ops/base/operator.h"
#include "ops/generate/sequence.h"

namespace heddle::compiler {

void StaticReports::Report(const Status& status, bool certain, bool may_be_unread) {
  if (muted_ > 0 || diagnostics_ == nullptr) return;
  // What may go wrong in Heddle's own library says nothing to those who call it: its functions check their
  // arguments.
  if (!certain && IsInLibrary(status.position())) return;
  std::vector<CallSite> shown_calls;
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call)
    AppendCall(call->function, call->position, &shown_calls);
  const Status shown = InCalls(status, shown_calls);
  if (certain) {
    diagnostics_->AddStatus(shown);
    return;
  }
  const SourcePosition& at = shown.position();
  Diagnostic& warning =
      diagnostics_->Warning(at.file, {{at.line, at.column}, {at.line, at.column}}, shown.message());
  warning.notes = shown.notes();
  warning.notes.insert(
      warning.notes.begin() + static_cast<std::ptrdiff_t>(status.notes().size()),
      may_be_unread ? "the script ends with this error if it comes here, unless nothing reads the result"
                    : "the script ends with this error if it comes here");
}

void StaticReports::ReportStop(const Node& stop, const std::vector<std::optional<Scalar>>& values) {
  if (ops::RoleOf(stop) != ops::Role::kStop || !IsInLibrary(stop.position) || stop.inputs.empty()) return;
  const std::optional<Scalar>& text = values[static_cast<size_t>(stop.inputs[0])];
  if (text) Report(Aborted("{}", text->ToText()).At(stop.position), /*certain=*/true);
}

void StaticReports::WarnOfLostNumbers(const Block& block, const std::vector<std::optional<Scalar>>& values) {
  if (muted_ > 0 || diagnostics_ == nullptr) return;
  for (NodeId id = 0; id < block.graph.size(); ++id) {
    const Node& node = block.graph[id];
    if (node.inputs.size() < 2 || !ops::HasRole(node, ops::Role::kSequence)) continue;
    const auto value = [&](size_t i) -> const Scalar* {
      const bool is_given = i < node.inputs.size() && node.inputs[i] != kNoNode;
      const std::optional<Scalar>* known = is_given ? &values[static_cast<size_t>(node.inputs[i])] : nullptr;
      return known != nullptr && known->has_value() && !(*known)->IsString() ? &**known : nullptr;
    };
    const Scalar *const from = value(0), *const to = value(1), *const increment = value(2);
    if (from == nullptr || to == nullptr || increment == nullptr) continue;
    const std::optional<double> lost = ops::NumberLostBySeq(from->AsDouble(), to->AsDouble(), increment);
    if (!lost || !warned_.insert({block.id, id}).second) continue;
    const SourcePosition& at = node.position;
    diagnostics_
        ->Warning(
            at.file, {{at.line, at.column}, {at.line, at.column}},
            fmt::format("seq: the last number is missing, because rounding makes it {}, which is beyond {}",
                        Scalar(*lost).ToText(), to->ToText()))
        .notes.push_back(fmt::format("an end half a step further keeps it: seq({}, {}, {})", from->ToText(),
                                     Scalar(to->AsDouble() + increment->AsDouble() / 2).ToText(),
                                     increment->ToText()));
  }
}

void StaticReports::CheckRounds(const Graph& graph, const std::vector<std::optional<Scalar>>& values,
                                const KnownRounds& rounds) {
  if (muted_ > 0) return;
  for (NodeId id = 0; id < graph.size(); ++id) {
    constexpr size_t kLeastInputs = 5;  // What is indexed, and four bounds.
    if (graph[id].inputs.size() < kLeastInputs) continue;
    if (!ops::HasRole(graph[id], {ops::Role::kRange, ops::Role::kRangeAssign})) continue;
    const Status status = rounds.CheckIndex(graph, values, id);
    const SourcePosition& at = graph[id].position;
    if (!status.ok() && reported_rounds_.insert(at.ToString()).second)
      Report(status.At(at), /*certain=*/false, /*may_be_unread=*/true);
  }
}

}  // namespace heddle::compiler
