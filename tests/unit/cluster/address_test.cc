// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/address.h"

#include <gtest/gtest.h>

namespace heddle::cluster {
namespace {

TEST(AddressTest, LocalIsWhatTheLoopbackIsAndNoNameThatLooksLikeIt) {
  for (const char* address : {"unix:/run/heddle.sock", "unix-abstract:heddle", "localhost:80", "127.0.0.1:80",
                              "127.255.3.4:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "[0:0:0:0:0:0:0:1]:80"})
    EXPECT_TRUE(IsLocalAddress(address)) << address;
  for (const char* address :
       {"127.0.0.1.example:80", "127.example:80", "127.:80", "127.1:80", "127.0.0.1 :80", "0127.0.0.1:80",
        "127.0.0.256:80", "localhost.example:80", "0.0.0.0:80", "[::]:80", "[::2]:80", "[::ffff:10.0.0.1]:80",
        "10.0.0.127:80", "dns:127.0.0.1:80", "dns:///127.0.0.1:80", ":80", ""})
    EXPECT_FALSE(IsLocalAddress(address)) << address;
}

TEST(AddressTest, HostsAndSockets) {
  EXPECT_EQ(HostOf("cluster.example:80"), "cluster.example");
  EXPECT_EQ(HostOf("[::1]:80"), "::1");
  EXPECT_EQ(SocketPath("unix:/run/a"), "/run/a");
  EXPECT_EQ(SocketPath("unix-abstract:a"), "");
  EXPECT_EQ((*Resolve("127.0.0.1:80"))[0].family(), AF_INET);
  EXPECT_EQ((*Resolve("[::1]:80"))[0].family(), AF_INET6);
  const Status unknown = Resolve("no-such-host.invalid:80").status();
  EXPECT_EQ(unknown.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(unknown.message().starts_with("'no-such-host.invalid' is not known: ")) << unknown.message();
  const std::string long_address = "unix:/" + std::string(200, 'a');
  EXPECT_EQ(Resolve(long_address).status().code(), StatusCode::kUsage);
  EXPECT_EQ(Resolve(long_address).status().message(),
            long_address + " is too long for a socket: 107 characters are the most");
}

}  // namespace
}  // namespace heddle::cluster
