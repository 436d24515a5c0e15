// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/program.h"

// How values of variables are stored (docs/compression.md): what the compiler knows of who reads them.
namespace heddle::compiler {

/// True for compress() and decompress(), whose result is their input, stored in another way.
bool ChangesStorage(const Node& node);
/// True for compress().
bool Compresses(const Node& node);

/// Attribute of operators that make a matrix from a frame: TRUE where compress() is the one to read it, so
/// that they may make column groups instead of cells.
constexpr std::string_view kCompressed = "compressed";
/// The pass that sets it (compress_where_made.cc): compress() stands in the same block, or in one behind it.
/// Keeps bits. Needs: types.
Status CompressWhereMade(Program* program);

/// True for while, for and parfor.
bool IsLoop(const Block& block);

/// Whether the function may be called while it runs.
bool CallsItself(const Program& program, const std::string& function);

/// What reads a variable at one place.
struct StorageRead {
  std::string reader;       ///< The operator; "f()" of a function, "list" of a step on lists.
  SourcePosition position;  ///< In the function, where it reads it inside of one.
  double times = 1;         ///< For each time that the blocks run: rounds of the loops around it.
  bool needs_all = false;   ///< It gets the whole matrix decoded, each time.
  bool of_tuples = false;   ///< It reads dictionaries and not every row, where sums of the cells are exact.
};

/// Rounds that a loop of unknown length is taken to have.
constexpr double kGuessedRounds = 10;

/// Reads of `variable` in the blocks, and in functions that they pass it to. Sizes (nrow) are not among them.
/// Needs: types of variables, in node.info.
std::vector<StorageRead> ReadsOf(const Program& program, std::span<const Block> blocks,
                                 const std::string& variable);

/// A matrix that a loop reads and does not change.
struct LoopInput {
  std::string variable;
  ValueInfo info;
  std::vector<StorageRead> reads;  ///< By each run of the loop.
  double times = 0;                ///< Of all of them.
  double of_tuples = 0;            ///< Of those that are StorageRead::of_tuples.
  /// Why it is not compressed in front of the loop, as far as the text and known sizes tell; "" where it
  /// would be.
  std::string why_not;
};

/// The matrices that `loop` reads and does not change, in the order in which it reads them.
std::vector<LoopInput> InputsOf(const Program& program, const Block& loop);

}  // namespace heddle::compiler
