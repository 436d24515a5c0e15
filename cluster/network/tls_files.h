// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/status.h"

namespace heddle::cluster {

/// Files of a server's or client's TLS; empty for plain text.
struct TlsFiles {
  std::string certificate;  ///< Of this side (PEM).
  std::string key;
  std::string authority;  ///< Certificates that the other side's must be signed by.
};

/// What stands in them.
struct TlsTexts {
  std::string certificate;
  std::string key;
  std::string authority;

  friend bool operator==(const TlsTexts&, const TlsTexts&) = default;
};

/// Reads the files and checks them: the library that uses them says nothing of what is wrong. kNotFound for a
/// file that cannot be read, kUsage for a certificate without a key, for what is no PEM and for a key of
/// another certificate.
Result<TlsTexts> ReadTlsFiles(const TlsFiles& files);

}  // namespace heddle::cluster
