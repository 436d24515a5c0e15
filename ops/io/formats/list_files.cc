// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/list_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ops/io/formats/lines.h"
#include "ops/io/formats/options.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kNoName = "null";
constexpr std::string_view kMetadata = ".mtd";

// The number that the file of an element begins with; nullopt of other files.
std::optional<size_t> IndexOfElement(std::string_view file) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), index);
  if (error != std::errc() || end == file.data() + file.size() || *end != '_') return std::nullopt;
  return index;
}

}  // namespace

std::string FileOfElement(size_t index, const std::string& name) {
  return fmt::format("{}_{}", index, name.empty() ? kNoName : name);
}

std::string NameOfElement(std::string_view file) {
  const std::string_view name = file.substr(file.find('_') + 1);
  return name == kNoName ? std::string() : std::string(name);
}

Result<std::vector<ListedElement>> ListElements(const std::string& path, Files& files) {
  ReadOptions described;
  described.path = path;
  HEDDLE_RETURN_IF_ERROR(ReadMetadata(files, &described));
  if (described.data_type_said && described.data_type != DataType::kList)
    return InvalidArgument("read: data_type=list contradicts '{}.mtd', which says {}", path,
                           Name(described.data_type));
  std::map<size_t, std::string> found;
  if (files.IsDirectory(path)) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(path));
    for (const std::string& name : names) {
      const std::optional<size_t> index = IndexOfElement(name);
      if (!index) continue;
      // Of a list without elements there are metadata only.
      const std::string element =
          name.ends_with(kMetadata) ? name.substr(0, name.size() - kMetadata.size()) : name;
      if (element.find('\n') != std::string::npos || found.emplace(*index, element).first->second != element)
        return DataLoss("cannot read '{}': it has two elements {}", path, *index + 1)
            .WithNote("remove the folder before a list is written into it");
    }
  } else if (!described.data_type_said) {
    return NotFound("cannot read '{}': no such folder", path);
  }
  const auto count = described.rows == kUnknown ? found.size() : static_cast<size_t>(described.rows);
  std::vector<ListedElement> elements;
  for (size_t i = 0; i < count; ++i) {
    const auto at = found.find(i);
    if (at == found.end())
      return DataLoss("cannot read '{}': element {} of the list is missing", path, i + 1);
    ReadOptions element;
    element.path = path + "/" + at->second;
    HEDDLE_RETURN_IF_ERROR(ReadMetadata(files, &element));
    elements.push_back({element.data_type, element.value_type, at->second});
  }
  return elements;
}

std::string ToText(const std::vector<ListedElement>& elements) {
  std::string text;
  for (const ListedElement& element : elements)
    text += fmt::format("{} {} {}\n", Name(element.data_type), Name(element.value_type), element.file);
  return text;
}

std::vector<ListedElement> ParseListed(std::string_view text) {
  std::vector<ListedElement> elements;
  while (!text.empty()) {
    std::string_view line = TakeLine(&text);
    const auto word = [&] {
      const size_t end = std::min(line.find(' '), line.size());
      const std::string_view taken = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
      return taken;
    };
    ListedElement element;
    element.data_type = ParseDataType(word()).value_or(DataType::kMatrix);
    element.value_type = ParseValueType(word()).value_or(ValueType::kDouble);
    element.file = line;
    elements.push_back(std::move(element));
  }
  return elements;
}

Status FinishList(std::string_view listed, const std::string& path, Files& files) {
  std::set<std::string> kept;
  const std::vector<ListedElement> elements = ParseListed(listed);
  for (const ListedElement& element : elements) {
    kept.insert(element.file);
    kept.insert(element.file + std::string(kMetadata));
  }
  if (files.IsDirectory(path)) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(path));
    for (const std::string& name : names)
      if (IndexOfElement(name) && !kept.contains(name) && !files.IsDirectory(path + "/" + name))
        HEDDLE_RETURN_IF_ERROR(files.Remove(path + "/" + name));
  }
  nlohmann::ordered_json json;
  json["data_type"] = "list";
  json["value_type"] = "unknown";
  json["rows"] = elements.size();
  json["cols"] = 1;
  json["format"] = "text";
  return files.Replace(path + std::string(kMetadata), json.dump(4) + "\n");
}

}  // namespace heddle::ops
