// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/values/panels.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/operator.h"
#include "ops/base/stages.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/aggregate.h"

// What the operators of batch normalisation share: an image is a row, and channel k of `channels` has the
// columns [k * cells, (k + 1) * cells).
namespace heddle::ops {

struct Channels {
  RowSpan images = {};  ///< That are here, of all.
  int64_t channels = 0, cells = 0;

  /// All images of x are here, with a channel for each row of gamma.
  static Channels OfWhole(const Matrix& x, const Matrix& gamma) {
    return {{0, x.rows(), x.rows()}, gamma.rows(), x.columns() / gamma.rows()};
  }
  /// The images of this rank, its piece of the first input.
  static Channels OfRank(const StageCall& call, const Matrix& gamma) {
    const Matrix& x = call.inputs[0]->matrix();
    return {{call.rows.Begin(call.rank), call.rows.End(call.rank), call.rows.Length()},
            gamma.rows(),
            x.columns() / gamma.rows()};
  }

  int64_t Here() const { return images.end - images.begin; }
  /// Cells of a channel in all images.
  double Count() const { return static_cast<double>(images.total) * static_cast<double>(cells); }
  /// The first cell of a channel in an image that is here, the first of which has number 0.
  int64_t At(int64_t image, int64_t channel) const { return (image * channels + channel) * cells; }
};

/// An error with `code` unless `what` has a number for each of the channels of `gamma`, which X's columns are
/// divided among.
Status CheckChannels(std::string_view op, Shape x, Shape gamma, StatusCode code);
Status CheckColumn(std::string_view op, std::string_view what, Shape column, Shape gamma, StatusCode code);

/// For each channel k the sum of term(place) over its cells in the images that are here, term = term_of(k),
/// place counting all cells that are here, as a partial value: a leaf is a granule of images, of which cell j
/// of a channel goes to lane j mod 8, images ascending; then the tree, and L at the root (docs/numerics.md,
/// section 3).
template <typename TermOfChannel>
Result<Matrix> NodesOfChannels(const Channels& channels, const std::atomic<bool>* cancelled,
                               const TermOfChannel& term_of) {
  const int64_t granule = Granule(channels.images.total), first_image = channels.images.begin;
  const auto add = [&](int64_t leaf, int64_t channel, double* payload) {
    const auto term = term_of(channel);
    alignas(64) double lanes[8] = {};
    const int64_t last_image = std::min((leaf + 1) * granule, channels.images.end);
    for (int64_t image = leaf * granule; image < last_image; ++image) {
      const int64_t begin = channels.At(image - first_image, channel);
      int64_t j = 0;
      for (; j + 8 <= channels.cells; j += 8)
        for (int64_t lane = 0; lane < 8; ++lane) lanes[lane] += term(begin + j + lane);
      for (; j < channels.cells; ++j) lanes[j & 7] += term(begin + j);
    }
    std::copy_n(lanes, 8, payload);
  };
  const Reduction reduction{.width = 8 * channels.channels,
                            .leaf_cells = granule * channels.channels * channels.cells,
                            .cancelled = cancelled};
  const int64_t first = CeilDivide(first_image, granule), last = CeilDivide(channels.images.end, granule);
  return ReduceTiles(reduction, first, last, Tiling{1, reduction.width, 1, 8},
                     [&](const Tile& tile, int64_t leaf, double* payload) {
                       if (IsCancelled(cancelled)) return false;
                       add(leaf, tile.column / 8, payload);
                       return true;
                     });
}

/// The sums from all nodes.
Result<std::vector<double>> SumsOfChannels(const Channels& channels, const Matrix& nodes,
                                           const std::atomic<bool>* cancelled);

}  // namespace heddle::ops
