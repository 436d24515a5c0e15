// SPDX-License-Identifier: Apache-2.0
#include "ops/neural/windows.h"

#include <array>
#include <functional>

#include "core/values/sizes.h"
#include "ops/base/arguments.h"

namespace heddle::ops {
namespace {

constexpr int kMostInputs = InputsOf(WindowForm::kFilter);

struct Element {
  std::string_view list;
  int index;  // From 1, as a user counts.
  int64_t least;
};
constexpr Element kFilterElements[] = {{"input_shape", 1, 0},  {"input_shape", 2, 1},  {"input_shape", 3, 1},
                                       {"input_shape", 4, 1},  {"filter_shape", 1, 1}, {"filter_shape", 2, 1},
                                       {"filter_shape", 3, 1}, {"filter_shape", 4, 1}, {"stride", 1, 1},
                                       {"stride", 2, 1},       {"padding", 1, 0},      {"padding", 2, 0}};
constexpr Element kPoolElements[] = {{"input_shape", 1, 0}, {"input_shape", 2, 1}, {"input_shape", 3, 1},
                                     {"input_shape", 4, 1}, {"pool_size", 1, 1},   {"pool_size", 2, 1},
                                     {"stride", 1, 1},      {"stride", 2, 1},      {"padding", 1, 0},
                                     {"padding", 2, 0}};

int64_t Product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor == kUnknown) return kUnknown;
    product = SaturatingProduct(product, factor);
  }
  return product;
}

// Windows of r cells along h cells with padding on both sides: floor((h + 2 * pad - r) / stride) + 1.
Result<int64_t> CountWindows(std::string_view op, std::string_view what, int64_t h, int64_t r, int64_t stride,
                             int64_t pad, StatusCode code) {
  if (h == kUnknown || r == kUnknown || stride == kUnknown || pad == kUnknown) return kUnknown;
  const int64_t padded = SaturatingSum(h, SaturatingProduct(2, pad));
  if (r > padded)
    return Status(code, fmt::format("{}: a window of {} {} does not fit into images of {} with their padding",
                                    op, r, what, padded));
  return (padded - r) / stride + 1;
}

// `number` gives input first + i, kUnknown where it is not known yet.
Result<Windows> MakeWindows(std::string_view op, WindowForm form, StatusCode code,
                            const std::function<Result<int64_t>(int i, std::string_view what)>& number) {
  const bool is_pool = form == WindowForm::kPool;
  const Element* const elements = is_pool ? kPoolElements : kFilterElements;
  std::array<int64_t, kMostInputs> given{};
  for (int i = 0; i < InputsOf(form); ++i) {
    const Element& element = elements[i];
    const std::string what = fmt::format("{}[{}]", element.list, element.index);
    HEDDLE_ASSIGN_OR_RETURN(given[static_cast<size_t>(i)], number(i, what));
    const int64_t value = given[static_cast<size_t>(i)];
    if (value != kUnknown && value < element.least)
      return Status(code, fmt::format("{}: {} must be at least {}, not {}", op, what, element.least, value));
  }
  Windows windows{.n = given[0], .c = given[1], .h = given[2], .w = given[3]};
  size_t next = 4;
  windows.k = is_pool ? windows.c : given[next++];
  if (!is_pool) {
    const int64_t channels = given[next++];
    if (windows.c == kUnknown) windows.c = channels;
    if (channels != kUnknown && channels != windows.c)
      return Status(code, fmt::format("{}: filters have {} channels, images {}", op, channels, windows.c))
          .WithNote("filter_shape[2] is input_shape[2]");
  }
  windows.r = given[next++];
  windows.s = given[next++];
  windows.stride_h = given[next++];
  windows.stride_w = given[next++];
  windows.pad_h = given[next++];
  windows.pad_w = given[next++];
  HEDDLE_ASSIGN_OR_RETURN(
      windows.p, CountWindows(op, "rows", windows.h, windows.r, windows.stride_h, windows.pad_h, code));
  HEDDLE_ASSIGN_OR_RETURN(
      windows.q, CountWindows(op, "columns", windows.w, windows.s, windows.stride_w, windows.pad_w, code));
  return windows;
}

}  // namespace

int64_t Windows::Image() const { return Product({c, h, w}); }
int64_t Windows::Filter() const { return Product({c, r, s}); }
int64_t Windows::Results() const { return Product({k, p, q}); }

Result<Windows> InferWindows(const InferContext& context, int first, WindowForm form) {
  return MakeWindows(context.node.op, form, StatusCode::kInvalidArgument,
                     [&](int i, std::string_view what) -> Result<int64_t> {
                       return InferSize(context, first + i, what, kUnknown);
                     });
}

Result<Windows> GivenWindows(const KernelCall& call, int first, WindowForm form) {
  return MakeWindows(call.node.op, form, StatusCode::kFailedPrecondition,
                     [&](int i, std::string_view what) -> Result<int64_t> {
                       return GivenSize(call, first + i, what, kUnknown);
                     });
}

}  // namespace heddle::ops
