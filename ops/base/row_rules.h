// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/base/operator.h"

// What many operators say of how they can be shared out.
namespace heddle::ops {

/// For Operator::row_rule: row i of the result comes from row i of the inputs, in every call.
inline RowRule RowWise(const Node&, std::span<const ValueInfo>) { return RowRule::kRowWise; }

/// For StagedForm::applies: the size of the result is known before the run.
inline bool IsSized(const Node& node, std::span<const ValueInfo>) { return node.info.IsSized(); }

/// Operator::panel_use, whatever the call.
inline PanelUse ReadsPanels(const Graph&, const Node&) { return PanelUse::kReads; }
inline PanelUse ViewsPanels(const Graph&, const Node&) { return PanelUse::kViews; }

}  // namespace heddle::ops
