// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/arff/arff_header.h"

#include <algorithm>
#include <utility>

#include "core/text/text_encoding.h"
#include "core/text/utf8.h"
#include "ops/io/formats/arff/arff.h"
#include "ops/io/formats/arff/arff_values.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/options.h"

namespace heddle::ops {
namespace {

constexpr size_t kMostAttributes = 1 << 20;
constexpr int64_t kMostComments = 1 << 20;  // Bytes of them before the first line that is none.

// Takes a word in any case off the front of a line, and the blanks around it. False where it is another.
bool TakeKeyword(std::string_view* line, std::string_view word) {
  const std::string_view text = Trim(*line);
  if (Lower(text.substr(0, word.size())) != word) return false;
  const std::string_view rest = text.substr(word.size());
  if (!rest.empty() && !IsBlank(rest.front())) return false;
  *line = Trim(rest);
  return true;
}

class HeaderReader {
 public:
  HeaderReader(const ReadOptions& options, const TextFile& text) : options_(options), lines_(text) {}

  Result<ArffHeader> Read() {
    std::string_view line;
    while (lines_.Next(&line)) {
      ++header_.lines;
      line_ = line;
      if (IsArffComment(line) || TakeKeyword(&line, "@relation")) continue;
      if (TakeKeyword(&line, "@data")) {
        if (!IsArffComment(line)) return Fault("nothing stands behind @data");
        if (header_.attributes.empty()) return Fault("no @attribute stands before @data");
        header_.end = lines_.offset();
        return std::move(header_);
      }
      if (!TakeKeyword(&line, "@attribute")) return Fault("it is no @relation, @attribute or @data");
      HEDDLE_RETURN_IF_ERROR(TakeAttribute(line));
    }
    HEDDLE_RETURN_IF_ERROR(lines_.status());
    return DataLoss("cannot read '{}': it is an ARFF file without a line @data", options_.path);
  }

 private:
  Status Fault(std::string_view what) const {
    return DataLoss("cannot read '{}': line {}: {}: '{}'", options_.path, header_.lines, what,
                    ShownInLine(Trim(line_), 60));
  }

  // The name and the type.
  Status TakeAttribute(std::string_view line) {
    if (header_.attributes.size() == kMostAttributes)
      return DataLoss("cannot read '{}': it has more than {} attributes", options_.path, kMostAttributes);
    ArffAttribute& attribute = header_.attributes.emplace_back();
    // A brace may follow a name without a blank.
    const bool is_quoted = line.starts_with('\'') || line.starts_with('"');
    const size_t brace = is_quoted ? std::string_view::npos : std::min(line.find('{'), line.size());
    ArffValues values(line.substr(0, brace), ArffSeparator::kBlanks);
    ArffValue value;
    if (!values.Next(&value))
      return Fault(values.fault().empty() ? "an attribute has a name and a type" : values.fault());
    attribute.name = value.text;
    const std::string_view rest = values.rest();
    line.remove_prefix(static_cast<size_t>(rest.data() - line.data()));
    line = Trim(line);
    if (line.starts_with('{')) return TakeNominal(line.substr(1), &attribute);
    const size_t end = line.find_first_of(" \t[");
    const std::string type = Lower(line.substr(0, end));
    if (type == "integer") {
      attribute.type = ArffType::kInteger;
    } else if (type == "string" || type == "date") {
      attribute.type = ArffType::kText;
    } else if (type == "relational") {
      return Fault("Heddle does not read attributes that are relations");
    } else if (type != "numeric" && type != "real") {
      return Fault("its type is none of numeric, real, integer, string, date and {...}");
    }
    return OkStatus();
  }

  // "a, b, 'c d'}"
  Status TakeNominal(std::string_view line, ArffAttribute* attribute) {
    attribute->type = ArffType::kText;
    const size_t end = FindArffBrace(line);
    if (end == std::string_view::npos) return Fault("the brace of its values is not closed in its line");
    const std::string_view list = line.substr(0, end);
    ArffValues values(list, FindArffSeparator(list));
    ArffValue value;
    if (values.Next(&value)) attribute->first_value = value.text;
    while (values.Next(&value)) {
    }
    return values.fault().empty() ? OkStatus() : Fault(values.fault());
  }

  const ReadOptions& options_;
  LineReader lines_;
  std::string_view line_;
  ArffHeader header_;
};

}  // namespace

bool IsArffComment(std::string_view line) {
  line = Trim(line);
  return line.empty() || line.front() == '%';
}

Result<bool> IsArff(const std::string&, const InputFile& file) {
  constexpr size_t kLongestKeyword = 16;
  // Few bytes tell of most files what they are.
  for (int64_t count = 1 << 8;; count *= 16) {
    const int64_t size = std::min({count, kMostComments, file.size()});
    CountedBytes buffer;
    HEDDLE_ASSIGN_OR_RETURN(std::string_view text, file.Read(0, size, &buffer));
    text.remove_prefix(ByteOrderMarkBytes(text));
    while (!text.empty()) {
      const bool is_cut = text.find('\n') == std::string_view::npos && size < file.size();
      std::string_view line = TakeLine(&text);
      if (is_cut && Trim(line).size() < kLongestKeyword) break;
      if (!IsArffComment(line)) return TakeKeyword(&line, "@relation") || TakeKeyword(&line, "@attribute");
    }
    if (size == file.size() || size == kMostComments) return false;
  }
}

Result<ArffHeader> ReadArffHeader(const ReadOptions& options, const TextFile& text) {
  return HeaderReader(options, text).Read();
}

}  // namespace heddle::ops
