# SPDX-License-Identifier: Apache-2.0
# Writes files of R, NAME.rds and NAME.RData, and beside each what it holds: Rscript rds_interop.R FOLDER
# NAME.cells has a line "row column kind hexadecimal" for each cell, rows from 1, row 0 the names; kind is n
# for a number, t for a text, b for TRUE or FALSE, - for what is missing. NAME.sum is the sum of the cells of
# a matrix, each times its row and its column.
folder <- commandArgs(trailingOnly = TRUE)[1]
path <- function(name, ending) file.path(folder, paste0(name, ending))
hexadecimal <- function(text) paste(as.character(charToRaw(enc2utf8(text))), collapse = "")

cells <- function(column) {
  is_time <- inherits(column, c("Date", "POSIXct"))
  is_number <- is.numeric(column) && !is.factor(column) && !is_time
  kind <- if (is.logical(column)) "b" else if (is_number) "n" else "t"
  text <- if (inherits(column, "POSIXct")) {
    format(column, "%Y-%m-%dT%H:%M:%SZ", tz = "UTC")
  } else if (is_number && !inherits(column, "integer64")) {
    trimws(formatC(column, digits = 17, format = "g"))
  } else {
    as.character(column)
  }
  unname(ifelse(is.na(column), "-", paste(kind, vapply(text, hexadecimal, ""))))
}
dump <- function(frame, name) {
  lines <- character(0)
  for (j in seq_along(frame)) {
    column <- c(paste("t", hexadecimal(names(frame)[j])), cells(frame[[j]]))
    lines <- c(lines, paste(seq_along(column) - 1, j - 1, column))
  }
  writeLines(lines, path(name, ".cells"))
}

set.seed(1)
n <- 300
some <- function(values) { values[sample(n, 20)] <- NA; values }
latin <- "Zo\xeb"
Encoding(latin) <- "latin1"
frame <- data.frame(
  double = some(rnorm(n) * 10^sample(-300:300, n, TRUE)),
  integer = some(sample(-1e9:1e9, n)),
  logical = some(sample(c(TRUE, FALSE), n, TRUE)),
  text = some(sample(c("a", "", "two words", "\u00e9\u4e2d", latin, "quote \" and, comma"), n, TRUE)),
  factor = factor(some(sample(c("no", "yes", "perhaps"), n, TRUE))),
  day = some(as.Date("1970-01-01") + sample(-200000:200000, n)),
  instant = some(as.POSIXct(sample(-4e9:4e9, n), origin = "1970-01-01", tz = "Europe/Berlin")),
  check.names = FALSE)
frame$counted <- seq_len(n)
frame$counted_text <- as.character(seq_len(n))
numbers <- c(1.5, 0.1, 1e5, 123456, 1e-5, 1 / 3, 1e15, 1e-300, 100, 2^60)
frame$number_text <- as.character(rep_len(numbers, n))
frame$sorted <- sort(rnorm(n))
frame$matrix <- matrix(rnorm(2 * n), n, dimnames = list(NULL, c("u", "v")))
flat <- do.call(data.frame, c(frame, check.names = FALSE, stringsAsFactors = FALSE))

saveRDS(frame, path("gzip", ".rds")); dump(flat, "gzip")
saveRDS(frame, path("plain", ".rds"), compress = FALSE); dump(flat, "plain")
saveRDS(frame, path("version2", ".rds"), version = 2); dump(flat, "version2")
writeBin(serialize(frame, NULL, xdr = FALSE), path("native", ".rds")); dump(flat, "native")
saveRDS(iris, path("iris", ".rds")); dump(iris, "iris")
twice <- function(x) 2 * x
for (i in 1:5) twice(i)  # R compiles it.
around <- new.env()
save(twice, around, frame, file = path("workspace", ".RData")); dump(flat, "workspace")
if (requireNamespace("tibble", quietly = TRUE)) {
  table <- tibble::tibble(x = 1:3, y = c("a", NA, "b"))
  saveRDS(table, path("tibble", ".rds")); dump(table, "tibble")
}
if (requireNamespace("data.table", quietly = TRUE) && requireNamespace("bit64", quietly = TRUE)) {
  table <- data.table::data.table(x = 1:3, wide = bit64::as.integer64(c("9007199254740993", NA, "-1")))
  saveRDS(table, path("datatable", ".rds")); dump(table, "datatable")
}

weigh <- function(matrix, name) {
  matrix <- as.matrix(matrix)
  weights <- outer(seq_len(nrow(matrix)), seq_len(ncol(matrix)))
  writeLines(format(sum(matrix * weights), digits = 17), path(name, ".sum"))
}
numbers <- matrix(sample(-100:100, 600, TRUE) / 4, 30)
saveRDS(numbers, path("matrix", ".rds")); weigh(numbers, "matrix")
saveRDS(round(mtcars), path("cars", ".rds")); weigh(round(mtcars), "cars")
if (requireNamespace("Matrix", quietly = TRUE)) {
  suppressMessages(library(Matrix))
  places <- list(i = sample(40, 100, TRUE), j = sample(50, 100, TRUE))
  sparse <- sparseMatrix(i = places$i, j = places$j, x = sample(100, 100), dims = c(40, 50))
  square <- forceSymmetric(crossprod(sparse))
  all <- list(columns = sparse, rows = as(sparse, "RsparseMatrix"), triplets = as(sparse, "TsparseMatrix"),
              places = as(sparse, "nMatrix"), symmetric = square, triangle = tril(square),
              diagonal = Diagonal(7), dense = as(as(sparse, "generalMatrix"), "unpackedMatrix"))
  for (name in names(all)) {
    saveRDS(all[[name]], path(name, ".rds"))
    weigh(all[[name]], name)
  }
}
