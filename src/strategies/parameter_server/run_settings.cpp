#include "strategies/parameter_server/run_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <sstream>
#include <string_view>

namespace tutti::parameter_server {
namespace {

// Lists all settings of a component by their full names.
class SettingList : public Visitor {
 public:
  SettingList(std::string prefix, RunSettings& settings)
      : prefix_(std::move(prefix)), settings_(settings) {}

  void field(const char* key, bool& value, const char*) override { put(key, value); }
  void field(const char* key, int64_t& value, Bounds, const char*) override { put(key, value); }
  void field(const char* key, double& value, Bounds, const char*) override { put(key, value); }
  void field(const char* key, std::string& value, const char*) override { put(key, value); }
  void field(const char* key, std::vector<int64_t>& value, Bounds, const char*) override {
    put(key, value);
  }
  void field(const char* key, std::vector<double>& value, Bounds, const char*) override {
    put(key, value);
  }
  void quantity(const char* key, double& value, Unit, const char*) override { put(key, value); }
  void choice(const char* key, std::string& value, const std::vector<std::string_view>&,
              const char*) override {
    put(key, value);
  }
  void table(const char* key, const std::function<void(Visitor&)>& inside, const char*) override {
    SettingList below(prefix_ + key + ".", settings_);
    inside(below);
  }
  void component(const char* key, std::string& kind, const std::vector<std::string_view>&,
                 const std::function<void(Visitor&)>& inside, const char* help) override {
    put(key, kind);
    table(key, inside, help);
  }
  void tables(const char* key, size_t size, const std::function<void(Visitor&, size_t)>& inside,
              const char*) override {
    for (size_t i = 0; i < size; ++i) {
      SettingList below(fmt::format("{}{}[{}].", prefix_, key, i), settings_);
      inside(below, i);
    }
  }
  void division(const char* key, Division& value, const char*) override {
    put(key, value.automatic ? "auto" : fmt::format("{} {}", value.parts, value.places));
  }

 private:
  template <class T>
  void put(const char* key, const T& value) {
    settings_[prefix_ + key] = fmt::format("{}", value);
  }

  std::string prefix_;
  RunSettings& settings_;
};

// What is compared besides settings.
constexpr std::string_view kData = "data", kSplit = "split";

const std::set<std::string> kFree = {"task.max_steps",      "task.target",
                                     "task.stop_at_target", "task.eval_every",
                                     "task.data.path",      "task.data.labels_path",
                                     "task.data.test_path",
                                     "strategy.servers",  // the shards imply it
                                     "strategy.replicas",   "strategy.shards_per_server",
                                     "strategy.executions", "strategy.pull",
                                     "strategy.prefetch",   "strategy.snapshot_every",
                                     "strategy.resume"};

}  // namespace

RunSettings run_settings(const TaskConfig& task, const OptimizerConfig& optimizer,
                         const ClusterConfig& cluster, const Config& config,
                         const DataSizes& data) {
  RunSettings settings;
  // Visitors need mutable objects.
  TaskConfig visited_task = task;
  OptimizerConfig visited_optimizer = optimizer;
  Config visited_config = config;
  SettingList of_task("task.", settings), of_optimizer("optimizer.", settings),
      of_strategy("strategy.", settings);
  visit(of_task, visited_task);
  visit(of_optimizer, visited_optimizer);
  visit(of_strategy, visited_config);
  settings["cluster.workers"] = std::to_string(cluster.workers);
  std::erase_if(settings, [](const auto& setting) { return kFree.contains(setting.first); });
  if (optimizer.schedule.kind != ScheduleKind::kCosine)
    settings.erase("task.epochs");  // no rate depends on them
  settings[std::string(kData)] = data.contents();
  settings[std::string(kSplit)] = data.split();
  return settings;
}

std::string to_text(const RunSettings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) {
    std::string line = fmt::format("{} = {}", key, value);
    for (char& c : line)
      if (c == '\n') c = ' ';
    text += line + "\n";
  }
  return text;
}

RunSettings settings_in(const std::string& text) {
  RunSettings settings;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const size_t place = line.find(" = "); place != std::string::npos)
      settings[line.substr(0, place)] = line.substr(place + 3);
  return settings;
}

std::string difference(const RunSettings& before, const RunSettings& now) {
  std::string text;
  const auto value_in = [](const RunSettings& settings, const std::string& key) {
    const auto found = settings.find(key);
    if (found == settings.end()) return std::string("none");
    return key == kData || key == kSplit ? found->second.substr(0, 12) : found->second;
  };
  std::set<std::string> keys;
  for (const RunSettings* settings : {&before, &now})
    for (const auto& [key, value] : *settings) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string old_value = value_in(before, key), new_value = value_in(now, key);
    if (old_value == new_value) continue;
    const char* const name = key == kData    ? "samples of the data"
                             : key == kSplit ? "split of the data"
                                             : key.c_str();
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", name, old_value, new_value);
  }
  return text;
}

}  // namespace tutti::parameter_server
