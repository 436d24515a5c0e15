// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/neural_kernels.h"

#include <utility>

#include "tests/reference/lstm.h"
#include "tests/reference/neural.h"
#include "tests/reference/reorganize.h"

namespace heddle::ops::reference {
namespace {

using Inputs = std::span<const Value* const>;

const Matrix& M(Inputs inputs, size_t i) { return inputs[i]->matrix(); }

// The numbers of the call begin at input `first`; a pool has no filters.
ImageCall CallOf(Inputs inputs, size_t first, bool is_pool) {
  const auto next = [&] { return static_cast<int64_t>(inputs[first++]->scalar().AsDouble()); };
  ImageCall call{};
  call.n = next();
  call.c = next();
  call.h = next();
  call.w = next();
  call.k = call.c;
  if (!is_pool) {
    call.k = next();
    next();
  }
  call.r = next();
  call.s = next();
  call.stride_h = next();
  call.stride_w = next();
  call.pad_h = next();
  call.pad_w = next();
  return call;
}

LstmCall LstmOf(Inputs inputs) {
  return {M(inputs, 0), M(inputs, 1), M(inputs, 2),
          M(inputs, 3), M(inputs, 4), inputs[5]->scalar().AsBoolean()};
}

constexpr std::pair<std::string_view, Kernel> kKernels[] = {
    {"conv2d",
     [](const Node&, Inputs inputs) -> Value {
       return Conv2d(CallOf(inputs, 2, false), M(inputs, 0), M(inputs, 1));
     }},
    {"conv2d_backward_data",
     [](const Node&, Inputs inputs) -> Value {
       return Conv2dBackwardData(CallOf(inputs, 2, false), M(inputs, 0), M(inputs, 1));
     }},
    {"conv2d_backward_filter",
     [](const Node&, Inputs inputs) -> Value {
       return Conv2dBackwardFilter(CallOf(inputs, 2, false), M(inputs, 0), M(inputs, 1));
     }},
    {"max_pool",
     [](const Node&, Inputs inputs) -> Value { return MaxPool(CallOf(inputs, 1, true), M(inputs, 0)); }},
    {"avg_pool",
     [](const Node&, Inputs inputs) -> Value { return AveragePool(CallOf(inputs, 1, true), M(inputs, 0)); }},
    {"max_pool_backward",
     [](const Node&, Inputs inputs) -> Value {
       return MaxPoolBackward(CallOf(inputs, 2, true), M(inputs, 0), M(inputs, 1));
     }},
    {"max_pool_at",
     [](const Node&, Inputs inputs) -> Value {
       return MaxPoolAt(CallOf(inputs, 2, true), M(inputs, 0), M(inputs, 1));
     }},
    {"avg_pool_backward",
     [](const Node&, Inputs inputs) -> Value {
       return AveragePoolBackward(CallOf(inputs, 2, true), M(inputs, 0), M(inputs, 1));
     }},
    {"bias_add", [](const Node&, Inputs inputs) -> Value { return Bias(M(inputs, 0), M(inputs, 1), false); }},
    {"bias_multiply",
     [](const Node&, Inputs inputs) -> Value { return Bias(M(inputs, 0), M(inputs, 1), true); }},
};

constexpr std::pair<std::string_view, SeveralKernel> kSeveralKernels[] = {
    {"batch_norm2d",
     [](const Node&, Inputs inputs) {
       return ValuesOf(BatchNorm(M(inputs, 0), {M(inputs, 1), M(inputs, 2), M(inputs, 3), M(inputs, 4)},
                                 inputs[5]->scalar().AsString() == "train", inputs[6]->scalar().AsDouble(),
                                 inputs[7]->scalar().AsDouble()));
     }},
    {"batch_norm2d_moments",
     [](const Node&, Inputs inputs) {
       std::vector<Matrix> results = BatchNorm(
           M(inputs, 0), {M(inputs, 1), M(inputs, 2), M(inputs, 3), M(inputs, 4)},
           inputs[5]->scalar().AsBoolean(), inputs[6]->scalar().AsDouble(), inputs[7]->scalar().AsDouble());
       results.erase(results.begin());
       return ValuesOf(std::move(results));
     }},
    {"batch_norm2d_backward",
     [](const Node&, Inputs inputs) {
       return ValuesOf(
           BatchNormBackward(M(inputs, 0), M(inputs, 1), M(inputs, 2), M(inputs, 4), M(inputs, 5)));
     }},
    {"lstm", [](const Node&, Inputs inputs) { return ValuesOf(Lstm(LstmOf(inputs))); }},
    {"lstm_by_rows",
     [](const Node&, Inputs inputs) {
       std::vector<Matrix> results = Lstm(LstmOf(inputs));
       const int64_t n = M(inputs, 0).rows(), gates = M(inputs, 1).columns();
       for (size_t i = 2; i < results.size(); ++i) {
         const int64_t columns = results[i].rows() * (i == 4 ? gates : gates / 4);
         results[i] = n == 0 ? *FilledMatrix(0, columns, 0) : Regroup(results[i], n);
       }
       return ValuesOf(std::move(results));
     }},
    {"lstm_backward_by_rows",
     [](const Node&, Inputs inputs) {
       return ValuesOf(LstmBackward(LstmOf(inputs), M(inputs, 6), M(inputs, 7)));
     }},
    {"lstm_backward",
     [](const Node&, Inputs inputs) {
       return ValuesOf(LstmBackward(LstmOf(inputs), M(inputs, 6), M(inputs, 7)));
     }},
};

}  // namespace

Kernel FindNeuralKernel(std::string_view name) {
  for (const auto& [known, kernel] : kKernels)
    if (known == name) return kernel;
  return nullptr;
}

SeveralKernel FindNeuralSeveralKernel(std::string_view name) {
  for (const auto& [known, kernel] : kSeveralKernels)
    if (known == name) return kernel;
  return nullptr;
}

}  // namespace heddle::ops::reference
