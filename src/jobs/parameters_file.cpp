#include "jobs/parameters_file.h"

#include <fmt/format.h>
#include <sodium.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
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

}  // namespace

void save_parameters(const std::string& path, const Architecture& architecture,
                     std::span<const float> parameters) {
  json header = json::object();
  header["__metadata__"] = {{"format", "pt"}, {"model", architecture.kind}};
  size_t offset = 0;
  for (const Parameter& parameter : architecture.parameters) {
    const size_t bytes = parameter.range.size() * sizeof(float);
    header[parameter.name] = {
        {"dtype", "F32"}, {"shape", parameter.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the format aligns the data to 8 bytes
  std::string content(sizeof(uint64_t), '\0');
  const uint64_t length = text.size();
  std::memcpy(content.data(), &length, sizeof(length));
  content += text;
  for (const Parameter& parameter : architecture.parameters) {
    const std::vector<float> values = exported(parameter, parameters);
    content.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  write_file(path, content);
}

void load_parameters(const std::string& path, const Architecture& architecture,
                     std::span<float> parameters) {
  std::ifstream file(path, std::ios::binary);
  std::error_code failed;
  const uint64_t size = std::filesystem::file_size(path, failed);
  if (!file || failed) throw DataError(fmt::format("{}: cannot be read", path));
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof(length));
  if (!file || length > size - sizeof(length)) refuse(path, "its header is longer than the file");
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  const json header = json::parse(text, nullptr, false);
  if (!file || !header.is_object()) refuse(path, "its header is not JSON");
  const uint64_t data_begin = sizeof(length) + length;
  if (header.size() - header.count("__metadata__") != architecture.parameters.size())
    refuse(path, "it holds tensors that this model has not");
  for (const Parameter& parameter : architecture.parameters) {
    const json entry = header.value(parameter.name, json());
    const uint64_t bytes = parameter.range.size() * sizeof(float);
    if (!entry.is_object() || entry.value("dtype", json()) != "F32" ||
        entry.value("shape", json()) != json(parameter.shape))
      refuse(path, fmt::format("it has no F32 tensor '{}' of the right shape", parameter.name));
    const json offsets = entry.value("data_offsets", json());
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned() ||
        offsets[0].get<uint64_t>() > offsets[1].get<uint64_t>() ||
        offsets[1].get<uint64_t>() - offsets[0].get<uint64_t>() != bytes ||
        offsets[1].get<uint64_t>() > size - data_begin)
      refuse(path, fmt::format("tensor '{}' lies outside of it", parameter.name));
    std::vector<float> values(parameter.range.size());
    file.seekg(static_cast<std::streamoff>(data_begin + offsets[0].get<uint64_t>()));
    file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(bytes));
    if (!file) refuse(path, "it is truncated");
    import_parameter(parameter, values, parameters);
  }
}

std::string parameters_sha256(const Architecture& architecture, std::span<const float> parameters) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  for (const Parameter& parameter : architecture.parameters) {
    const std::vector<float> values = exported(parameter, parameters);
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(values.data()),
                              values.size() * sizeof(float));
  }
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_final(&state, digest);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace tutti
