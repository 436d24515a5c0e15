// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/token_frames.h"

#include <map>
#include <memory>
#include <utility>

#include "core/values/frame.h"
#include "ops/transform/key_table.h"

namespace heddle::ops {
namespace {

enum TokenColumn { kDictionary, kRank, kIndex, kCount, kText, kTokenColumns };
constexpr int64_t Token::*kNumbers[] = {&Token::dictionary, &Token::rank, &Token::index, &Token::count};

}  // namespace

Result<Value> FrameOfTokens(std::span<const Token> tokens) {
  Schema schema;
  std::vector<Column> columns;
  for (const auto number : kNumbers) {
    std::vector<int64_t> cells;
    cells.reserve(tokens.size());
    for (const Token& token : tokens) cells.push_back(token.*number);
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfIntegers(cells));
    columns.push_back(std::move(column));
    schema.types.push_back(ColumnType::kInteger64);
  }
  std::vector<std::string_view> texts;
  texts.reserve(tokens.size());
  for (const Token& token : tokens) texts.push_back(token.text);
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfTexts(texts));
  columns.push_back(std::move(column));
  schema.types.push_back(ColumnType::kString);
  return Value(Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns)));
}

std::vector<Token> TokensOf(const Frame& frame) {
  std::vector<Token> tokens(static_cast<size_t>(frame.rows()));
  for (int column = kDictionary; column < kText; ++column) {
    const Column cells = frame.column(column);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i].*kNumbers[column] = cells.integers()[i];
  }
  const Column texts = frame.column(kText);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i].text = texts.TextAt(static_cast<int64_t>(i));
  return tokens;
}

int32_t OwnerOf(const Token& token, int32_t ranks) {
  return static_cast<int32_t>((HashOf(token.text) >> 32) % static_cast<uint64_t>(ranks));
}

std::vector<Token> MergedTokens(std::span<const Value* const> of_ranks) {
  std::map<int64_t, KeyTable<std::string_view>> tables;  // By dictionary; a row is a place among `merged`.
  std::vector<Token> merged;
  for (const Value* const of_rank : of_ranks)
    for (const Token& token : TokensOf(of_rank->frame())) {
      KeyTable<std::string_view>& table = tables[token.dictionary];
      const int32_t number =
          table.NumberOf(token.text, HashOf(token.text), static_cast<int64_t>(merged.size()));
      const auto place = static_cast<size_t>(table.rows()[static_cast<size_t>(number)]);
      if (place == merged.size())
        merged.push_back(token);
      else
        merged[place].count += token.count;
    }
  return merged;
}

}  // namespace heddle::ops
