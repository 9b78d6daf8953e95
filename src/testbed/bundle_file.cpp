#include "testbed/bundle_file.h"

#include <fmt/format.h>
#include <sodium.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/described_json.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/shallow_json.h"
#include "data/input_file.h"
#include "jobs/record_schema.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"

namespace tutti {
namespace {

using nlohmann::json;

// What a file may unpack to. Comparisons shrink to a tenth or so; a file that unpacks to a thousand
// times its size was made to fill the memory of its reader.
constexpr uint64_t kMostUnpacked = uint64_t{128} << 20;
constexpr uint64_t kAlwaysUnpacked = uint64_t{16} << 20;
constexpr uint64_t kMostExpanded = 100;

uint64_t most_unpacked(uint64_t packed) {
  return std::min(kMostUnpacked, kAlwaysUnpacked + kMostExpanded * packed);
}

std::string gzip_of(std::string_view content) {
  constexpr int kGzip = 15 + 16;  // the largest window, and gzip's header: without name and date
  constexpr int kMemory = 8;
  z_stream stream{};
  TUTTI_CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemory,
                           Z_DEFAULT_STRATEGY) == Z_OK);
  TUTTI_CHECK(content.size() <= kMostUnpacked);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  TUTTI_CHECK(result == Z_STREAM_END);
  return packed;
}

std::string unpacked(const std::string& path) {
  InputFile file(path);
  std::error_code error;
  const uint64_t packed = std::filesystem::file_size(path, error);
  const uint64_t most = most_unpacked(error ? 0 : packed);
  const std::vector<uint8_t> content = file.read_up_to(most + 1);
  if (content.size() > most)
    throw DataError(
        fmt::format("{}: its {} bytes unpack to more than {}, which no bundle does; get "
                    "the file again from who made it",
                    path, packed, most));
  return {content.begin(), content.end()};
}

[[noreturn]] void refuse_manifest(const std::string& path, const std::string& what) {
  throw DataError(
      fmt::format("{}: {}: {}; get the file again from who made it, or make it by "
                  "`tutti compare --bundle`",
                  path, kManifest, what));
}

BundleManifest manifest_in(const Members& members, const std::string& path) {
  const auto found = members.find(kManifest);
  if (found == members.end()) refuse_manifest(path, "it is missing, so this is no bundle");
  const json whole = parse_shallow_json(found->second);
  if (!whole.is_object() || whole.value("kind", json()) != "bundle")
    refuse_manifest(path, "it is not that of a bundle");
  require_schema(whole, {kBundleSchema, kBundleSchema}, path,
                 "ask who made the bundle for a new one");
  try {
    return described_by<BundleManifest>(whole);
  } catch (const Mismatch& mismatch) {
    refuse_manifest(path, fmt::format("\"{}\" {}", mismatch.place, mismatch.problem));
  }
}

// What is wrong with the members, one after the other; empty when nothing is.
std::string faults_of(const BundleFile& bundle) {
  std::string faults;
  const auto add = [&](const std::string& name, const std::string& what) {
    faults += fmt::format("{}{} {}", faults.empty() ? "" : "; ", printable(name), what);
  };
  Members unnamed = bundle.members;
  for (const BundledFile& file : bundle.manifest.files) {
    const auto found = unnamed.find(file.name);
    if (found == unnamed.end()) {
      add(file.name, "is missing, or named twice");
      continue;
    }
    if (const std::string sha256 = sha256_of(found->second); sha256 != file.sha256)
      add(file.name, fmt::format("was altered: its SHA-256 is {}, the manifest has {}", sha256,
                                 printable(file.sha256.substr(0, 64))));
    unnamed.erase(found);
  }
  for (const auto& [name, content] : unnamed) add(name, "is not in the manifest");
  return faults;
}

}  // namespace

void visit(RecordVisitor& v, BundledFile& file) {
  v.field("name", file.name, "Name in the archive");
  v.field("bytes", file.bytes, "Size");
  v.field("sha256", file.sha256, "Checksum of its contents");
}

void visit(RecordVisitor& v, BundleManifest& m) {
  v.field("schema", m.schema, "Version of this description: 1");
  v.field("kind", m.kind, "`bundle`");
  v.field("name", m.name, "Name of the comparison");
  v.field("versions", m.versions, "What the program was built with");
  v.field("machine", m.machine, "Where the comparison ran");
  v.field("share_curves", m.share_curves,
          "Whether equal strategies shared a learning curve: without `--no-sharing`");
  v.field("files", m.files, "Every other member of the archive");
}

std::string sha256_of(std::string_view content) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(content.data()),
                     content.size());
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

void write_bundle_file(const std::string& path, BundleFile bundle) {
  BundleManifest& manifest = bundle.manifest;
  manifest.files.clear();
  for (const auto& [name, content] : bundle.members)
    manifest.files.push_back({name, sha256_of(content), static_cast<int64_t>(content.size())});
  bundle.members[kManifest] = json_text(json_of(manifest), 2) + "\n";
  const std::string tar = tar_of(bundle.members);
  const auto too_large = [&](uint64_t most) {
    throw DataError(
        fmt::format("{}: the bundle would unpack to {} bytes, and a reader takes {}; "
                    "compare fewer strategies or seeds in one bundle",
                    path, tar.size(), most));
  };
  if (tar.size() > kMostUnpacked) too_large(kMostUnpacked);
  const std::string packed = gzip_of(tar);
  if (tar.size() > most_unpacked(packed.size())) too_large(most_unpacked(packed.size()));
  write_file(path, packed);
}

BundleFile read_bundle_file(const std::string& path) {
  BundleFile bundle;
  bundle.members = members_of_tar(unpacked(path), path);
  bundle.manifest = manifest_in(bundle.members, path);
  bundle.members.erase(kManifest);
  if (const std::string faults = faults_of(bundle); !faults.empty())
    throw DataError(fmt::format("{}: {}; get the file again from who made it", path, faults));
  return bundle;
}

}  // namespace tutti
