// SPDX-License-Identifier: Apache-2.0
#include "actor/register_state.h"

#include <gtest/gtest.h>

namespace heddle::actor {
namespace {

Register Description(int32_t slots) {
  Register description;
  description.slots = slots;
  return description;
}

TEST(RegisterStateTest, ASlotIsFreeAgainWhenItsLastReaderIsThrough) {
  const Register description = Description(2);
  RegisterState state(description, {{TaskId::Make(0, 0, 1), 0}, {TaskId::Make(0, 0, 2), 0}}, false);
  const uint8_t first = state.Publish(Value(1.0));
  const uint8_t second = state.Publish(Value(2.0));
  EXPECT_NE(first, second);
  EXPECT_FALSE(state.HasFreeSlot());
  EXPECT_EQ(state.outstanding(), 4);
  EXPECT_TRUE(state.CheckInvariants().ok());
  EXPECT_FALSE(state.Release(first));
  EXPECT_FALSE(state.HasFreeSlot());
  EXPECT_EQ(state.value(first).scalar(), Scalar(1.0));
  EXPECT_TRUE(state.Release(first));
  EXPECT_TRUE(state.HasFreeSlot());
  EXPECT_TRUE(state.CheckInvariants().ok());
  EXPECT_EQ(state.Publish(Value(3.0)), first);
}

TEST(RegisterStateTest, WithoutReadersSlotsNeverRunOut) {
  const Register description = Description(1);
  RegisterState state(description, {}, false);
  for (int i = 0; i < 5; ++i) state.Publish(Value(1.0));
  EXPECT_TRUE(state.HasFreeSlot());
  EXPECT_EQ(state.outstanding(), 0);
  EXPECT_EQ(state.published(), 5u);
}

TEST(RegisterStateTest, DropsTheValueWithTheLastReference) {
  const Register description = Description(1);
  RegisterState state(description, {{TaskId::Make(0, 0, 1), 0}}, false);
  const Matrix matrix = *Matrix::Dense(2, 2);
  const uint8_t slot = state.Publish(Value(matrix));
  EXPECT_TRUE(state.value(slot).IsMatrix());
  state.Release(slot);
  EXPECT_FALSE(state.value(slot).IsMatrix());
}

using RegisterStateDeathTest = testing::Test;
TEST(RegisterStateDeathTest, AnAckWithoutReadyIsABug) {
  const Register description = Description(1);
  RegisterState state(description, {{TaskId::Make(0, 0, 1), 0}}, false);
  EXPECT_DEATH(state.Release(0), "every ACK answers a READY");
}

}  // namespace
}  // namespace heddle::actor
