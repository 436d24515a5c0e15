// SPDX-License-Identifier: Apache-2.0
#include "ops/device/print/printer.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/status.h"

namespace heddle::ops::printed {
namespace {

thread_local Printer* current = nullptr;

}  // namespace

Printer::Printer(std::string prefix, std::string indent, bool eights)
    : prefix_(std::move(prefix)),
      indent_(std::move(indent)),
      eights_(eights),
      outer_(std::exchange(current, this)) {}

Printer::~Printer() { current = outer_; }

Printer& Printer::Current() {
  HEDDLE_CHECK(current != nullptr, "values are printed while there is a printer");
  return *current;
}

std::string Printer::Widened(std::string_view name) const {
  if (!eights_) return std::string(name);
  return name == "int" ? "long8" : std::string(name) + "8";
}

std::string Printer::Define(std::string_view type, const std::string& expression) {
  const auto [place, is_new] = defined_.try_emplace({std::string(type), expression});
  if (is_new) {
    place->second = NewName();
    text_ += fmt::format("{}const {} {} = {};\n", indent_, Widened(type), place->second, expression);
  }
  return place->second;
}

void Printer::Line(std::string_view line) { text_ += fmt::format("{}{}\n", indent_, line); }

std::string Printer::NewName() { return fmt::format("{}{}", prefix_, count_++); }

std::string SumOfLanes(std::string_view lane) {
  const auto at = [&](int number) { return fmt::format(fmt::runtime(lane), number); };
  return fmt::format("(({} + {}) + ({} + {})) + (({} + {}) + ({} + {}))", at(0), at(4), at(2), at(6), at(1),
                     at(5), at(3), at(7));
}

std::string LiteralOf(double x) {
  if (!std::isfinite(x)) return fmt::format("as_double({:#x}UL)", std::bit_cast<uint64_t>(x));
  return std::signbit(x) ? fmt::format("({:a})", x) : fmt::format("{:a}", x);
}

std::string LiteralOf(float x) {
  if (!std::isfinite(x)) return fmt::format("as_float({:#x}U)", std::bit_cast<uint32_t>(x));
  return std::signbit(x) ? fmt::format("({:a}F)", x) : fmt::format("{:a}F", x);
}

}  // namespace heddle::ops::printed
