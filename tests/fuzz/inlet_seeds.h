// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// Valid inputs of inlets, which fuzzers begin with.
namespace heddle::fuzz {

std::vector<std::string> CsvSeeds();
std::vector<std::string> FrameSeeds();
std::vector<std::string> CellSeeds();
std::vector<std::string> MatrixMarketSeeds();
std::vector<std::string> LibsvmSeeds();
std::vector<std::string> ArffSeeds();
std::vector<std::string> GuessedSeeds();  ///< All of these.
std::vector<std::string> GzipSeeds();
std::vector<std::string> RdsSeeds();  ///< Files of R: matrices, sparse ones, data frames and workspaces.
std::vector<std::string> MetadataSeeds();
std::vector<std::string> TransformSeeds();
std::vector<std::string> TokenizeSeeds();
std::vector<std::string> MapSeeds();
std::vector<std::string> RegularExpressionSeeds();
std::vector<std::string> ColumnGroupSeeds();  ///< Compressed matrices of every encoding, of both types.
std::vector<std::string> ScriptSeeds();

/// Small values as `write` makes files of them; none if it does not write this format.
std::vector<std::string> WrittenSeeds(const std::string& format, bool is_frame);

/// Makes all checksums right in a file that may be Heddle's binary format, as far as its parts are found.
void RepairBinary(std::string* bytes);

}  // namespace heddle::fuzz
