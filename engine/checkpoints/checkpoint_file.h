// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/status.h"
#include "engine/checkpoints/checkpoint_store.h"
#include "engine/variables/control_state.h"
#include "ops/panels/panel_store.h"

// A checkpoint as objects of a store, one of each rank: the values of which the rank holds cells, in wire
// form (engine/wire/value_wire.h), then a text that says where the control program stands, what its variables
// are and where in the object their values lie, with checksums; then the place of that text. What every rank
// has is in the object of rank 0 alone, and what sources give (Variable::source) is in none. Of a value that
// is split over the ranks, each object has a part without rows or columns as well, for a rank to come that
// has no others of it.
namespace heddle::engine {

/// The object of `rank` in the checkpoint of that name.
std::string CheckpointObject(const std::string& checkpoint, int rank);

/// Of a value in panels, about how many bytes of rows are in memory at a time while they are written, on a
/// rank that may hold `memory_bytes`.
int64_t CheckpointPieceBytes(int64_t memory_bytes);

/// Writes what `rank` has of `state`. Of values that are panels, about `piece_bytes` are read at a time. The
/// number of bytes. Errors: those of the store, and of panels that cannot be read; kCancelled when
/// `*given_up` (nullptr: never).
Result<int64_t> WriteCheckpoint(const ControlState& state, int rank, const std::string& checkpoint,
                                CheckpointStore& store, int64_t piece_bytes,
                                const std::atomic<bool>* given_up = nullptr);

/// What a rank goes on with, of `ranks`: not always as many as there were. Those that hold parts of a value
/// afterwards are the ranks in their order, each with the parts of neighbours; values that were panels are
/// panels of `panels`. Variables with a source have no value yet. Large values of several parts go through
/// `panels` as well, so that where its room is small each part is let go before the next one is read.
///
/// Errors:  kDataLoss for bytes that are no checkpoint, of another length or with another checksum; those of
///          the store; kResourceExhausted.
Result<ControlState> ReadCheckpoint(const std::string& checkpoint, int ranks_before, int rank, int ranks,
                                    CheckpointStore& store, ops::PanelStore& panels);

}  // namespace heddle::engine
