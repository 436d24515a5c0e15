# SPDX-License-Identifier: Apache-2.0
# Models of two series of R's data sets by R's arima. Run in tests/library/references; writes the series, too.
source("reference.R")

write.csv(data.frame(level = as.numeric(LakeHuron)), "../data/lake_huron.csv", row.names = FALSE)
write.csv(data.frame(deaths = as.numeric(USAccDeaths)), "../data/accidents.csv", row.names = FALSE)
fit = function(x, order, seasonal = c(0, 0, 0), period = 1)
  arima(x, order, seasonal = list(order = seasonal, period = period), include.mean = FALSE, method = "CSS",
    optim.control = list(reltol = 1e-16, maxit = 2000))
level = as.numeric(LakeHuron)
deaths = as.numeric(USAccDeaths) / 1000
centered = level - mean(level)
save_results("arima", coef(fit(centered, c(2, 0, 0))), coef(fit(centered, c(1, 0, 1))), coef(fit(level, c(0, 1, 2))),
  coef(fit(deaths, c(0, 1, 1), c(0, 1, 1), 12)), coef(fit(deaths, c(1, 0, 0), c(1, 1, 0), 12)))
