// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/array_messages.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/status_numbers.h"
#include "core/values/sizes.h"

namespace heddle::ops {
namespace {

constexpr uint64_t kMostTextBytes = 1 << 20;
constexpr size_t kMostTexts = 1000;  // Of notes or choices of a status.

bool SendTexts(int socket, const std::vector<std::string>& texts) {
  const size_t count = std::min(texts.size(), kMostTexts);
  bool good = SendValue(socket, uint64_t{count});
  for (size_t i = 0; i < count; ++i) good = good && SendText(socket, texts[i]);
  return good;
}

bool ReceiveTexts(int socket, std::vector<std::string>* texts) {
  uint64_t count = 0;
  if (!ReceiveValue(socket, &count) || count > kMostTexts) return false;
  texts->resize(count);
  return std::all_of(texts->begin(), texts->end(),
                     [&](std::string& text) { return ReceiveText(socket, &text); });
}

}  // namespace

bool SendText(int socket, std::string_view text) {
  return SendValue(socket, uint64_t{text.size()}) && SendAll(socket, text);
}

bool ReceiveText(int socket, std::string* text) {
  uint64_t size = 0;
  if (!ReceiveValue(socket, &size) || size > kMostTextBytes) return false;
  text->resize(size);
  return ReceiveAll(socket, text->data(), text->size());
}

bool SendStatus(int socket, const Status& status) {
  return SendValue(socket, static_cast<uint64_t>(status.code())) &&
         (status.ok() || (SendText(socket, status.message()) && SendTexts(socket, status.notes()) &&
                          SendTexts(socket, status.choices())));
}

bool ReceiveStatus(int socket, Status* status) {
  uint64_t number = 0;
  if (!ReceiveValue(socket, &number)) return false;
  const std::optional<StatusCode> code = FindStatusCode(static_cast<int64_t>(number));
  if (!code) return false;
  *status = OkStatus();
  if (*code == StatusCode::kOk) return true;
  std::string message;
  std::vector<std::string> notes, choices;
  if (!ReceiveText(socket, &message) || !ReceiveTexts(socket, &notes) || !ReceiveTexts(socket, &choices))
    return false;
  *status = Status(*code, message);
  for (std::string& note : notes) *status = status->WithNote(std::move(note));
  if (!choices.empty()) *status = status->WithChoices(std::move(choices));
  return true;
}

int64_t WidthOf(const std::vector<int64_t>& sizes) {
  int64_t width = 1;
  for (size_t i = 1; i < sizes.size(); ++i) width = SaturatingProduct(width, sizes[i]);
  return width;
}

}  // namespace heddle::ops
