// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/values/device_cells.h"
#include "first_device.h"
#include "ops/device/run/run_on_device.h"
#include "tests/support/all_plans.h"
#include "tests/unit/ops/fused/body_builder.h"

namespace heddle::ops::testing {

/// Runs what BodyBuilder runs once more on the device, and compares: by work-groups of many work-items, as on
/// a GPU, or of one, as on a processor: bodies in turns, or with all plans each by both.
class DeviceComparison {
 public:
  explicit DeviceComparison(ComputeDevice& device)
      : of_many_(device, 64), of_one_(device, 1), queue_(*device.MakeQueue()) {}
  DeviceComparison(const DeviceComparison&) = delete;
  DeviceComparison& operator=(const DeviceComparison&) = delete;

  int ran() const { return ran_; }
  /// Why calls were left to the host, and how many.
  const std::map<std::string, int>& left_to_host() const { return left_to_host_; }

 private:
  void RunOnDevice(const KernelCall& call, std::span<const Value> expected) {
    const bool turn = turns_.try_emplace(TextOf(call), turns_.size() % 2 == 0).first->second;
    if (turn || in_both_forms_) RunBy(of_many_, call, expected);
    if (!turn || in_both_forms_) RunBy(of_one_, call, expected);
  }

  void RunBy(DeviceOperators& operators, const KernelCall& call, std::span<const Value> expected) {
    std::vector<Value> actual(expected.size());
    const Status status = operators.Run(call, *queue_, actual);
    if (status.code() == StatusCode::kUnimplemented) {
      ++left_to_host_[status.message()];
      return;
    }
    ASSERT_TRUE(status.ok()) << status.ToString() << "\n" << TextOf(call);
    ++ran_;
    for (size_t i = 0; i < expected.size() && call.phase == Phase::kWhole; ++i) {
      // Others may be there as well, in another format: an act brings them to the host.
      if (StaysOnDevice(call.node, call.input_infos, i)) {
        EXPECT_TRUE(actual[i].IsMatrix() && actual[i].matrix().IsOnDevice()) << "root " << i << "\n"
                                                                             << TextOf(call);
      }
    }
    for (size_t i = 0; i < expected.size(); ++i)
      if (call.phase == Phase::kWhole || IsRows(call, i)) {
        ExpectSameResult(call, i, expected[i], actual[i]);
      } else {  // Places of a list that pad it may hold anything.
        ExpectSameFinished(call, i, expected[i], actual[i]);
      }
  }

  static std::string TextOf(const KernelCall& call) {
    return call.node.fused != nullptr ? call.node.fused->ToText() : call.node.phased->ToText();
  }

  static bool IsRows(const KernelCall& call, size_t i) {
    const Operator& op = *FindOperator(call.node.op);
    const RowRule rule = op.row_rule(call.node, call.input_infos);
    return rule == RowRule::kRowWise || (rule == RowRule::kMixed && !op.reduces(call.node, i));
  }

  void ExpectSameFinished(const KernelCall& call, size_t i, const Value& expected, const Value& actual) {
    const Operator& op = *FindOperator(call.node.op);
    std::vector<Value> finished[2];
    for (const bool is_actual : {false, true}) {
      std::vector<const Value*> lists;
      size_t reductions = 0;
      for (size_t r = 0; r < ResultsOf(call.node).size(); ++r) {
        if (IsRows(call, r)) continue;
        ++reductions;
        lists.push_back(r == i ? (is_actual ? &actual : &expected) : nullptr);
      }
      const bool together = op.row_rule(call.node, call.input_infos) == RowRule::kReduce;
      if (together) lists = {is_actual ? &actual : &expected};
      KernelCall finish = call;
      finish.phase = Phase::kFinish;
      finish.inputs = lists;
      finished[is_actual].resize(together ? ResultsOf(call.node).size() : 1);
      const Status status = RunOperator(op, finish, finished[is_actual]);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    for (size_t r = 0; r < finished[0].size(); ++r) ExpectSameResult(call, i, finished[0][r], finished[1][r]);
  }

  void ExpectSameResult(const KernelCall& call, size_t i, const Value& expected, const Value& actual) {
    if (expected.IsScalar()) {
      EXPECT_EQ(expected.scalar().ToLiteral(), actual.scalar().ToLiteral())
          << "root " << i << ", " << Name(call.phase) << "\n"
          << TextOf(call);
      return;
    }
    const Result<Matrix> cells = ToHost(actual.matrix());
    ASSERT_TRUE(cells.ok()) << cells.status().ToString();
    EXPECT_EQ(expected.matrix().element_type(), cells->element_type());
    if (expected.matrix().IsSparse() && cells->IsSparse()) {
      EXPECT_EQ(expected.matrix().stored(), cells->stored());
    }
    if (Matrix::SameCells(expected.matrix(), *cells)) return;
    ADD_FAILURE() << "root " << i << " differs on the device, " << Name(call.phase) << "\n"
                  << TextOf(call) << FirstDifference(expected.matrix(), *cells);
  }

  static std::string FirstDifference(const Matrix& expected, const Matrix& actual) {
    if (expected.shape() != actual.shape()) return fmt::format("{} and {}", expected.shape(), actual.shape());
    for (int64_t i = 0; i < expected.rows(); ++i)
      for (int64_t j = 0; j < expected.columns(); ++j) {
        const double a = expected.At(i, j), b = actual.At(i, j);
        if (!(std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b)))
          return fmt::format("cell ({}, {}) is {:a} there, not {:a}", i, j, b, a);
      }
    return "";
  }

  const bool in_both_forms_ = testing_support::RunsAllPlans();
  DeviceOperators of_many_, of_one_;
  std::map<std::string, bool> turns_;  // By body.
  const std::unique_ptr<DeviceQueue> queue_;
  int ran_ = 0;
  std::map<std::string, int> left_to_host_;
  const BodyBuilder::AlsoRunScope scope_{[this](const KernelCall& call, std::span<const Value> expected) {
    RunOnDevice(call, expected);
  }};
};

/// Skipped where there is no device.
class TilesOnDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ComputeDevice* const device = FirstDevice();
    if (device == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    comparison_.emplace(*device);
  }

  int ran() const { return comparison_->ran(); }
  const std::map<std::string, int>& left_to_host() const { return comparison_->left_to_host(); }

 private:
  std::optional<DeviceComparison> comparison_;
};

}  // namespace heddle::ops::testing
