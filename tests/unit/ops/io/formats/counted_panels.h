// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/values/row_panels.h"
#include "core/values/value.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {

// Rows that are read a few at a time, and not all of them more than twice.
class CountedPanels : public RowPanels {
 public:
  explicit CountedPanels(Value whole) : whole_(std::move(whole)) {}
  Shape shape() const override { return whole_.shape(); }
  bool IsFrame() const override { return whole_.IsFrame(); }
  int64_t bytes() const override { return 0; }
  Result<Value> Rows(int64_t begin, int64_t end) const override {
    read_ += end - begin;
    most_read_ = std::max(most_read_, end - begin);
    return SliceRows(whole_, begin, end);
  }
  int64_t read() const { return read_; }
  int64_t most_read() const { return most_read_; }

 private:
  const Value whole_;
  mutable int64_t read_ = 0, most_read_ = 0;
};

}  // namespace heddle::ops
