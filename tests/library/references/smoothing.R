# SPDX-License-Identifier: Apache-2.0
# Smoothing of the series of arima.R by R's HoltWinters, and a GARCH model of returns of the DAX. Run in
# tests/library/references; writes the returns, too.
source("reference.R")

returns = round(100 * diff(log(EuStockMarkets[1:501, "DAX"])), 5)
write.csv(data.frame(percent = returns), "../data/dax.csv", row.names = FALSE)
level = as.numeric(LakeHuron)
deaths = as.numeric(USAccDeaths)
first = deaths[1:12]
trend = (mean(deaths[13:24]) - mean(first)) / 12
line = mean(first) + trend * ((1:12) - 6.5)
triple = HoltWinters(ts(deaths, frequency = 12), 0.4, 0.1, 0.3, l.start = line[12], b.start = trend, s.start = first - line)
# The likelihood by a plain loop.
negative = function(b) {
  v = b[1] + (b[2] + b[3]) * mean(returns^2)
  total = 0
  for (t in seq_along(returns)) {
    if (t > 1) v = b[1] + b[2] * returns[t - 1]^2 + b[3] * v
    total = total + (log(v) + returns[t]^2 / v) / 2
  }
  total
}
b = c(0.1, 0.1, 0.8)
for (i in 1:20) b = optim(b, function(b) if (min(b) < 0 || b[2] + b[3] >= 1) 1e10 else negative(b), control = list(reltol = 1e-15, maxit = 5000))$par
save_results("smoothing", fitted(HoltWinters(level, 0.3, beta = FALSE, gamma = FALSE))[, 1],
  fitted(HoltWinters(level, 0.3, 0.2, gamma = FALSE))[, 1], fitted(triple)[, 1], b, negative(b))
