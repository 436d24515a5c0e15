// SPDX-License-Identifier: Apache-2.0
#include "ops/solve/eigen_general.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace heddle::ops {

Status EigenOfGeneral(const Cells& a, Eigen::VectorXd* values, Cells* vectors) {
  Eigen::EigenSolver<Cells> solver(a);
  const Shape shape{a.rows(), a.cols()};
  if (solver.info() != Eigen::Success)
    return FailedPrecondition("eigen: the values of the {} matrix were not found in {} rounds", shape,
                              solver.getMaxIterations());
  const auto& found = solver.eigenvalues();
  for (Eigen::Index j = 0; j < found.size(); ++j) {
    if (found(j).imag() == 0) continue;
    return FailedPrecondition("eigen: the {} matrix has complex eigenvalues, {} +- {}i among them", shape,
                              Scalar(found(j).real()).ToText(), Scalar(std::abs(found(j).imag())).ToText())
        .WithNote("matrices hold real numbers; those of a symmetric matrix always have real eigenvalues");
  }
  std::vector<Eigen::Index> order(static_cast<size_t>(found.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Eigen::Index i, Eigen::Index j) { return found(i).real() < found(j).real(); });
  const Cells unscaled = solver.pseudoEigenvectors();
  values->resize(a.rows());
  vectors->resize(a.rows(), a.cols());
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    const Eigen::Index from = order[static_cast<size_t>(j)];
    (*values)(j) = found(from).real();
    vectors->col(j) = unscaled.col(from).normalized();
  }
  return OkStatus();
}

}  // namespace heddle::ops
