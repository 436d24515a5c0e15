# SPDX-License-Identifier: Apache-2.0
# As csv_interop.py, with R: Rscript csv_interop.R IN.csv DUMP PREFIX
words <- commandArgs(trailingOnly = TRUE)
frame <- read.csv(words[1], colClasses = "character", na.strings = character(0), check.names = FALSE,
                  encoding = "UTF-8")
hexadecimal <- function(text) paste(as.character(charToRaw(enc2utf8(text))), collapse = "")
lines <- character(0)
for (j in seq_len(ncol(frame))) {
  cells <- c(names(frame)[j], frame[[j]])
  lines <- c(lines, paste(seq_along(cells) - 1, j - 1, vapply(cells, hexadecimal, "")))
}
writeLines(lines, words[2])
frame$i <- as.integer(frame$i)
frame$d <- as.numeric(frame$d)
write.csv(frame, paste0(words[3], "0.csv"), row.names = FALSE)
write.table(frame, paste0(words[3], "1.csv"), row.names = FALSE, sep = ",", qmethod = "double")
