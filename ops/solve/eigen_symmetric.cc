// SPDX-License-Identifier: Apache-2.0
#include "ops/solve/eigen_symmetric.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

// Columns `column` and the next one, x and y, become c x + s y and c y - s x.
struct Rotation {
  int64_t column;
  double c, s;
};

// Rows of a panel, and the vectors of processors that hold them.
constexpr int64_t kPanelRows = 16, kVectors = 4;
// Rotations that are gathered: a panel of rows and they are in the second-level cache.
constexpr size_t kRotationsTogether = 1 << 14;
// Steps for each value before the matrix is given up; two do nearly always.
constexpr int64_t kMostSteps = 30;

// The matrix of vectors as panels of rows, in each column after column.
class Panels {
 public:
  static Result<Panels> Of(const Cells& q) {
    Panels panels;
    panels.columns_ = q.cols();
    panels.count_ = CeilDivide(q.rows(), kPanelRows);
    HEDDLE_ASSIGN_OR_RETURN(panels.cells_, Matrix::Dense(panels.count_ * q.cols(), kPanelRows));
    panels.data_ = panels.cells_.mutable_data();
    for (int64_t panel = 0; panel < panels.count_; ++panel) {
      const int64_t rows = std::min<int64_t>(kPanelRows, q.rows() - panel * kPanelRows);
      for (int64_t j = 0; j < q.cols(); ++j) {
        double* const to = panels.At(panel, j);
        std::fill_n(to, kPanelRows, 0.0);
        std::copy_n(q.data() + j * q.rows() + panel * kPanelRows, rows, to);
      }
    }
    return panels;
  }

  void Turn(const std::vector<Rotation>& rotations) {
    ParallelFor(count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) TurnPanel(rotations, At(panel, 0));
    });
  }

  // Column order[j] becomes column j.
  void CopyTo(const std::vector<int64_t>& order, Cells* q) const {
    for (int64_t j = 0; j < columns_; ++j)
      for (int64_t panel = 0; panel < count_; ++panel)
        std::copy_n(At(panel, order[static_cast<size_t>(j)]),
                    std::min<int64_t>(kPanelRows, q->rows() - panel * kPanelRows),
                    q->data() + j * q->rows() + panel * kPanelRows);
  }

 private:
  double* At(int64_t panel, int64_t column) const { return data_ + (panel * columns_ + column) * kPanelRows; }

  // The column that two rotations in a row share stays in registers.
  static void TurnPanel(const std::vector<Rotation>& rotations, double* cells) {
    const Rotation *next = rotations.data(), *const end = next + rotations.size();
    while (next < end) {
      int64_t column = next->column;
      __m256d x[kVectors];
      for (int64_t v = 0; v < kVectors; ++v) x[v] = _mm256_load_pd(cells + column * kPanelRows + 4 * v);
      for (; next < end && next->column == column; ++next, ++column) {
        const __m256d c = _mm256_set1_pd(next->c), s = _mm256_set1_pd(next->s);
        double* const at = cells + column * kPanelRows;
        for (int64_t v = 0; v < kVectors; ++v) {
          const __m256d y = _mm256_load_pd(at + kPanelRows + 4 * v);
          _mm256_store_pd(at + 4 * v, _mm256_fmadd_pd(c, x[v], _mm256_mul_pd(s, y)));
          x[v] = _mm256_fnmadd_pd(s, x[v], _mm256_mul_pd(c, y));
        }
      }
      for (int64_t v = 0; v < kVectors; ++v) _mm256_store_pd(cells + column * kPanelRows + 4 * v, x[v]);
    }
  }

  int64_t columns_ = 0, count_ = 0;
  Matrix cells_;
  double* data_ = nullptr;
};

// c x + s z = r and c z - s x = 0.
struct Zeroing {
  double c = 1, s = 0, r;
  Zeroing(double x, double z) : r(x) {
    if (z == 0) return;
    if (std::abs(x) > std::abs(z)) {
      const double t = z / x, u = std::sqrt(std::fma(t, t, 1.0));
      c = 1 / u;
      s = t / u;
      r = x * u;
    } else {
      const double t = x / z, u = std::sqrt(std::fma(t, t, 1.0));
      s = 1 / u;
      c = t / u;
      r = z * u;
    }
  }
};

// A symmetric tridiagonal matrix on its way to a diagonal one.
class Tridiagonal {
 public:
  Tridiagonal(Eigen::VectorXd diagonal, Eigen::VectorXd below)
      : d_(std::move(diagonal)), e_(std::move(below)) {}

  // Steps until nothing is left beside the diagonal; `use` takes the rotations, some thousand at a time.
  // False: too many steps.
  template <typename Use>
  bool Diagonalize(const Use& use) {
    std::vector<Rotation> rotations;
    rotations.reserve(kRotationsTogether + static_cast<size_t>(d_.size()));
    int64_t steps = 0;
    for (int64_t end = d_.size() - 1; end > 0;) {
      LeaveEigenIfCancelled();
      if (IsNegligible(end - 1)) {
        e_[--end] = 0;
        continue;
      }
      int64_t start = end - 1;
      while (start > 0 && !IsNegligible(start - 1)) --start;
      if (start > 0) e_[start - 1] = 0;
      if (++steps > kMostSteps * d_.size()) return false;
      Step(start, end, &rotations);
      if (rotations.size() < kRotationsTogether) continue;
      use(rotations);
      rotations.clear();
    }
    use(rotations);
    return true;
  }

  const Eigen::VectorXd& diagonal() const { return d_; }

 private:
  bool IsNegligible(int64_t i) const {
    const double size = std::abs(e_[i]);
    return size <= std::numeric_limits<double>::epsilon() * (std::abs(d_[i]) + std::abs(d_[i + 1])) ||
           size < std::numeric_limits<double>::min();
  }

  // An implicit QR step of rows start to end, which have no zero beside the diagonal.
  void Step(int64_t start, int64_t end, std::vector<Rotation>* rotations) {
    // The value of the last two rows that is nearer to the last one.
    const double t = (d_[end - 1] - d_[end]) / 2 / e_[end - 1];
    const double shift = d_[end] - e_[end - 1] / (t + std::copysign(std::sqrt(std::fma(t, t, 1.0)), t));
    double x = d_[start] - shift, z = e_[start];
    for (int64_t k = start; k < end; ++k) {
      const Zeroing zeroing(x, z);
      const double c = zeroing.c, s = zeroing.s;
      if (k > start) e_[k - 1] = zeroing.r;
      const double b = e_[k], q = std::fma(s, d_[k + 1] - d_[k], 2 * c * b);
      d_[k] += s * q;
      d_[k + 1] -= s * q;
      e_[k] = std::fma(c, q, -b);
      rotations->push_back({k, c, s});
      if (k + 1 == end) return;
      x = e_[k];
      z = s * e_[k + 1];
      e_[k + 1] *= c;
    }
  }

  Eigen::VectorXd d_, e_;
};

}  // namespace

Status EigenOfSymmetric(Cells a, Eigen::VectorXd* values, Cells* vectors) {
  const int64_t n = a.rows();
  if (n == 1) {
    *values = a.col(0);
    *vectors = Cells::Ones(1, 1);
    return OkStatus();
  }
  // Squares of numbers of at most 1 do not overflow.
  const double largest = a.triangularView<Eigen::Lower>().toDenseMatrix().cwiseAbs().maxCoeff();
  const double scale = largest == 0 ? 1 : largest;
  a /= scale;
  Eigen::VectorXd diagonal, below;
  {
    const Eigen::Tridiagonalization<Cells> form(a);
    diagonal = form.diagonal();
    below = form.subDiagonal();
    a = form.matrixQ();
  }
  HEDDLE_ASSIGN_OR_RETURN(Panels panels, Panels::Of(a));
  Tridiagonal matrix(std::move(diagonal), std::move(below));
  if (!matrix.Diagonalize([&](const std::vector<Rotation>& rotations) { panels.Turn(rotations); }))
    return FailedPrecondition("eigen: the values of the {}x{} matrix were not found in {} rounds", n, n,
                              kMostSteps * n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const Eigen::VectorXd& found = matrix.diagonal();
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return found[i] < found[j]; });
  values->resize(n);
  for (int64_t i = 0; i < n; ++i) (*values)[i] = found[order[static_cast<size_t>(i)]] * scale;
  vectors->resize(n, n);
  panels.CopyTo(order, vectors);
  return OkStatus();
}

}  // namespace heddle::ops
