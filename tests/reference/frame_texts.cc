// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

#include "ops/frame/convert.h"
#include "tests/reference/frame.h"

// What the operators on texts of frames give, by the definition: rows of optional texts and std::regex.
namespace heddle::ops::reference {
namespace {

using Cell = std::optional<std::string>;
using Grid = std::vector<std::vector<Cell>>;  // By columns.

Grid GridOf(const Frame& frame) {
  Grid grid;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    grid.emplace_back();
    for (int64_t i = 0; i < frame.rows(); ++i) {
      std::string text;
      frame.AppendText(i, j, &text);
      grid.back().push_back(frame.IsMissing(i, j) ? Cell() : Cell(text));
    }
  }
  return grid;
}

// A frame of strings under these names.
Frame FrameOf(const Grid& grid, std::vector<std::string> names) {
  Schema schema{std::vector<ColumnType>(grid.size(), ColumnType::kString), std::move(names)};
  std::vector<Column> columns;
  for (const std::vector<Cell>& cells : grid) {
    std::string texts;
    for (const Cell& cell : cells) texts += cell.value_or("");
    const auto rows = static_cast<int64_t>(cells.size());
    Column column = *Column::Make(ColumnType::kString, rows, static_cast<int64_t>(texts.size()), true);
    std::copy(texts.begin(), texts.end(), column.mutable_texts());
    column.mutable_offsets()[0] = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const Cell& cell = cells[static_cast<size_t>(i)];
      column.mutable_missing()[i] = !cell;
      column.mutable_offsets()[i + 1] = column.offsets()[i] + static_cast<int64_t>(cell.value_or("").size());
    }
    columns.push_back(std::move(column));
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

std::vector<std::string> Counted(size_t columns) {
  std::vector<std::string> names;
  for (size_t j = 1; j <= columns; ++j) names.push_back("C" + std::to_string(j));
  return names;
}

bool Matches(const std::string& text, const char* expression) {
  return std::regex_match(text, std::regex(expression));
}

// The kinds of cells in the order in which they hold each other, as one letter: B, I (32), L (64), F (32),
// D (64), C, S.
char KindOf(const std::string& text) {
  if (Matches(text, "[tTfF]|(?:[tT][rR][uU][eE])|(?:[fF][aA][lL][sS][eE])|[01](\\.0*)?")) return 'B';
  if (Matches(text, "-?[0-9]+(\\.0*)?") && std::abs(std::stold(text)) < 0x1p63L)
    return std::abs(std::stod(text)) < 0x1p31 || std::stod(text) == -0x1p31 ? 'I' : 'L';
  if (Matches(text, "-?[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)?"))
    return static_cast<double>(static_cast<float>(std::stod(text))) == std::stod(text) ? 'F' : 'D';
  return text.size() == 1 ? 'C' : 'S';
}

std::string NameOf(char kind) {
  switch (kind) {
    case 'B': return "BOOLEAN";
    case 'I': return "INT32";
    case 'L': return "INT64";
    case 'F': return "FP32";
    case 'D': return "FP64";
    case 'C': return "CHARACTER";
    default: return "STRING";
  }
}

std::string Plain(const std::string& text) {
  std::string plain;
  for (const char sign : std::regex_replace(text, std::regex("^ +| +$|\""), ""))
    plain.push_back(static_cast<char>(std::tolower(sign)));
  return plain;
}

}  // namespace

Frame DetectSchema(const Frame& frame) {
  const std::string order = "BILFDCS";
  Grid result;
  for (const std::vector<Cell>& cells : GridOf(frame)) {
    size_t widest = 0;
    bool letters = false, numbers = false, any = false, empty = false;
    for (const Cell& cell : cells) {
      empty |= cell.value_or("").empty();
      if (cell.value_or("").empty()) continue;
      const char kind = KindOf(*cell);
      any = true;
      (kind == 'C' || kind == 'S' ? letters : numbers) = true;
      widest = std::max(widest, order.find(kind));
    }
    const char type = !any || (letters && numbers) ? 'S' : order[widest];
    result.push_back({NameOf(type) + (empty && type != 'S' ? "\u00B7n" : "")});
  }
  return FrameOf(result, Counted(result.size()));
}

Frame ApplySchema(const Frame& frame, const Frame& schema) {
  Schema types = *frame.schema();
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    types.types[static_cast<size_t>(j)] = *ParseColumnType(*GridOf(schema)[static_cast<size_t>(j)][0]);
    columns.push_back(*Converted(frame.column(j), types.types[static_cast<size_t>(j)]));
  }
  return Frame(std::make_shared<const Schema>(types), columns);
}

Frame DropInvalidType(const Frame& frame, const Frame& schema) {
  Grid grid = GridOf(frame);
  for (size_t j = 0; j < grid.size(); ++j) {
    const char wanted = (*GridOf(schema)[j][0])[0];  // B, I, F, C or S.
    for (Cell& cell : grid[j]) {
      if (!cell || wanted == 'S') continue;
      const char kind = Plain(*cell).empty() ? '?' : NameOf(KindOf(Plain(*cell)))[0];
      if (kind != wanted && !(kind == 'B' && (wanted == 'I' || wanted == 'F'))) cell.reset();
    }
  }
  return FrameOf(grid, frame.schema()->names);
}

Frame DropInvalidLength(const Frame& frame, const Matrix& lengths) {
  Grid grid = GridOf(frame);
  for (size_t j = 0; j < grid.size(); ++j)
    for (Cell& cell : grid[j]) {
      const double most = lengths.At(0, static_cast<int64_t>(j));
      if (cell && most != -1 && static_cast<double>(cell->size()) > most) cell.reset();
    }
  return FrameOf(grid, frame.schema()->names);
}

// Of frames in which at most one column can take a wrong cell.
Frame ValueSwap(const Frame& frame, const Frame& schema) {
  Grid grid = GridOf(frame);
  const Grid old = grid;
  const auto kind = [](const Cell& cell) { return NameOf(KindOf(Plain(cell.value_or("0"))))[0]; };
  for (size_t j = 0; j < grid.size(); ++j) {
    for (size_t i = 0; i < grid[j].size(); ++i) {
      const char wanted = (*GridOf(schema)[j][0])[0];
      const char is = grid[j][i] ? kind(grid[j][i]) : wanted;
      const bool fits =
          is == wanted || (is == 'B' && (wanted == 'I' || wanted == 'F')) || (is == 'I' && wanted == 'F');
      for (size_t w = 0; !fits && w < grid.size(); ++w) {
        if (w == j || (*GridOf(schema)[w][0])[0] != is || kind(grid[w][i]) == is) continue;
        const Cell moved = Plain(*grid[j][i]);
        grid[j][i] = grid[w][i];
        grid[w][i] = moved;
        break;
      }
    }
  }
  return FrameOf(grid, frame.schema()->names);
}

Frame FilledFrame(const std::string& data, int64_t rows, int64_t columns) {
  std::vector<std::string> elements(1);
  for (size_t i = 0; i < data.size(); ++i) {
    if (data.compare(i, 2, "\u00b7") == 0) {
      elements.emplace_back();
      ++i;
    } else {
      elements.back().push_back(data[i]);
    }
  }
  const size_t each = elements.size() == static_cast<size_t>(rows * columns) ? elements.size()
                      : elements.size() == 1                                 ? 1
                                                                             : static_cast<size_t>(columns);
  Grid grid(static_cast<size_t>(columns));
  for (int64_t k = 0; k < rows * columns; ++k)
    grid[static_cast<size_t>(k % columns)].push_back(elements[static_cast<size_t>(k) % each]);
  return FrameOf(grid, Counted(grid.size()));
}

Frame Replicate(const Frame& frame, const Frame& row) {
  Grid grid = GridOf(frame);
  for (size_t j = 0; j < grid.size(); ++j)
    for (Cell& cell : grid[j]) cell = GridOf(row)[j][0];
  return FrameOf(grid, frame.schema()->names);
}

// Of a frame of strings.
Frame ReplaceTexts(const Frame& frame, const std::string& pattern, const std::string& replacement) {
  Grid grid = GridOf(frame);
  for (std::vector<Cell>& cells : grid)
    for (Cell& cell : cells)
      if (cell == pattern) cell = replacement;
  return FrameOf(grid, frame.schema()->names);
}

// Of a frame of strings with a row that is not empty.
Frame RemoveEmptyRows(const Frame& frame) {
  const Grid grid = GridOf(frame);
  Grid left(grid.size());
  for (int64_t i = 0; i < frame.rows(); ++i) {
    const auto row = static_cast<size_t>(i);
    const bool keep = std::any_of(grid.begin(), grid.end(),
                                  [&](const auto& cells) { return cells[row] && *cells[row] != "0"; });
    for (size_t j = 0; keep && j < grid.size(); ++j) left[j].push_back(grid[j][row]);
  }
  return FrameOf(left, frame.schema()->names);
}

Frame Compare(const Frame& a, const Frame& b, const std::string& comparison) {
  const Grid x = GridOf(a);
  const Grid y = GridOf(b);
  Schema schema{std::vector<ColumnType>(x.size(), ColumnType::kBoolean), Counted(x.size())};
  std::vector<Column> columns;
  for (size_t j = 0; j < x.size(); ++j) {
    Column column = *Column::Make(ColumnType::kBoolean, a.rows(), 0, false);
    for (size_t i = 0; i < x[j].size(); ++i) {
      const Cell& p = x[j][i];
      const Cell& q = y[j][i];
      const bool less = p < q;  // Nothing is below every text.
      const bool equal = p == q;
      column.mutable_booleans()[i] = comparison == "=="   ? equal
                                     : comparison == "!=" ? !equal
                                     : comparison == "<"  ? less
                                     : comparison == "<=" ? less || equal
                                     : comparison == ">"  ? !less && !equal
                                                          : !less;
    }
    columns.push_back(std::move(column));
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

Frame Map(const Frame& frame, const std::string& expression) {
  Grid grid = GridOf(frame);
  for (std::vector<Cell>& cells : grid)
    for (Cell& cell : cells) {
      if (!cell) continue;
      if (expression.find("length") != std::string::npos) cell = std::to_string(cell->size());
      for (char& sign : *cell) {
        if (expression.find("toLowerCase") != std::string::npos) sign = static_cast<char>(std::tolower(sign));
        if (expression.find("replace") != std::string::npos && sign == 'a') sign = 'b';
      }
    }
  return FrameOf(grid, Counted(grid.size()));
}

}  // namespace heddle::ops::reference
