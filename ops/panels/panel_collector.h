// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "core/status.h"
#include "core/values/row_panels.h"
#include "core/values/value.h"
#include "ops/panels/panel_room.h"
#include "ops/panels/panel_store.h"

namespace heddle::ops {

/// Bytes of the pool of blocks that rows in memory of their own take.
int64_t HeldBytes(const Value& rows);
/// kInternal for rows that are none of the value's.
Status CheckRows(const PanelSet& set, const Value& rows);

/// The rows of a set, for who reads them (panel_store.cc).
std::shared_ptr<const RowPanels> PanelsOf(PanelRoom& room, std::shared_ptr<PanelSet> set);
/// Takes the rows of a set. Rows of fewer than `least_panel_bytes` wait for more.
std::unique_ptr<PanelStore::Collector> CollectorOf(PanelRoom& room, std::shared_ptr<PanelSet> set,
                                                   int64_t least_panel_bytes);

}  // namespace heddle::ops
