// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/values/panels.h"
#include "ops/base/operator.h"

// The sliding windows that conv2d and the pooling operators share: what a script says of images, filters,
// strides and padding, checked, and the size of the result that follows.
namespace heddle::ops {

/// Which lists of numbers a call has, in the order of its inputs.
enum class WindowForm : uint8_t {
  kFilter,  ///< input_shape=[N,C,H,W], filter_shape=[K,C,R,S], stride=[.,.], padding=[.,.]
  kPool,    ///< input_shape=[N,C,H,W], pool_size=[R,S], stride=[.,.], padding=[.,.]; K is C.
};
constexpr int InputsOf(WindowForm form) { return form == WindowForm::kFilter ? 12 : 10; }

/// Every image is a row: n images of c channels, h x w cells each, cell (channel, i, j) at column (channel *
/// h + i) * w + j. Window (i, j) of p x q covers rows [i * stride_h - pad_h, ... + r) and columns [j *
/// stride_w - pad_w, ... + s) of a channel; cells outside the image are padding. What is not known yet is
/// kUnknown.
struct Windows {
  int64_t n = kUnknown, c = kUnknown, h = kUnknown, w = kUnknown;
  int64_t k = kUnknown, r = kUnknown, s = kUnknown;
  int64_t stride_h = kUnknown, stride_w = kUnknown, pad_h = kUnknown, pad_w = kUnknown;
  int64_t p = kUnknown, q = kUnknown;

  int64_t Image() const;                    ///< Columns of the images: c * h * w.
  int64_t Filter() const;                   ///< Columns of the filters, cells of a window: c * r * s.
  int64_t Results() const;                  ///< Columns of the result: k * p * q.
  int64_t Places() const { return p * q; }  ///< Windows of a channel; all known.
};

/// From the scalar inputs [first, first + InputsOf(form)) of the node: during inference, where some may be
/// unknown, and in a kernel. kInvalidArgument or kFailedPrecondition when no images have such windows.
Result<Windows> InferWindows(const InferContext& context, int first, WindowForm form);
Result<Windows> GivenWindows(const KernelCall& call, int first, WindowForm form);

/// Windows [begin, end) of a row of the result whose column j lies within the image.
struct WindowRange {
  int64_t begin, end;
};
inline WindowRange WindowsInside(const Windows& windows, int64_t j) {
  const int64_t before = std::max<int64_t>(0, windows.pad_w - j), room = windows.w + windows.pad_w - j;
  const int64_t begin = std::min(windows.q, CeilDivide(before, windows.stride_w));
  return {begin, room <= 0 ? begin : std::clamp(CeilDivide(room, windows.stride_w), begin, windows.q)};
}

}  // namespace heddle::ops
