// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

// Kernels of products in OpenCL C (DeviceProduct).
namespace heddle::ops {

/// Cells of the result that a work-group computes, and its work-items.
struct ProductTile {
  int64_t rows, columns, group_size, local_bytes;
};

/// What stands in front of both kernels. LEAVES: of all terms. TREE joins the leaf of a run, which is in
/// `held`, with the nodes that it completes: of each level one waits for the next in `nodes`. After the last
/// leaf `held` has the root of the run. JOIN(level), the kernel's, adds `held` to the node of a level, and
/// KEEP(level) lets it wait there; OF_NODE is the place of a cell.
extern const std::string_view kTreeOfLeaves;

/// `heddle_product` computes tiles of C = A B. Runs of `run` leaves are trees of their own: a group computes
/// a tile of one leaf after the other and joins them. Of each leaf it takes terms [begin, end), which follow
/// those in `sums` where begin is not 0 (of runs of one leaf). Term k of leaf l is term l * height + k of A
/// and B.
///
/// Arguments: m, n, terms (of all leaves), height, run, first_tile, is_symmetric, begin, end; a, first_a,
/// a_row, a_column; b, first_b, b_row; sums; nodes, levels; out, is_last. Where is_last is not 0, the launch
/// has the last terms of the only run, and cells go to `out` as those of the result; else `sums` has one
/// m x n array of doubles for each run. Of doubles both may be the same memory. `nodes` has `levels` such
/// arrays for each run of several leaves: as many as run - 1 has binary digits. Tiles below the diagonal of a
/// symmetric result are left out.
///
/// A group takes sixteen terms at a time to local memory, of 128 rows of A and 64 columns of B, and each of
/// its 256 work-items has 8 x 4 cells in registers: for GPUs.
extern const std::string_view kProductInLocalMemory;
inline constexpr ProductTile kTileInLocalMemory = {128, 64, 256, (129 + 64) * 16 * 8};

/// The same by one work-item, for processors. It packs 128 terms of 120 rows of A and of 64 columns of B, so
/// that each cell of them comes from memory once for a tile, and has some rows of vectors in registers at a
/// time.
extern const std::string_view kProductOfVectors;
inline constexpr ProductTile kTileOfVectors = {120, 64, 1, 0};

/// Of payloads of nodes: heddle_add(cells, a, b) adds b to a; heddle_pack(n, root, packed) makes the cells of
/// PackTriangles of an n x n one.
extern const std::string_view kNodesOfProducts;

}  // namespace heddle::ops
