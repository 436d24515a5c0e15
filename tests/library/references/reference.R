# SPDX-License-Identifier: Apache-2.0
# What the references written in R have in common; see reference.py.

data_of = function(name) as.matrix(unname(read.csv(file.path("..", "data", paste0(name, ".csv")))))

# Writes the results (numbers, vectors as columns, matrices), numbered from 1, as one line for each cell.
save_results = function(name, ...) {
  lines = "result,row,column,value"
  results = list(...)
  for (index in seq_along(results)) {
    cells = as.matrix(results[[index]])
    for (i in seq_len(nrow(cells))) for (j in seq_len(ncol(cells))) {
      text = format(unname(cells[i, j]), digits = 17)
      lines = c(lines, paste(index, i, j, sub("NA", "NaN", text, fixed = TRUE), sep = ","))
    }
  }
  writeLines(lines, paste0(name, ".csv"))
}
