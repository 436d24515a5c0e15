# SPDX-License-Identifier: Apache-2.0
# Generalized linear models of the diabetes and breast cancer data by R's glm. Run in tests/library/references.
source("reference.R")

diabetes = data_of("diabetes")
X = cbind(diabetes[, c(3, 4, 9)] / 10, 1)
y = diabetes[, 11]
cancer = data_of("breast_cancer")
Z = cbind(cancer[, c(2, 5, 10)], 1)
Z[, 1] = Z[, 1] / 10
z = as.numeric(cancer[, 31] == 2)
control = glm.control(epsilon = 1e-15, maxit = 500)
fit = function(X, y, family, start = NULL) {
  model = suppressWarnings(glm.fit(X, y, family = family, start = start, control = control, intercept = FALSE))
  class(model) = c("glm", "lm")
  model
}
start_of = function(link) c(0, 0, 0, make.link(link)$linkfun(mean(y)))
inverse = c(0, 0, 0, 1 / mean(y))
square = c(0, 0, 0, 1 / mean(y)^2)
power_families = list(
  fit(X, y, gaussian("inverse"), inverse), fit(X, y, gaussian("log"), start_of("log")), fit(X, y, gaussian()),
  fit(X, y, poisson("log")), fit(X, y, poisson("sqrt")), fit(X, y, poisson("identity"), start_of("identity")),
  fit(X, y, Gamma("inverse"), inverse), fit(X, y, Gamma("log")), fit(X, y, Gamma("identity"), start_of("identity")),
  fit(X, y, inverse.gaussian("1/mu^2"), square), fit(X, y, inverse.gaussian("inverse"), inverse),
  fit(X, y, inverse.gaussian("log"), start_of("log")), fit(X, y, inverse.gaussian("identity"), start_of("identity")))
# log and square root need probabilities below 1: a model of the intercept and one weak column.
W = Z[, c(3, 4)]
binomial_families = list(
  fit(W, z, binomial("log"), c(0, log(mean(z)))), fit(W, z, binomial(power(0.5)), c(0, sqrt(mean(z)))),
  fit(Z, z, binomial("logit")), fit(Z, z, binomial("probit")), fit(Z, z, binomial("cloglog")), fit(Z, z, binomial("cauchit")))
# Counts: bins of mean texture.
bin = cut(Z[, 1], quantile(Z[, 1], (0:20) / 20), include.lowest = TRUE, labels = FALSE)
counts = cbind(1:20, tapply(z, bin, sum), tapply(1 - z, bin, sum))
grouped = glm(counts[, 2:3] ~ I(counts[, 1] / 10), family = binomial("probit"), control = control)
no_intercept = fit(Z[, 1:3], z, binomial("logit"))
save_results("glm",
  sapply(power_families, coef), sapply(power_families, deviance),
  sapply(power_families, function(f) sum(residuals(f, "pearson")^2)),
  sapply(binomial_families[1:2], coef), sapply(binomial_families[3:6], coef), sapply(binomial_families, deviance),
  counts, rev(coef(grouped)), fitted(grouped), coef(no_intercept),
  c(logLik(binomial_families[[3]])), fitted(power_families[[7]])[1:20], fitted(binomial_families[[6]])[1:20])
