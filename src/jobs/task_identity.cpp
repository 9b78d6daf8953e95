#include "jobs/task_identity.h"

#include <fmt/format.h>

#include "core/described_json.h"
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

void visit(RecordVisitor& v, TaskIdentity& task) {
  constexpr Presence kWhenKnown = Presence::kWhenKnown;
  v.field("fingerprint", task.fingerprint, "Fingerprint of all the others", kWhenKnown);
  v.field("data", task.data, "Fingerprint of the samples, or of what generates them", kWhenKnown);
  v.field("split", task.split, "Fingerprint of who is validation and test sample", kWhenKnown);
  v.field("model", task.model, "Fingerprint of the settings of the model", kWhenKnown);
  v.field("optimizer", task.optimizer, "Family of the optimizer", kWhenKnown);
  v.field("global_batch", task.global_batch, "`task.global_batch` of the job", kWhenKnown);
  v.field("metric", task.metric, "`accuracy` or `mse`", kWhenKnown);
  v.field("target", task.target, "`task.target` of the job");
}

TaskIdentity task_identity(const Job& job, const Resolved& resolved) {
  TaskIdentity task;
  task.data = data_of(job, resolved.data);
  task.split = split_fingerprint(resolved.data.splits);
  task.model = text_fingerprint(table_of(job, "task.model"));
  task.optimizer = optimizer_family(job.optimizer.kind());
  task.global_batch = job.task.global_batch;
  task.metric = resolved.architecture.classification ? "accuracy" : "mse";
  if (job.task.target > 0) task.target = job.task.target;
  task.fingerprint = text_fingerprint(json_of(task).dump());
  return task;
}

std::string task_difference(const TaskIdentity& here, const TaskIdentity& there) {
  const json ours = json_of(here), theirs = json_of(there);
  std::string text;
  for (const char* part : kParts) {
    if (!ours.contains(part) || !theirs.contains(part) || ours[part] == theirs[part]) continue;
    const auto shown = [](const json& value) {
      const std::string plain = value.is_string() ? value.get<std::string>() : value.dump();
      return plain.substr(0, 12);  // the beginning of a fingerprint is enough
    };
    text += fmt::format("{}{} {} (there {})", text.empty() ? "" : ", ", part, shown(ours[part]),
                        shown(theirs[part]));
  }
  return text;
}

}  // namespace tutti
