// SPDX-License-Identifier: Apache-2.0
// A module in the place of libheddle_hdf5.so (array_process_test.cc): its arrays are numbers that count up,
// and it does at the wish of a test whatever libraries do on damaged files. The dataset says what.
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <sstream>
#include <vector>

#include "ops/io/formats/libraries/format_module.h"

namespace heddle::ops {
namespace {

// Rows of two cells, each its own number. The last row is not to be had.
class Numbers : public StoredArray {
 public:
  Numbers(int64_t rows, int64_t bytes_of_read) : sizes_{rows, 2}, bytes_of_read_(bytes_of_read) {}
  const std::vector<int64_t>& sizes() const override { return sizes_; }
  int64_t bytes_of_read() const override { return bytes_of_read_; }
  const std::string& column_major_writer() const override { return writer_; }
  Status Read(int64_t begin, int64_t end, double* out) override {
    if (end == sizes_[0]) return DataLoss("the last row is damaged").WithNote("so it is");
    std::vector<char> work(static_cast<size_t>(bytes_of_read_));
    std::memset(work.data(), 1, work.size());
    for (int64_t k = 2 * begin; k < 2 * end; ++k) *out++ = static_cast<double>(k);
    return OkStatus();
  }
  Status ReadStored(int64_t, int64_t, StoredCell*) override { return Internal("it is dense"); }

 private:
  const std::vector<int64_t> sizes_;
  const int64_t bytes_of_read_;
  const std::string writer_ = "somebody";
};

// The signal comes when cells are read.
class EndsAtRead : public Numbers {
 public:
  explicit EndsAtRead(int number) : Numbers(1000, 0), number_(number) {}
  Status Read(int64_t, int64_t, double*) override {
    raise(number_);
    return OkStatus();
  }

 private:
  const int number_;
};

// Cells of two columns: how often each byte is in the file.
class ByteCounts : public Numbers {
 public:
  explicit ByteCounts(const ModuleInput& input) : Numbers(256, 0), input_(input) {}
  Status Read(int64_t begin, int64_t end, double* out) override {
    std::vector<double> counts(256);
    std::string bytes(static_cast<size_t>(input_.size), '\0');
    HEDDLE_RETURN_IF_ERROR(input_.read(0, input_.size, bytes.data()));
    for (const char byte : bytes) ++counts[static_cast<unsigned char>(byte)];
    for (int64_t i = begin; i < end; ++i, out += 2) {
      out[0] = static_cast<double>(i);
      out[1] = counts[static_cast<size_t>(i)];
    }
    return OkStatus();
  }

 private:
  const ModuleInput input_;
};

Result<std::unique_ptr<StoredArray>> Open(const ModuleInput& input, const ArrayChoice& choice) {
  std::istringstream words(choice.dataset);
  std::string word;
  int64_t number = 0, second = 0;
  words >> word >> number >> second;
  const auto made = [](auto array) -> std::unique_ptr<StoredArray> { return array; };
  if (word == "numbers") return made(std::make_unique<Numbers>(number, second));
  if (word == "signal") {
    raise(static_cast<int>(number));
    return Internal("it went on");
  }
  if (word == "signal_at_read") return made(std::make_unique<EndsAtRead>(static_cast<int>(number)));
  if (word == "exit") _exit(static_cast<int>(number));
  if (word == "bytes") return made(std::make_unique<ByteCounts>(input));
  if (word == "beyond") {  // Bytes that the file does not have.
    std::string bytes(100, '\0');
    HEDDLE_RETURN_IF_ERROR(input.read(input.size - 50, 100, bytes.data()));
    return Internal("they were there");
  }
  if (word == "at_once") {
    std::vector<char> bytes(static_cast<size_t>(number));
    std::memset(bytes.data(), 1, bytes.size());
    return made(std::make_unique<Numbers>(bytes.back(), 0));
  }
  if (word == "in_pieces") {
    std::vector<std::string> pieces;
    for (int64_t i = 0; i < number; ++i) pieces.emplace_back(size_t{1} << 20, 'x');
    return made(std::make_unique<Numbers>(static_cast<int64_t>(pieces.size()), 0));
  }
  return DataLoss("nothing is there");
}

constexpr Hdf5Module kModule = {.open = &Open, .make_image = nullptr};

}  // namespace
}  // namespace heddle::ops

extern "C" __attribute__((visibility("default"))) const void* HeddleOpenHdf5(int32_t abi) {
  return abi == heddle::ops::kFormatModuleAbi ? &heddle::ops::kModule : nullptr;
}
