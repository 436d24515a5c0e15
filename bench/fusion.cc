// SPDX-License-Identifier: Apache-2.0
#include "bench/fusion.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "bench/base/expression.h"
#include "bench/fusion_row.h"
#include "bench/fusion_shapes.h"
#include "bench/hand/fusion.h"
#include "bench/matrices/random_matrices.h"

// The cases, group by group: matrices are made for a group that is wanted and given back after it.
namespace heddle::bench {
namespace {

double Bytes(const Matrix& matrix) { return static_cast<double>(matrix.bytes()); }
double Bytes(int64_t cells) { return static_cast<double>(cells) * 8; }

HandCsr Csr(const Matrix& x) {
  return {x.row_offsets(), x.column_indexes(), x.values(), x.rows(), x.columns()};
}

std::string AsMatrix(const std::string& scalar) { return "as.matrix(" + scalar + ")"; }

bool WantsAny(const FusionMeter& meter, std::initializer_list<std::string> names) {
  for (const std::string& name : names)
    if (meter.Wants(name)) return true;
  return false;
}

// The dense cases of ten columns.
void RunCells(FusionMeter& meter) {
  const int64_t n = 10, m = meter.options().cells / n, cells = m * n;
  const std::string sum = "sum(X*Y*Z)", product = "X*Y*Z", sums = "sum(X*Y), sum(X*Z)", rows = "rowSums(X*Y)",
                    columns = "colSums(X*Y)", sigmoid = "sum(sigmoid(2*X-1)*Y)",
                    exponential = "sum(exp(X)*log(Y+1))";
  if (!WantsAny(meter, {sum, product, sums, rows, columns, sigmoid, exponential})) return;
  const Matrix x = RandomDense(m, n, 11, meter.arena()), y = RandomDense(m, n, 12, meter.arena());
  const double *px = x.data(), *py = y.data();
  if (WantsAny(meter, {sum, product, sums})) {
    const Matrix z = RandomDense(m, n, 13, meter.arena());
    const double* pz = z.data();
    meter.Measure({sum,
                   "",
                   AsMatrix(sum),
                   {{"X", x}, {"Y", y}, {"Z", z}},
                   {1, 1},
                   3 * Bytes(cells),
                   0,
                   [=](double* out) { *out = HandSumOfProducts(px, py, pz, cells); }});
    meter.Measure({sums,
                   "a = sum(X*Y)\nb = sum(X*Z)",
                   "cbind(as.matrix(a), as.matrix(b))",
                   {{"X", x}, {"Y", y}, {"Z", z}},
                   {1, 2},
                   3 * Bytes(cells)});
    meter.Measure(
        {product, "", product, {{"X", x}, {"Y", y}, {"Z", z}}, {m, n}, 4 * Bytes(cells), 0, [=](double* out) {
           HandTripleProduct(px, py, pz, out, cells);
         }});
  }
  meter.Measure({rows, "", rows, {{"X", x}, {"Y", y}}, {m, 1}, 2 * Bytes(cells) + Bytes(m)});
  meter.Measure({columns, "", columns, {{"X", x}, {"Y", y}}, {1, n}, 2 * Bytes(cells)});
  meter.Measure({sigmoid,
                 "",
                 "as.matrix(sum(1/(1+exp(-(2*X-1)))*Y))",
                 {{"X", x}, {"Y", y}},
                 {1, 1},
                 2 * Bytes(cells),
                 0,
                 [=](double* out) { *out = HandSumOfSigmoids(px, py, cells); }});
  meter.Measure({exponential,
                 "",
                 AsMatrix(exponential),
                 {{"X", x}, {"Y", y}},
                 {1, 1},
                 2 * Bytes(cells),
                 0,
                 [=](double* out) { *out = HandSumOfExponentials(px, py, cells); }});
}

void RunChains(FusionMeter& meter) {
  const std::string chain = "t(X)%*%(X%*%v)", multinomial = "multinomial", symmetric = "t(X)%*%X",
                    wide = "t(X)%*%(X%*%V)";
  for (const int64_t n : {10, 100, 1000}) {
    const int64_t m = meter.options().cells / 2 / n;
    const std::string shape = fmt::format(" {}x{}", m, n);
    std::vector<std::string> names = {chain + shape};
    if (n == 100) names.insert(names.end(), {multinomial + shape, symmetric + shape});
    bool any = false;
    for (const std::string& name : names) any = any || meter.Wants(name);
    for (const int64_t k : {10, 100, 1000})
      any = any || (n == 100 && meter.Wants(fmt::format("{} {} columns", wide + shape, k)));
    if (!any) continue;
    const Matrix x = RandomDense(m, n, 21, meter.arena());
    const double* px = x.data();
    const Matrix v = RandomDense(n, 1, 22, meter.arena());
    meter.Measure(
        {names[0], "", chain, {{"X", x}, {"v", v}}, {n, 1}, Bytes(x), 0, [=, pv = v.data()](double* out) {
           HandChain(px, pv, out, m, n);
         }});
    if (n != 100) continue;
    const Matrix p = RandomDense(m, 5, 23, meter.arena()), weights = RandomDense(n, 4, 24, meter.arena());
    meter.Measure(
        {names[1],
         "Q = P[,1:4] * (X %*% V)",
         "t(X) %*% (Q - P[,1:4] * rowSums(Q))",
         {{"X", x}, {"P", p}, {"V", weights}},
         {n, 4},
         Bytes(x) + Bytes(p),
         0,
         [=, pv = weights.data(), pp = p.data()](double* out) { HandMultinomial(px, pv, pp, out, m, n); }});
    // The symmetric half only.
    meter.Measure(
        {names[2], "", symmetric, {{"X", x}}, {n, n}, Bytes(x), static_cast<double>(m * n * (n + 1))});
    for (const int64_t k : {10, 100, 1000}) {
      // A thousand columns are so much arithmetic that a tenth of the rows shows it.
      const int64_t rows = k == 1000 ? m / 10 : m;
      const Matrix right = RandomDense(n, k, 25, meter.arena());
      const Matrix part = x.Rows(0, rows);
      // As written, or with the symmetric t(X)%*%X first.
      const auto flops = static_cast<double>(std::min(4 * rows * n * k, rows * n * (n + 1) + 2 * n * n * k));
      meter.Measure({fmt::format("{} {}x{} {} columns", wide, rows, n, k),
                     "",
                     wide,
                     {{"X", part}, {"V", right}},
                     {n, k},
                     Bytes(rows * n),
                     flops});
    }
  }
}

// Cell-wise operators after a product of rows. The flops are those of the product.
void RunLayers(FusionMeter& meter) {
  const int64_t n = 100, k = 100, m = meter.options().cells / 2 / n;
  const std::string suffix = fmt::format(" {}x{} {} columns", m, n, k), layer = "sigmoid(X%*%W+b)",
                    error = "sum((X%*%W-Y)^2)";
  if (!WantsAny(meter, {layer + suffix, error + suffix})) return;
  const Matrix x = RandomDense(m, n, 71, meter.arena()), y = RandomDense(m, k, 72, meter.arena()),
               w = RandomDense(n, k, 73, meter.arena()), b = RandomDense(1, k, 74, meter.arena());
  const auto flops = static_cast<double>(2 * m * n * k);
  meter.Measure({layer + suffix, "", layer, {{"X", x}, {"W", w}, {"b", b}}, {m, k}, 2 * Bytes(x), flops});
  meter.Measure(
      {error + suffix, "", AsMatrix(error), {{"X", x}, {"W", w}, {"Y", y}}, {1, 1}, 2 * Bytes(x), flops});
}

void RunProduct(FusionMeter& meter) {
  const int64_t n =
      std::min<int64_t>(2000, std::llround(std::sqrt(static_cast<double>(meter.options().cells)) / 5));
  const std::string name = fmt::format("X%*%Y {0}x{0}x{0}", n);
  if (!meter.Wants(name)) return;
  const Matrix x = RandomDense(n, n, 31, meter.arena()), y = RandomDense(n, n, 32, meter.arena());
  meter.Measure({name,
                 "",
                 "X%*%Y",
                 {{"X", x}, {"Y", y}},
                 {n, n},
                 3 * Bytes(n * n),
                 2.0 * static_cast<double>(n * n * n),
                 [=, px = x.data(), py = y.data()](double* out) { EigenProduct(px, py, out, n, n, n); },
                 meter.blas().present() ? [=, &meter, px = x.data(), py = y.data()](
                                              double* out) { meter.blas().Multiply(px, py, out, n, n, n); }
                                        : std::function<void(double*)>()});
}

void RunSparse(FusionMeter& meter) {
  const int64_t n = 1000, m = meter.options().cells / 100;
  for (const double density : {0.1, 0.01, 0.001}) {
    const std::string suffix = fmt::format(" {}x{} sparse {}", m, n, density), sum = "sum(X*Y*Z)",
                      chain = "t(X)%*%(X%*%v)";
    if (!WantsAny(meter, {sum + suffix, chain + suffix})) continue;
    const Matrix x = RandomSparse(m, n, density, 41, meter.arena());
    if (meter.Wants(chain + suffix)) {
      const Matrix v = RandomDense(n, 1, 42, meter.arena());
      meter.Measure({chain + suffix,
                     "",
                     chain,
                     {{"X", x}, {"v", v}},
                     {n, 1},
                     Bytes(x),
                     0,
                     [=, pv = v.data()](double* out) { HandSparseChain(Csr(x), pv, out); }});
    }
    if (!meter.Wants(sum + suffix)) continue;
    const Matrix y = RandomSparse(m, n, density, 43, meter.arena()),
                 z = RandomSparse(m, n, density, 44, meter.arena());
    meter.Measure({sum + suffix,
                   "",
                   AsMatrix(sum),
                   {{"X", x}, {"Y", y}, {"Z", z}},
                   {1, 1},
                   Bytes(x) + Bytes(y) + Bytes(z),
                   0,
                   [=](double* out) { *out = HandSparseSum(Csr(x), Csr(y), Csr(z)); }});
  }
}

void RunOuter(FusionMeter& meter) {
  const int64_t n = std::llround(2 * std::sqrt(static_cast<double>(meter.options().cells)));
  for (const double density : {0.01, 0.001}) {
    for (const int64_t rank : {20, 100}) {
      const std::string suffix = fmt::format(" {}x{} sparse {} rank {}", n, n, density, rank),
                        log = "sum(X*log(U%*%t(V)+1e-15))", right = "((X!=0)*(U%*%t(V)))%*%V",
                        loss = "sum((X!=0)*(X-U%*%t(V))^2)";
      if (!WantsAny(meter, {log + suffix, right + suffix, loss + suffix})) continue;
      const Matrix x = RandomSparse(n, n, density, 51, meter.arena()),
                   u = RandomDense(n, rank, 52, meter.arena()), v = RandomDense(n, rank, 53, meter.arena());
      const double *pu = u.data(), *pv = v.data(), bytes = Bytes(x) + Bytes(u) + Bytes(v);
      const std::map<std::string, Value> inputs = {{"X", x}, {"U", u}, {"V", v}};
      meter.Measure({log + suffix, "", AsMatrix(log), inputs, {1, 1}, bytes, 0, [=](double* out) {
                       *out = HandOuterLog(Csr(x), pu, pv, rank);
                     }});
      meter.Measure(
          {right + suffix, "", right, inputs, {n, rank}, bytes + Bytes(n * rank), 0, [=](double* out) {
             HandOuterRight(Csr(x), pu, pv, rank, out);
           }});
      meter.Measure({loss + suffix, "", AsMatrix(loss), inputs, {1, 1}, bytes, 0, [=](double* out) {
                       *out = HandOuterLoss(Csr(x), pu, pv, rank);
                     }});
    }
  }
}

}  // namespace

int RunFusion(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  FusionMeter meter(options, &arena);
  meter.PrintProbes();
  RunCells(meter);
  RunChains(meter);
  RunLayers(meter);
  RunProduct(meter);
  RunSparse(meter);
  RunOuter(meter);
  RunShapes(meter);
  return meter.all_agree() ? 0 : 1;
}

}  // namespace heddle::bench
