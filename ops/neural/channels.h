// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/base/operator.h"
#include "ops/simd/aggregate.h"

// What the operators of batch normalisation share: an image is a row, and channel k of `channels` has the
// columns [k * cells, (k + 1) * cells).
namespace heddle::ops {

struct Channels {
  int64_t images = 0, channels = 0, cells = 0;
  double Count() const { return static_cast<double>(images) * static_cast<double>(cells); }
  int64_t At(int64_t image, int64_t channel) const { return (image * channels + channel) * cells; }
};

/// An error with `code` unless `what` has a number for each of the channels of `gamma`, which X's columns are
/// divided among.
Status CheckChannels(std::string_view op, Shape x, Shape gamma, StatusCode code);
Status CheckColumn(std::string_view op, std::string_view what, Shape column, Shape gamma, StatusCode code);

/// The sum of term(place) over the cells of a channel, place counting cells of the whole matrix: eight lanes,
/// cell j of an image in lane j mod 8, images ascending; then L (docs/numerics.md, section 3).
template <typename Term>
double SumOfChannel(const Channels& channels, int64_t channel, const Term& term) {
  alignas(64) double lanes[8] = {};
  for (int64_t image = 0; image < channels.images; ++image) {
    const int64_t begin = channels.At(image, channel);
    int64_t j = 0;
    for (; j + 8 <= channels.cells; j += 8)
      for (int64_t lane = 0; lane < 8; ++lane) lanes[lane] += term(begin + j + lane);
    for (; j < channels.cells; ++j) lanes[j & 7] += term(begin + j);
  }
  return simd::FoldLanes(simd::Fold::kAdd, lanes);
}

}  // namespace heddle::ops
