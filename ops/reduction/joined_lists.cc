// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction/joined_lists.h"

#include <algorithm>
#include <utility>

namespace heddle::ops {
namespace {

TreeNode NodeAt(const Matrix& list, int64_t row) {
  const double* const cells = list.data() + row * list.columns();
  return {static_cast<int64_t>(cells[0]), static_cast<int>(cells[1])};
}

// Numbers that no double can hold stand in rows of their own, which belong to the nodes of their list.
bool HasWideRows(const Matrix& list) {
  for (int64_t row = 0; row < list.rows(); ++row)
    if (NodeAt(list, row).level >= kWideLevel) return true;
  return false;
}

bool AreSiblings(const TreeNode& left, const TreeNode& right) {
  return left.level == right.level && left.index % 2 == 0 && left.index + 1 == right.index;
}

}  // namespace

void JoinedLists::Hold(Value list, const TreeNode& node, bool is_apart) {
  payloads_ += list.matrix().rows();
  held_.push_back({std::move(list), node, is_apart});
}

Status JoinedLists::JoinLast(const Join& join) {
  Held& left = held_[held_.size() - 2];
  Held& right = held_.back();
  HEDDLE_ASSIGN_OR_RETURN(Value joined, join(left.list, right.list));
  if (joined.matrix().rows() > 1) {
    left.is_apart = right.is_apart = true;
    return OkStatus();
  }
  left.node = NodeAt(joined.matrix(), 0);
  left.list = std::move(joined);
  held_.pop_back();
  --payloads_;
  return OkStatus();
}

Status JoinedLists::Add(const Value& list, const Join& join) {
  const Matrix& nodes = list.matrix();
  if (nodes.rows() == 0) empty_ = list;
  if (nodes.rows() == 0) return OkStatus();
  if (HasWideRows(nodes)) {
    Hold(list, NodeAt(nodes, 0), /*is_apart=*/true);
    return OkStatus();
  }
  for (int64_t row = 0; row < nodes.rows(); ++row) {
    Value one = list;
    if (nodes.rows() > 1) {  // A copy, for a view would keep the memory of all rows.
      HEDDLE_ASSIGN_OR_RETURN(Matrix copy, Matrix::Dense(1, nodes.columns()));
      std::copy_n(nodes.data() + row * nodes.columns(), nodes.columns(), copy.mutable_data());
      one = Value(std::move(copy));
    }
    Hold(std::move(one), NodeAt(nodes, row), /*is_apart=*/false);
    while (held_.size() > 1 && !held_.back().is_apart && !held_[held_.size() - 2].is_apart &&
           AreSiblings(held_[held_.size() - 2].node, held_.back().node))
      HEDDLE_RETURN_IF_ERROR(JoinLast(join));
  }
  return OkStatus();
}

Result<std::vector<Value>> JoinedLists::Finish(const Join& join) {
  // A node whose sibling has no leaves is its parent: where all leaves are there, one node is left.
  while (held_.size() > 1 && !held_.back().is_apart && !held_[held_.size() - 2].is_apart)
    HEDDLE_RETURN_IF_ERROR(JoinLast(join));
  std::vector<Value> lists;
  for (Held& held : held_) lists.push_back(std::move(held.list));
  if (lists.empty() && empty_.IsMatrix()) lists.push_back(std::move(empty_));
  held_.clear();
  payloads_ = 0;
  return lists;
}

HeldPayloads PayloadsHeld(int64_t begin, int64_t end, int64_t height) {
  HeldPayloads held;
  const auto nodes = [](int64_t from, int64_t to) {
    return static_cast<int64_t>(CoveringNodes(from, to).size());
  };
  for (int64_t from = begin; from < end; from += height) {
    const int64_t to = std::min(end, from + height), added = nodes(from, to);
    held.of_list = std::max(held.of_list, added);
    held.most = std::max(held.most, nodes(begin, from) + added);
  }
  held.left = nodes(begin, end);
  return held;
}

}  // namespace heddle::ops
