// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/programs/graph.h"
#include "core/status.h"
#include "core/values/row_panels.h"
#include "core/values/value.h"
#include "ops/panels/panel_store.h"

namespace heddle::ops {

/// Rows and columns of panels, counted from 0: [row_begin, row_end) x [column_begin, column_end).
struct PanelRange {
  int64_t row_begin = 0, row_end = 0;
  int64_t column_begin = 0, column_end = 0;
};
/// A part of a value in panels: its rows are read when they are asked for, and nothing is kept.
std::shared_ptr<const RowPanels> RangeOfPanels(std::shared_ptr<const RowPanels> panels,
                                               const PanelRange& range);

/// The same rows for a reader that knows no compressed matrices: such rows come dense.
std::shared_ptr<const RowPanels> DecodedPanels(std::shared_ptr<const RowPanels> panels);
/// The rows of a compressed matrix, decoded when they are asked for: dense, or CSR where the format says so.
std::shared_ptr<const RowPanels> DecodedPanels(Matrix compressed, Format format);

/// Matrices, or frames, one below the other, some of them panels; those in memory are given to the store.
/// Matrices are stored as `info` says, frames have its columns. There is at least one. Fails as
/// PanelStore::Collector::Add does.
Result<Value> JoinedPanels(std::span<const Value* const> values, const ValueInfo& info, PanelStore& store);

}  // namespace heddle::ops
