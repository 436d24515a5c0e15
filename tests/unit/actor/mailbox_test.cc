// SPDX-License-Identifier: Apache-2.0
#include "actor/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace heddle::actor {
namespace {

TEST(MailboxTest, KeepsTheOrderOfEachSender) {
  Mailbox mailbox;
  constexpr uint32_t kSenders = 3;
  constexpr uint32_t kMessages = 3000;
  std::vector<std::thread> senders;
  for (uint32_t sender = 0; sender < kSenders; ++sender) {
    senders.emplace_back([&, sender] {
      for (uint32_t i = 0; i < kMessages; ++i) {
        Message message;
        message.run = sender;
        message.sequence = i;
        mailbox.Post(message);
      }
    });
  }
  std::vector<uint32_t> next(kSenders, 0);
  uint32_t received = 0;
  std::vector<Message> messages;
  while (received < kSenders * kMessages) {
    ASSERT_TRUE(mailbox.Wait(received % 2 == 0 ? 0 : 1000, 20'000'000'000)) << "a message was lost";
    messages.clear();
    ASSERT_TRUE(mailbox.Take(&messages));
    for (const Message& message : messages) {
      EXPECT_EQ(message.sequence, next[message.run]);
      next[message.run] = message.sequence + 1;
      ++received;
    }
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_FALSE(mailbox.Take(&messages));
}

TEST(MailboxTest, WaitEndsWithoutAMessage) {
  Mailbox mailbox;
  EXPECT_FALSE(mailbox.Wait(0, 0));
  EXPECT_FALSE(mailbox.Wait(1000, 100'000));
  mailbox.Post(Message());
  EXPECT_TRUE(mailbox.Wait(0, 0));
}

}  // namespace
}  // namespace heddle::actor
