// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

// HTTP as it goes over the wire, for tests.
namespace heddle::testing_support {

/// The whole answer of who listens at a port of 127.0.0.1 to a request; "" without one.
inline std::string AskHttp(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
    char block[4096];
    for (ssize_t got = 0; (got = read(fd, block, sizeof(block))) > 0;)
      answer.append(block, static_cast<size_t>(got));
  }
  close(fd);
  return answer;
}
/// `headers`: lines with their ends.
inline std::string GetHttp(int port, const std::string& path, const std::string& headers = "") {
  return AskHttp(port,
                 "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n");
}

}  // namespace heddle::testing_support
