// The file of a bundle: a tar archive, compressed by gzip, with a manifest that names every member
// with its size and its SHA-256. The same contents give the same bytes.
//
// A bundle comes from somebody else. Reading unpacks nothing onto the disk, takes memory as content
// arrives and within limits that depend on the size of the file, and believes no member that is not
// what the manifest says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/described.h"
#include "jobs/versions.h"
#include "testbed/tar.h"

namespace tutti {

inline constexpr int64_t kBundleSchema = 1;
inline constexpr const char* kManifest = "manifest.json";

struct BundledFile {
  std::string name, sha256;
  int64_t bytes = 0;
};
void visit(RecordVisitor& visitor, BundledFile& file);

struct BundleManifest {
  int64_t schema = kBundleSchema;
  std::string kind = "bundle";
  std::string name;  // of the comparison
  std::optional<Versions> versions;
  std::optional<Machine> machine;
  bool share_curves = true;
  std::vector<BundledFile> files;  // all members but the manifest
};
void visit(RecordVisitor& visitor, BundleManifest& manifest);

struct BundleFile {
  BundleManifest manifest;
  Members members;  // without the manifest
};

std::string sha256_of(std::string_view content);

// Lists the members in the manifest and writes both. Throws DataError when the file cannot be
// written, or would be too large to be read again.
void write_bundle_file(const std::string& path, BundleFile bundle);

// Throws DataError that names the file, the member at fault and what to do.
BundleFile read_bundle_file(const std::string& path);

}  // namespace tutti
