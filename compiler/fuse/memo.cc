// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/memo.h"

#include <algorithm>

#include "compiler/fuse/template.h"

namespace heddle::compiler::fusion {
namespace {

char LetterOf(FusionTemplate kind) {
  switch (kind) {
    case FusionTemplate::kMultiAggregate: return 'M';
    case FusionTemplate::kStitch: return 'S';
    case FusionTemplate::kOuter: return 'O';
    case FusionTemplate::kRow: return 'R';
    case FusionTemplate::kCell: return 'C';
  }
  return '?';
}

// Whether an entry without references stays although no entry refers to the node (FusionTraits::alone). It
// shows in reports; no plan depends on it.
bool StandsAlone(const Dag& dag, NodeId id) { return dag[id].op != nullptr && dag[id].op->fusion.alone; }

void RemoveSingleOperators(const Dag& dag, Memo* memo) {
  std::vector<bool> referenced(memo->groups.size(), false);
  for (const std::vector<Entry>& group : memo->groups)
    for (const Entry& entry : group)
      for (NodeId ref : entry.refs)
        if (ref != kNoNode && !entry.JoinsOperators()) referenced[static_cast<size_t>(ref)] = true;
  for (NodeId id = 0; id < dag.size(); ++id)
    if (!referenced[static_cast<size_t>(id)] && !StandsAlone(dag, id))
      std::erase_if((*memo)[id],
                    [](const Entry& entry) { return entry.References() == 0 && !entry.JoinsOperators(); });
}

// By node: whether some candidate holds it together with an operator that needs whole rows, such as a
// product.
std::vector<bool> NeedRows(const Dag& dag, const Memo& memo) {
  const size_t count = memo.groups.size();
  std::vector<bool> referenced(count, false), above(count, false), below(count, false), at(count, false);
  const auto is = [](const std::vector<bool>& set, NodeId id) { return set[static_cast<size_t>(id)]; };
  for (const std::vector<Entry>& group : memo.groups)
    for (const Entry& entry : group)
      for (NodeId ref : entry.refs)
        if (ref != kNoNode && !entry.JoinsOperators()) referenced[static_cast<size_t>(ref)] = true;
  for (NodeId id = 0; id < dag.size(); ++id) {
    if (memo[id].empty()) continue;
    switch (dag[id].op->fusion.use) {
      case ops::RowUse::kProduct:
      case ops::RowUse::kTransposedProduct:
      case ops::RowUse::kCbind: at[static_cast<size_t>(id)] = true; break;
      case ops::RowUse::kColumnRange: at[static_cast<size_t>(id)] = dag[id].columns > 1; break;
      case ops::RowUse::kRowAggregate: at[static_cast<size_t>(id)] = is(referenced, id); break;
      default: break;
    }
    above[static_cast<size_t>(id)] = is(at, id);
    for (const Entry& entry : memo[id])
      for (NodeId ref : entry.refs)
        if (ref != kNoNode && !entry.JoinsOperators() && is(above, ref))
          above[static_cast<size_t>(id)] = true;
  }
  for (NodeId id = dag.size(); id-- > 0;) {
    if (!is(at, id) && !is(below, id)) continue;
    below[static_cast<size_t>(id)] = true;
    for (const Entry& entry : memo[id])
      for (NodeId ref : entry.refs)
        if (ref != kNoNode && !entry.JoinsOperators()) below[static_cast<size_t>(ref)] = true;
  }
  for (size_t i = 0; i < count; ++i) at[i] = above[i] || below[i];
  return at;
}

std::vector<std::array<NodeId, kMaxArity>> ReferencesOf(const std::vector<Entry>& group,
                                                        FusionTemplate kind) {
  std::vector<std::array<NodeId, kMaxArity>> result;
  for (const Entry& entry : group)
    if (entry.kind == kind) result.push_back(entry.refs);
  return result;
}

void RowToCell(const Dag& dag, Memo* memo) {
  const std::vector<bool> need_rows = NeedRows(dag, *memo);
  for (NodeId id = 0; id < dag.size(); ++id)
    if (!need_rows[static_cast<size_t>(id)] &&
        ReferencesOf((*memo)[id], FusionTemplate::kRow) == ReferencesOf((*memo)[id], FusionTemplate::kCell))
      std::erase_if((*memo)[id], [](const Entry& entry) { return entry.kind == FusionTemplate::kRow; });
}

// Two operators can share a pass where both read rows of one matrix. They also can where one computes what
// the other reads, unless Row or Cell already computes that value inside and no third operator reads it.
void RemoveLonelyStitches(const Dag& dag, Memo* memo) {
  const auto joins = [&](NodeId id) {
    return std::any_of((*memo)[id].begin(), (*memo)[id].end(),
                       [](const Entry& entry) { return entry.JoinsOperators(); });
  };
  std::vector<int> row_readers(dag.nodes.size(), 0);
  const auto reads_rows = [&](NodeId id, NodeId input) {
    return input != kNoNode && dag[input].matrix && kStitchTemplate.fuse(dag, id, input);
  };
  for (NodeId id = 0; id < dag.size(); ++id) {
    if (!joins(id)) continue;
    const std::vector<NodeId>& inputs = dag[id].inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (reads_rows(id, inputs[i]) && std::find(inputs.begin(), inputs.begin() + static_cast<long>(i),
                                                 inputs[i]) == inputs.begin() + static_cast<long>(i))
        ++row_readers[static_cast<size_t>(inputs[i])];
  }
  std::vector<bool> shares_pass(dag.nodes.size(), false);
  for (NodeId id = dag.size(); id-- > 0;) {
    if (!joins(id)) continue;
    for (const NodeId input : dag[id].inputs) {
      if (!reads_rows(id, input)) continue;
      const bool fuses = std::any_of((*memo)[id].begin(), (*memo)[id].end(), [&](const Entry& entry) {
        return !entry.JoinsOperators() && entry.Refers(input);
      });
      const bool is_computed = joins(input) && (dag[input].consumers.size() > 1 || !fuses);
      if (!is_computed && row_readers[static_cast<size_t>(input)] < 2) continue;
      shares_pass[static_cast<size_t>(id)] = true;
      if (is_computed) shares_pass[static_cast<size_t>(input)] = true;
    }
  }
  for (NodeId id = 0; id < dag.size(); ++id)
    if (!shares_pass[static_cast<size_t>(id)])
      std::erase_if((*memo)[id], [](const Entry& entry) { return entry.JoinsOperators(); });
  // References to nodes that lost their entry go, too.
  for (NodeId id = 0; id < dag.size(); ++id)
    for (Entry& entry : (*memo)[id])
      for (NodeId& ref : entry.refs)
        if (entry.JoinsOperators() && ref != kNoNode && !shares_pass[static_cast<size_t>(ref)]) ref = kNoNode;
}

}  // namespace

std::string ToText(const Entry& entry) {
  std::string text(1, LetterOf(entry.kind));
  for (int i = 0; i < entry.arity; ++i) {
    text += i == 0 ? '(' : ',';
    text += std::to_string(entry.refs[static_cast<size_t>(i)]);
  }
  text += ')';
  if (!entry.valid) text += "|x";
  return text;
}

std::string ToText(const Memo& memo, const Graph& graph) {
  std::string text;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (memo[id].empty()) continue;
    text += std::to_string(id) + " " + graph[id].op + ":";
    for (const Entry& entry : memo[id]) text += " " + ToText(entry);
    text += '\n';
  }
  return text;
}

void Prune(const Dag& dag, Memo* memo) {
  RemoveSingleOperators(dag, memo);
  RowToCell(dag, memo);
  RemoveLonelyStitches(dag, memo);
}

}  // namespace heddle::compiler::fusion
