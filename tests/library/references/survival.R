# SPDX-License-Identifier: Apache-2.0
# Survival of patients with lung cancer (North Central Cancer Treatment Group; the data of R's package survival), by that
# package. Run in tests/library/references; writes ../data/lung.csv, too.
source("reference.R")
library(survival)

lung = na.omit(data.frame(time = survival::lung$time, event = survival::lung$status - 1, age = survival::lung$age,
  sex = survival::lung$sex, ecog = pmin(survival::lung$ph.ecog, 2), loss = survival::lung$wt.loss))
write.csv(lung, "../data/lung.csv", row.names = FALSE, quote = FALSE)
n = nrow(lung)
model = coxph(Surv(time, event) ~ age + sex + loss, lung, ties = "breslow", control = coxph.control(eps = 1e-14, iter.max = 50))
s = summary(model)
M = cbind(coef(model), exp(coef(model)), sqrt(diag(vcov(model))), coef(model) / sqrt(diag(vcov(model))), s$coefficients[, 5],
  confint(model, level = 0.9))
LL = model$loglik
S = c(n, model$nevent, LL[2], 6 - 2 * LL[2], 1 - exp(2 * (LL[1] - LL[2]) / n), 1 - exp(2 * LL[1] / n))
T = rbind(s$logtest, s$waldtest, s$sctest)
T[2, 1] = model$wald.test
E = outer(lung$ecog, 0:2, "==") + 0
factors = coxph(Surv(lung$time, lung$event) ~ E[, c(1, 3)], ties = "breslow", control = coxph.control(eps = 1e-14, iter.max = 50))
curves = function(formula, ...) {
  f = survfit(formula, lung, ...)
  strata = if (is.null(f$strata)) rep(1, length(f$time)) else rep(seq_along(f$strata), f$strata)
  cbind(strata, f$time, f$n.risk, f$n.event, f$surv, f$std.err * f$surv, f$lower, f$upper)[f$n.event > 0, ]
}
medians = function(formula, ...) {
  table = summary(survfit(formula, lung, ...))$table
  matrix(table, ncol = length(table) / (length(table) %/% 9))[, c(1, 4, 7, 8, 9)]
}
log_rank = survdiff(Surv(time, event) ~ ecog, lung)
peto = survdiff(Surv(time, event) ~ ecog + strata(sex), lung, rho = 1)
plain = survfit(Surv(time, event) ~ 1, lung, conf.type = "plain")
save_results("survival", M, S, T, vcov(model), coef(factors),
  curves(Surv(time, event) ~ sex), curves(Surv(time, event) ~ 1, conf.type = "log-log", conf.int = 0.9)[1:40, ],
  summary(survfit(Surv(time, event) ~ sex, lung))$table[, c(1, 4, 7, 8, 9)],
  c(3, 2, log_rank$chisq, pchisq(log_rank$chisq, 2, lower.tail = FALSE)), cbind(c(log_rank$n), log_rank$obs, log_rank$exp),
  c(3, 2, peto$chisq, pchisq(peto$chisq, 2, lower.tail = FALSE)), cbind(rowSums(peto$obs), rowSums(peto$exp)),
  summary(survfit(Surv(time, event) ~ sex + ecog, lung))$table[, c(1, 4, 7, 8, 9)])
