// `tutti show`: finished runs side by side, from their run.json.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/error.h"
#include "core/units.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"

namespace tutti {
namespace {

using nlohmann::json;

json read_run(const std::string& folder) {
  const std::string path = folder + "/run.json";
  const json run = json::parse(read_file(path), nullptr, false);
  if (!run.is_object() || !run.contains("quality") || !run.contains("time"))
    throw DataError(fmt::format("{}: is not the record of a run, or it is damaged", path));
  if (run.value("schema", 0) != kRunSchema)
    throw DataError(fmt::format("{}: has schema {}, but this program reads {}", path,
                                run.value("schema", 0), kRunSchema));
  return run;
}

// A figure, or a dash where there is none.
std::string cell(const json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

}  // namespace

int run_show(const ShowOptions& options) {
  json runs = json::array();
  for (const std::string& folder : options.runs) runs.push_back(read_run(folder));
  if (options.json) {
    std::cout << runs.dump() << "\n";
    return 0;
  }
  fmt::print("{:<22} {:<8} {:>3} {:<9} {:>7} {:>7} {:>9} {:>9} {:>10}\n", "run", "fabric", "n",
             "clock", "best", "test", "to target", "total", "sent");
  for (const json& run : runs) {
    const json& time = run["time"];
    const bool reached = run["quality"].value("reached", false);
    fmt::print("{:<22} {:<8} {:>3} {:<9} {:>7} {:>7} {:>9} {:>9} {:>10}{}\n",
               run.value("name", "").substr(0, 22), run.value("fabric", ""),
               run.value("workers", 0), run.value("obtained", ""),
               cell(run["quality"]["best"], "{:.4f}"), cell(run["quality"]["final"], "{:.4f}"),
               reached ? cell(time["to_target_s"], "{:.2f} s") : "missed",
               cell(time["total_s"], "{:.2f} s"),
               human_quantity(run.value("bytes_sent", 0.0), Unit::kBytes),
               run.value("status", "") == "done" ? "" : "  " + run.value("status", ""));
  }
  return 0;
}

}  // namespace tutti
