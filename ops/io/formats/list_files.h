// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/values/data_type.h"
#include "ops/io/files/files.h"

// Lists in files (language reference 4.2): a folder with a file or folder "0_name", "1_name" ("1_null" where
// the list has no names) for each element, each with its .mtd, and the .mtd of the folder.
namespace heddle::ops {

struct ListedElement {
  DataType data_type = DataType::kMatrix;
  ValueType value_type = ValueType::kDouble;  ///< Of a scalar.
  std::string file;                           ///< Its name in the folder.
};

/// The elements of the list at `path`, in order. kDataLoss where one is missing or two have one number.
Result<std::vector<ListedElement>> ListElements(const std::string& path, Files& files);

/// A line for each element; parses back.
std::string ToText(const std::vector<ListedElement>& elements);
std::vector<ListedElement> ParseListed(std::string_view text);

/// The name of the file of element `index`; `name` is empty where the list has none.
std::string FileOfElement(size_t index, const std::string& name);
/// The name in the list of an element in that file.
std::string NameOfElement(std::string_view file);

/// Ends the writing of a list, whose elements are there: removes files of elements that an older list had and
/// writes the metadata. `listed` as ToText gives it.
Status FinishList(std::string_view listed, const std::string& path, Files& files);

}  // namespace heddle::ops
