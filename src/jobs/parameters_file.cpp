#include "jobs/parameters_file.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/regular_file.h"
#include "core/shallow_json.h"
#include "jobs/run_folder.h"
#include "models/layout.h"

namespace tutti {
namespace {

using nlohmann::json;

std::vector<float> exported(const Parameter& parameter, std::span<const float> flat) {
  std::vector<float> values(parameter.range.size());
  export_parameter(parameter, flat, values);
  return values;
}

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw DataError(
      fmt::format("{}: {}; it is not the parameters of this run, or it is damaged", path, problem));
}

constexpr const char* kKeys = "rows.keys";
constexpr const char* kMetadata = "__metadata__";  // of the format, and no tensor

// The header of the file: how long it is, then JSON, so that the data is aligned to 8 bytes.
std::string text_of(const json& header) {
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string content(sizeof(uint64_t), '\0');
  const uint64_t length = text.size();
  std::memcpy(content.data(), &length, sizeof(length));
  return content + text;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    require_regular_file(path);
    file_.open(path, std::ios::binary);
    std::error_code failed;
    size_ = std::filesystem::file_size(path, failed);
    if (!file_ || failed) throw DataError(fmt::format("{}: cannot be read", path));
    uint64_t length = 0;
    file_.read(reinterpret_cast<char*>(&length), sizeof(length));
    if (!file_ || length > size_ - sizeof(length))
      refuse(path, "its header is longer than the file");
    std::string text(length, '\0');
    file_.read(text.data(), static_cast<std::streamsize>(length));
    header_ = parse_shallow_json(text);
    if (!file_ || !header_.is_object()) refuse(path, "its header is not JSON");
    data_begin_ = sizeof(length) + length;
  }

  bool has(const std::string& name) const { return header_.contains(name); }
  size_t tensors() const { return header_.size() - header_.count(kMetadata); }
  uint64_t size() const { return size_; }
  std::vector<std::string> names() const {  // of the tensors
    std::vector<std::string> names;
    for (const auto& [name, entry] : header_.items())
      if (name != kMetadata) names.push_back(name);
    return names;
  }
  std::string metadata(const std::string& key) const {  // empty when missing
    const json all = header_.value(kMetadata, json());
    const json text = all.is_object() ? all.value(key, json()) : json();
    return text.is_string() ? text.get<std::string>() : std::string();
  }
  json shape_of(const std::string& name) const {
    const json entry = header_.value(name, json());
    return entry.is_object() ? entry.value("shape", json()) : json();
  }

  // Sizes are checked before memory is taken.
  template <class T>
  std::vector<T> read(const std::string& name, const char* type, const json& shape,
                      uint64_t count) {
    const json entry = header_.value(name, json());
    const uint64_t bytes = count * sizeof(T);
    if (!entry.is_object() || entry.value("dtype", json()) != type ||
        entry.value("shape", json()) != shape)
      refuse(path_, fmt::format("it has no {} tensor '{}' of the right shape", type, name));
    const json offsets = entry.value("data_offsets", json());
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned() ||
        offsets[0].get<uint64_t>() > offsets[1].get<uint64_t>() ||
        offsets[1].get<uint64_t>() - offsets[0].get<uint64_t>() != bytes ||
        offsets[1].get<uint64_t>() > size_ - data_begin_)
      refuse(path_, fmt::format("tensor '{}' lies outside of it", name));
    std::vector<T> values(count);
    file_.seekg(static_cast<std::streamoff>(data_begin_ + offsets[0].get<uint64_t>()));
    file_.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(bytes));
    if (!file_) refuse(path_, "it is truncated");
    return values;
  }

 private:
  std::string path_;
  std::ifstream file_;
  uint64_t size_ = 0, data_begin_ = 0;
  json header_;
};

class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  template <class T>
  void add(std::span<const T> values) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(values.data()),
                              values.size_bytes());
  }
  std::string text() {
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&state_, digest);
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  crypto_hash_sha256_state state_;
};

}  // namespace

namespace {

void save_tensors(const std::string& path, const json& metadata, const Architecture& architecture,
                  std::span<const float> parameters) {
  json header = json::object();
  header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const Parameter& parameter : architecture.parameters) {
    const size_t bytes = parameter.range.size() * sizeof(float);
    header[parameter.name] = {
        {"dtype", "F32"}, {"shape", parameter.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string content = text_of(header);
  for (const Parameter& parameter : architecture.parameters) {
    const std::vector<float> values = exported(parameter, parameters);
    content.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  write_file(path, content);
}

}  // namespace

void save_parameters(const std::string& path, const Architecture& architecture,
                     std::span<const float> parameters) {
  save_tensors(path, {{"format", "pt"}, {"model", architecture.kind}}, architecture, parameters);
}

namespace {

// Against bits that flip on a disk or on the way: whoever edits the file can compute it anew.
std::string attachment_sha256(const Attachment& attachment) {
  Sha256 hash;
  hash.add(std::span<const char>(attachment.about));
  for (const Parameter& tensor : attachment.tensors.parameters) {
    hash.add(std::span<const char>(tensor.name));
    hash.add(std::span<const int64_t>(tensor.shape));
    hash.add(
        std::span<const float>(attachment.values).subspan(tensor.range.begin, tensor.range.size()));
  }
  return hash.text();
}

// In the order in which a reader meets the tensors: by name.
Attachment by_name(const Attachment& attachment) {
  Attachment result = attachment;
  std::sort(result.tensors.parameters.begin(), result.tensors.parameters.end(),
            [](const Parameter& a, const Parameter& b) { return a.name < b.name; });
  return result;
}

}  // namespace

void save_attachment(const std::string& path, const Attachment& attachment) {
  save_tensors(path,
               {{"format", "pt"},
                {"about", attachment.about},
                {"sha256", attachment_sha256(by_name(attachment))}},
               attachment.tensors, attachment.values);
}

Attachment load_attachment(const std::string& path) {
  Reader reader(path);
  Attachment result{.about = reader.metadata("about"), .tensors = {}, .values = {}};
  for (const std::string& name : reader.names()) {
    const json shape = reader.shape_of(name);
    size_t count = 1;
    std::vector<int64_t> lengths;
    for (const json& length : shape) {
      if (!length.is_number_unsigned() || length.get<uint64_t>() > reader.size() ||
          count > reader.size())
        refuse(path, fmt::format("tensor '{}' has no shape", name));
      lengths.push_back(length.get<int64_t>());
      count *= length.get<size_t>();
    }
    if (count > reader.size()) refuse(path, fmt::format("tensor '{}' lies outside of it", name));
    const std::vector<float> values = reader.read<float>(name, "F32", shape, count);
    const size_t begin = result.values.size();
    result.values.insert(result.values.end(), values.begin(), values.end());
    result.tensors.parameters.push_back(
        {.name = name, .shape = std::move(lengths), .range = {begin, begin + count}});
  }
  result.tensors.parameter_count = result.values.size();
  if (reader.metadata("sha256") != attachment_sha256(by_name(result)))
    refuse(path, "its checksum differs from what was written");
  return result;
}

void load_parameters(const std::string& path, const Architecture& architecture,
                     std::span<float> parameters) {
  Reader reader(path);
  if (reader.tensors() != architecture.parameters.size())
    refuse(path, "it holds tensors that this model has not");
  for (const Parameter& parameter : architecture.parameters)
    import_parameter(
        parameter,
        reader.read<float>(parameter.name, "F32", json(parameter.shape), parameter.range.size()),
        parameters);
}

std::string parameters_sha256(const Architecture& architecture, std::span<const float> parameters) {
  Sha256 sum;
  for (const Parameter& parameter : architecture.parameters)
    sum.add(std::span<const float>(exported(parameter, parameters)));
  return sum.text();
}

void save_rows(const std::string& path, const Architecture& architecture,
               std::span<const uint64_t> keys, std::span<const float> values) {
  const Parameter& parameter = architecture.parameters.front();
  json header = json::object();
  header["__metadata__"] = {{"format", "pt"}, {"model", architecture.kind}};
  header[kKeys] = {
      {"dtype", "I64"}, {"shape", {keys.size()}}, {"data_offsets", {0, keys.size_bytes()}}};
  header[parameter.name] = {
      {"dtype", "F32"},
      {"shape", {keys.size(), architecture.row_width}},
      {"data_offsets", {keys.size_bytes(), keys.size_bytes() + values.size_bytes()}}};
  std::string content = text_of(header);
  content.append(reinterpret_cast<const char*>(keys.data()), keys.size_bytes());
  content.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  write_file(path, content);
}

Rows load_rows(const std::string& path, const Architecture& architecture) {
  Reader reader(path);
  const json shape = reader.shape_of(kKeys);
  if (!shape.is_array() || shape.size() != 1 || !shape[0].is_number_unsigned())
    refuse(path, "its keys are not a list");
  const auto count = shape[0].get<uint64_t>();
  if (count > architecture.rows()) refuse(path, "it has more rows than there are keys");
  Rows rows;
  rows.keys = reader.read<uint64_t>(kKeys, "I64", shape, count);
  rows.values =
      reader.read<float>(architecture.parameters.front().name, "F32",
                         json({count, architecture.row_width}), count * architecture.row_width);
  if (std::adjacent_find(rows.keys.begin(), rows.keys.end(), std::greater_equal<>()) !=
      rows.keys.end())
    refuse(path, "its keys do not ascend");
  return rows;
}

bool holds_some_rows(const std::string& path) { return Reader(path).has(kKeys); }

std::string rows_sha256(std::span<const uint64_t> keys, std::span<const float> values) {
  Sha256 sum;
  sum.add(keys);
  sum.add(values);
  return sum.text();
}

}  // namespace tutti
