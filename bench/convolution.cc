// SPDX-License-Identifier: Apache-2.0
#include "bench/convolution.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench/base/expression.h"
#include "bench/base/probe.h"
#include "bench/matrices/random_matrices.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::bench {
namespace {

constexpr int kLeastRounds = 5;
constexpr double kMilliseconds = 3000;  // Of a case, about.
// Images whose windows the product multiplies: enough to be as fast as it ever is.
constexpr int64_t kImagesOfProduct = 8;

struct Layer {
  int64_t images, channels, size, filters, window, stride, padding;
  int64_t Places() const {
    const int64_t places = (size + 2 * padding - window) / stride + 1;
    return places * places;
  }
  int64_t Filter() const { return channels * window * window; }
  double Flops() const { return 2.0 * static_cast<double>(images * filters * Places() * Filter()); }
  std::string Name() const {
    return fmt::format("{0}x{1}x{2}x{2} by {3}x{1}x{4}x{4} stride {5}", images, channels, size, filters,
                       window, stride);
  }
  std::string Arguments() const {
    return fmt::format(
        "input_shape=[{0},{1},{2},{2}], filter_shape=[{3},{1},{4},{4}], stride=[{5},{5}], padding=[{6},{6}]",
        images, channels, size, filters, window, stride, padding);
  }
};
constexpr Layer kLayers[] = {{64, 3, 224, 64, 7, 2, 3}, {64, 64, 56, 64, 3, 1, 1}};

Expression Compiled(const std::string& result, std::map<std::string, Value> inputs, ops::Arena* arena) {
  Result<Expression> expression = Expression::Compile("", {result}, std::move(inputs), "off", arena);
  if (!expression.ok()) {
    std::fprintf(stderr, "heddle-bench: %s\n", expression.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(expression);
}

void Print(const std::string& name, double ms, double flops, double product, const BenchOptions& options) {
  const double speed = flops / ms / 1e6;
  if (options.json)
    std::printf(
        "{\"bench\":\"convolution\",\"case\":\"%s\",\"ms\":%.3f,\"gflop_per_s\":%.2f,\"product_gflop_per_s\":%.2f,"
        "\"to_product\":%.3f,\"threads\":%d}\n",
        name.c_str(), ms, speed, product, speed / product, options.threads);
  else
    std::printf("%-72s %9.3f ms  %7.2f GFLOP/s  product %7.2f (ratio %.3f)\n", name.c_str(), ms, speed,
                product, speed / product);
  std::fflush(stdout);
}

// The forms take turns with the product; the best of each counts.
void Measure(const Layer& layer, bool singles, const BenchOptions& options, ops::Arena* arena) {
  const auto cells = [&](int64_t rows, int64_t columns, uint64_t seed) {
    Matrix doubles = RandomDense(rows, columns, seed, arena);
    return singles ? *ops::Narrow(doubles) : doubles;
  };
  const Matrix x = cells(layer.images, layer.channels * layer.size * layer.size, 1);
  const Matrix w = cells(layer.filters, layer.Filter(), 2);
  const Matrix d = cells(layer.images, layer.filters * layer.Places(), 3);
  const Matrix unfolded = cells(kImagesOfProduct * layer.Places(), layer.Filter(), 4);
  const Matrix turned = cells(layer.Filter(), layer.filters, 5);
  const std::string name = layer.Name() + (singles ? ", floats" : ", doubles");
  const std::string list = ", " + layer.Arguments() + ")";
  struct Form {
    std::string name;
    Expression expression;
    double ms = 1e300;
  };
  Form forms[] = {
      {"conv2d", Compiled("conv2d(X, W" + list, {{"X", x}, {"W", w}}, arena)},
      {"conv2d_backward_data", Compiled("conv2d_backward_data(W, D" + list, {{"W", w}, {"D", d}}, arena)},
      {"conv2d_backward_filter",
       Compiled("conv2d_backward_filter(X, D" + list, {{"X", x}, {"D", d}}, arena)}};
  Expression product = Compiled("U %*% V", {{"U", unfolded}, {"V", turned}}, arena);
  double product_ms = 1e300, spent_ms = 0;
  for (int round = 0; round < kLeastRounds || spent_ms < kMilliseconds; ++round) {
    product_ms = std::min(product_ms, Time([&] { product.Run(); }));
    for (Form& form : forms) {
      if ((form.name + " " + name).find(options.only) == std::string::npos) continue;
      const double ms = Time([&] { form.expression.Run(); });
      form.ms = std::min(form.ms, ms);
      spent_ms += ms;
    }
    spent_ms += product_ms;
  }
  const double of_product = layer.Flops() * kImagesOfProduct / static_cast<double>(layer.images);
  for (const Form& form : forms)
    if (form.ms < 1e300)
      Print(form.name + " " + name, form.ms, layer.Flops(), of_product / product_ms / 1e6, options);
}

}  // namespace

int RunConvolution(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  for (const Layer& layer : kLayers)
    for (const bool singles : {false, true}) Measure(layer, singles, options, &arena);
  return 0;
}

}  // namespace heddle::bench
