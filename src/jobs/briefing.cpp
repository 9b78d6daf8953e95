#include "jobs/briefing.h"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/bytes.h"
#include "core/error.h"
#include "jobs/run_record.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr size_t kSampled = 64;  // of each split, evenly spread

class Hash {
 public:
  Hash() { crypto_generichash_init(&state_, nullptr, 0, kBytes); }
  template <class T>
  void add(const std::vector<T>& values) {
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(values.data()),
                              values.size() * sizeof(T));
  }
  std::string text() {
    std::array<unsigned char, kBytes> bytes{};
    crypto_generichash_final(&state_, bytes.data(), bytes.size());
    std::array<char, 2 * kBytes + 1> hex{};
    sodium_bin2hex(hex.data(), hex.size(), bytes.data(), bytes.size());
    return hex.data();
  }

 private:
  static constexpr size_t kBytes = crypto_generichash_BYTES_MIN;
  crypto_generichash_state state_;
};

void move_data(DataConfig& data, const std::string& data_dir) {
  for (std::string* path : {&data.path, &data.labels_path, &data.test_path}) {
    if (path->empty() && data.kind != "fashion-mnist") continue;
    const bool folder = data.kind == "fashion-mnist";
    *path =
        folder
            ? data_dir
            : (std::filesystem::path(data_dir) / std::filesystem::path(*path).filename()).string();
    if (folder) return;
  }
}

}  // namespace

std::string fingerprint(const Data& data) {
  Hash hash;
  hash.add(data.dataset->sample_shape());
  hash.add(std::vector<int64_t>{data.dataset->classes()});
  Batch batch;
  for (const auto* split : {&data.splits.train, &data.splits.validation, &data.splits.test}) {
    hash.add(*split);
    std::vector<uint32_t> some;
    for (size_t i = 0; i < std::min(kSampled, split->size()); ++i)
      some.push_back((*split)[i * split->size() / std::min(kSampled, split->size())]);
    data.dataset->gather(some, batch);
    hash.add(batch.features);
    hash.add(batch.labels);
    hash.add(batch.targets);
  }
  return hash.text();
}

std::string make_briefing(Job& job, const Data& data) {
  return json_text({{"version", library_versions()["tutti"]},
                    {"job", resolved_toml(job)},
                    {"data", fingerprint(data)}});
}

Briefing read_briefing(const std::string& text, const std::string& data_dir) {
  std::string version, job, data;
  try {
    const json object = json::parse(text);
    version = object.at("version");
    job = object.at("job");
    data = object.at("data");
  } catch (const json::exception&) {
    throw DataError("the launcher sent no job that can be read; is it a tutti of this version?");
  }
  const std::string own = library_versions()["tutti"];
  if (version != own)
    throw ConfigError("", fmt::format("the launcher is tutti {}, this is tutti {}; use the same "
                                      "version on every machine",
                                      version, own));
  Briefing briefing{parse_job(job, "the launcher's job"), data};
  if (!data_dir.empty()) move_data(briefing.job.task.data, data_dir);
  return briefing;
}

}  // namespace tutti
