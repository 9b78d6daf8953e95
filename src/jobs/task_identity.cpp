#include "jobs/task_identity.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/fingerprint.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr const char* kParts[] = {"data",   "split",        "model", "optimizer",
                                  "target", "global_batch", "metric"};

// Returns one table of the resolved job, such as "[task.model]", with all its subtables.
std::string table_of(const Job& job, const std::string& name) {
  Job copy = with_settings(job, {});
  const std::string text = resolved_toml(copy), head = fmt::format("\n[{}]\n", name);
  const size_t begin = text.find(head);
  if (begin == std::string::npos) return "";
  size_t end = begin + 1;
  do {
    end = text.find("\n[", end + 1);
  } while (end != std::string::npos && text.compare(end + 2, name.size() + 1, name + ".") == 0);
  return text.substr(begin, end - begin);
}

std::string data_of(const Job& job, const Data& data) {
  return job.task.data.source.entry().generated ? text_fingerprint(table_of(job, "task.data"))
                                                : contents_fingerprint(*data.dataset);
}

}  // namespace

json task_identity(const Job& job, const Resolved& resolved) {
  json task = {{"data", data_of(job, resolved.data)},
               {"split", split_fingerprint(resolved.data.splits)},
               {"model", text_fingerprint(table_of(job, "task.model"))},
               {"optimizer", optimizer_family(job.optimizer.kind())},
               {"global_batch", job.task.global_batch},
               {"metric", resolved.architecture.classification ? "accuracy" : "mse"},
               {"target", job.task.target > 0 ? json(job.task.target) : json()}};
  task["fingerprint"] = text_fingerprint(task.dump());
  return task;
}

std::string task_difference(const json& here, const json& there) {
  if (!here.is_object() || !there.is_object()) return "";
  std::string text;
  for (const char* part : kParts) {
    const json ours = here.value(part, json()), theirs = there.value(part, json());
    if (ours == theirs || !here.contains(part) || !there.contains(part)) continue;
    const auto shown = [](const json& value) {
      const std::string plain = value.is_string() ? value.get<std::string>() : value.dump();
      return plain.substr(0, 12);  // the beginning of a fingerprint is enough
    };
    text += fmt::format("{}{} {} (there {})", text.empty() ? "" : ", ", part, shown(ours),
                        shown(theirs));
  }
  return text;
}

}  // namespace tutti
