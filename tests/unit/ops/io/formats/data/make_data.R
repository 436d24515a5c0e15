# SPDX-License-Identifier: Apache-2.0
# Writes the file of R in this folder, run in it: Rscript make_data.R
library(rhdf5)
unlink("r.h5")
h5createFile("r.h5")
h5write(c(1L, NA, 3L), "r.h5", "integers")
h5write(c(TRUE, NA, FALSE), "r.h5", "logicals")
h5write(matrix(c(1.5, NA, 3, 4, 5, 6), 2, 3), "r.h5", "doubles")
h5closeAll()
