// SPDX-License-Identifier: Apache-2.0
#include "cluster/store/packed_text.h"

#include "ops/io/files/zstd.h"

namespace heddle::cluster {
namespace {

class TextInMemory : public ops::InputFile {
 public:
  explicit TextInMemory(std::string_view text) : text_(text) {}
  int64_t size() const override { return static_cast<int64_t>(text_.size()); }
  Result<std::string_view> Read(int64_t begin, int64_t count, ops::CountedBytes*) const override {
    return text_.substr(static_cast<size_t>(begin), static_cast<size_t>(count));
  }

 private:
  const std::string_view text_;
};

}  // namespace

Result<std::string> Pack(std::string_view text) {
  std::string packed;
  HEDDLE_RETURN_IF_ERROR(ops::AppendZstdFrame(text, &packed));
  return packed;
}

Result<std::string> Unpack(const std::string& packed, const std::string& what, int64_t most_bytes) {
  HEDDLE_ASSIGN_OR_RETURN(const ops::CountedBytes bytes, ops::Unzstd(TextInMemory(packed), what, most_bytes));
  return std::string(bytes.view());
}

}  // namespace heddle::cluster
