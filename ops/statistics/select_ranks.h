// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::ops {

/// The cells that stand at some places of all cells in ascending order; -0 stands before 0.
///
/// `places` ascend, from 0. The result has a cell for each of them; it is empty when a cell is NaN, which has
/// no place. Cost:   reads the cells twice, on all threads, and copies those that share the first 16 bits
/// with a result: what
///         sorts or partitions all cells writes each of them several times.
/// Source: selection by digits, as in Alabi et al., Fast k-selection algorithms for graphics processing
/// units. ACM
///         Journal of Experimental Algorithmics 17 (2012), section 4.2.
std::vector<double> SelectRanks(std::span<const double> cells, std::span<const int64_t> places);

}  // namespace heddle::ops
