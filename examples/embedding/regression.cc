// SPDX-License-Identifier: Apache-2.0
// A program that embeds Heddle (docs/embedding.md): a regression on numbers of its own, an error with its
// place in the script, and a run that another thread ends.
#include <cstdio>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace {

constexpr char kRegression[] = R"(
  A = t(X) %*% X + diag(matrix(lambda, rows=ncol(X), cols=1))
  w = solve(A, t(X) %*% y)
  print("residual " + round(sqrt(sum((y - X %*% w) ^ 2))))
)";

int Fail(const heddle::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int main() {
  namespace engine = heddle::engine;
  const auto made = engine::Engine::Create();
  if (!made.ok()) return Fail(made.status());
  const engine::Engine& heddle = **made;

  // Four points of the line y = 2 x + 1, row by row; the script reads them where they are.
  std::vector<double> x = {1, 1, 2, 1, 3, 1, 4, 1}, y = {3, 5, 7, 9};
  const auto type = heddle::ElementType::kFloat64;
  const auto points = heddle::Matrix::AdoptDense(x.data(), 4, 2, type, [] { std::puts("x is free again"); });
  const auto values = heddle::Matrix::AdoptDense(y.data(), 4, 1, type, nullptr);
  if (!points.ok() || !values.ok()) return 1;
  engine::RunCallbacks callbacks;
  callbacks.print = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  const auto results =
      heddle.Run({.text = kRegression, .name = "regression.dml"},
                 {{"X", *points}, {"y", *values}, {"lambda", heddle::Scalar(0.0)}}, {"w"}, callbacks);
  if (!results.ok()) return Fail(results.status());
  const heddle::Matrix w = results->outputs.at("w").value.matrix();
  std::printf("slope %.6f, intercept %.6f\n", w.data()[0], w.data()[1]);

  const auto wrong = heddle.Run({.text = "z = X %*% X", .name = "wrong.dml"}, {{"X", *points}}, {"z"});
  std::printf("%s\n", wrong.status().ToString().c_str());

  engine::Cancellation cancellation;
  callbacks.cancellation = &cancellation;
  callbacks.print = [&](std::string_view) { cancellation.Request(heddle::Cancelled("the user left")); };
  std::thread endless([&] {
    const auto ended = heddle.Run({.text = "print(\"begun\")\nwhile (TRUE) { x = 1 }"}, {}, {}, callbacks);
    std::printf("%s\n", ended.status().ToString().c_str());
  });
  endless.join();
}
