#include "testbed/record_check.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/shallow_json.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"

namespace tutti {
namespace {

using nlohmann::json;

class RecordCheck {
 public:
  explicit RecordCheck(std::string path) : path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(
        fmt::format("{}: is damaged: {}; remove the folder and run it again", path_, what));
  }

  void whole(const json& record) const;

 private:
  using Visit = std::function<void(const json&, const std::string&)>;

  [[noreturn]] void wrong(const std::string& place, const json& found, const char* wanted) const {
    fail(fmt::format("\"{}\" is {}, not {}", place, found.type_name(), wanted));
  }
  const json& needed(const json& object, const char* key) const {
    if (!object.contains(key)) fail(fmt::format("\"{}\" is missing", key));
    return object.at(key);
  }
  void text(const json& value, const std::string& place) const {
    if (!value.is_string()) wrong(place, value, "a text");
  }
  void number(const json& value, const std::string& place) const {
    if (!value.is_number()) wrong(place, value, "a number");
  }
  void number_or_null(const json& value, const std::string& place) const {
    if (!value.is_null()) number(value, place);
  }
  void object(const json& value, const std::string& place) const {
    if (!value.is_object()) wrong(place, value, "an object");
  }
  void list(const json& value, const std::string& place, const Visit& each) const {
    if (!value.is_array()) wrong(place, value, "a list");
    for (size_t i = 0; i < value.size(); ++i) each(value[i], fmt::format("{}[{}]", place, i));
  }
  // Checks those of the keys that exist.
  void numbers_in(const json& value, const std::string& place,
                  std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (value.contains(key)) number_or_null(value[key], place + "." + key);
  }
  void texts_in(const json& value, const std::string& place,
                std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (value.contains(key)) text(value[key], place.empty() ? key : place + "." + key);
  }

  void parts(const json& record) const;
  void nodes(const json& record) const;
  void pictures(const json& record) const;

  std::string path_;
};

void RecordCheck::parts(const json& record) const {
  texts_in(
      record, "",
      {"status", "error", "strategy", "fabric", "obtained", "name", "parameters_sha256", "plan"});
  numbers_in(record, "record",
             {"workers", "machines", "seed", "steps", "samples", "bytes_sent", "messages",
              "update_order", "samples_per_s", "utilisation", "peak_memory_bytes"});
  for (const char* key :
       {"quality", "time", "energy", "co2e", "cost", "staleness", "age_s", "taxonomy"})
    object(record.at(key), key);
  if (record.contains("task")) object(record["task"], "task");
  const json& quality = record["quality"];
  texts_in(quality, "quality", {"metric"});
  numbers_in(quality, "quality", {"best", "last", "final", "target"});
  if (quality.contains("higher_is_better") && !quality["higher_is_better"].is_boolean())
    wrong("quality.higher_is_better", quality["higher_is_better"], "true or false");
  number(needed(record["time"], "data_s"), "time.data_s");
  numbers_in(record["time"], "time", {"total_s", "to_target_s", "wall_s", "normalised"});
  texts_in(record["taxonomy"], "taxonomy",
           {"structure", "parallelism", "optimisation", "timing", "pattern"});
  for (const char* key : {"energy", "co2e", "cost"}) texts_in(record[key], key, {"method"});
  if (record["staleness"].contains("histogram"))
    list(record["staleness"]["histogram"], "staleness.histogram",
         [&](const json& count, const auto& at) {
           if (!count.is_number_integer()) wrong(at, count, "a whole number");
         });
}

void RecordCheck::nodes(const json& record) const {
  list(record.at("nodes"), "nodes", [&](const json& node, const std::string& at) {
    object(node, at);
    for (const char* key : {"rank", "steps"})
      if (const json& value = needed(node, key);
          !value.is_number_integer() || value.get<int64_t>() < 0)
        wrong(at + "." + key, value, "a whole number");
    for (const char* key : {"total_s", "compute_s", "communicate_s", "aggregate_s", "wait_s",
                            "bytes_sent", "messages"})
      if (node.contains(key)) number(node[key], at + "." + key);
    texts_in(node, at, {"role"});
  });
}

void RecordCheck::pictures(const json& record) const {
  list(record.at("evaluations"), "evaluations", [&](const json& row, const std::string& at) {
    object(row, at);
    numbers_in(row, at, {"step", "time_s", "epoch", "samples", "bytes", "loss", "quality"});
  });
  list(record.at("links"), "links", [&](const json& link, const std::string& at) {
    if (!link.is_array() || link.size() != 3 || !link[0].is_number_integer() ||
        !link[1].is_number_integer() || !link[2].is_number())
      wrong(at, link, "[from rank, to rank, bytes]");
  });
  list(record.at("timeline"), "timeline", [&](const json& row, const std::string& at) {
    object(row, at);
    const json& rank = needed(row, "rank");
    if (!rank.is_number_integer()) wrong(at + ".rank", rank, "a whole number");
    if (!row.contains("intervals")) return;
    list(row["intervals"], at + ".intervals", [&](const json& each, const std::string& place) {
      if (!each.is_array() || each.size() != 3 || !each[0].is_string() || !each[1].is_number() ||
          !each[2].is_number() || each[1] > each[2])
        wrong(place, each, "[kind, from, to] in order of time");
    });
  });
}

void RecordCheck::whole(const json& record) const {
  if (!record.is_object()) fail("it is not JSON");
  const json schema = record.value("schema", json());
  if (schema != kRunSchema)
    throw DataError(fmt::format(
        "{}: has schema {}, this program reads schema {}; run the job again "
        "with this version, or read it with the version that wrote it",
        path_, schema.dump(-1, ' ', false, json::error_handler_t::replace), kRunSchema));
  for (const char* key :
       {"status", "quality",   "time",  "evaluations",  "nodes",    "steps",   "strategy",
        "fabric", "workers",   "seed",  "obtained",     "taxonomy", "energy",  "co2e",
        "cost",   "staleness", "age_s", "update_order", "links",    "timeline"})
    needed(record, key);
  parts(record);
  nodes(record);
  pictures(record);
}

}  // namespace

json read_run_record(const std::string& path) {
  json record = parse_shallow_json(read_file(path));
  RecordCheck(path).whole(record);
  return record;
}

}  // namespace tutti
