// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

// Certificates of TLS for those who have no authority of their own: one that signs the certificates of
// masters, workers and clients, and these. Keys are of the curve P-256.
namespace heddle::cluster {

/// What a certificate says.
struct CertificateFacts {
  std::string subject;             ///< Its common name.
  std::string issuer;              ///< The common name of who signed it.
  std::vector<std::string> names;  ///< Hosts and addresses that it is for.
  int64_t from_ms = 0;             ///< By the wall clock.
  int64_t until_ms = 0;
  bool is_authority = false;
};
/// Of the first one in a PEM file. kNotFound when it cannot be read, kUsage when there is none in it.
Result<CertificateFacts> ReadCertificate(const std::string& path);

/// A certificate and its key, as PEM.
struct CertificatePair {
  std::string certificate;
  std::string key;
};
/// An authority with this name, for so many days from now on.
Result<CertificatePair> MakeAuthority(const std::string& name, int days);
/// A certificate for hosts and addresses, signed by the authority in these files, for so many days but no
/// longer than the authority's own. It serves servers and clients. kUsage for an authority that is none, has
/// expired or has another key, and for what is no name of a host.
Result<CertificatePair> MakeCertificate(const std::vector<std::string>& hosts, int days,
                                        const std::string& authority_file, const std::string& key_file);

}  // namespace heddle::cluster
