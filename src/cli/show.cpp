// `tutti show`: finished runs side by side, from their run.json.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/printable.h"
#include "core/units.h"
#include "testbed/record_check.h"
#include "testbed/run_files.h"

namespace tutti {
namespace {

using nlohmann::json;

// What is there, or null: a record may be damaged.
json at(const json& run, const char* pointer) {
  return run.value(json::json_pointer(pointer), json());
}

json record_of(const std::string& folder) {
  // A run that shares a learning curve has its quality in the folder beside it.
  std::error_code failed;
  if (std::filesystem::exists(folder + "/shared_curve", failed)) return read_run(folder).record;
  return read_run_record(folder + "/run.json");
}

// A figure or a word, or a dash where there is none.
std::string cell(const json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}
std::string cell(const json& value) {
  return value.is_string() ? printable(value.get<std::string>()) : "-";
}

}  // namespace

int run_show(const ShowOptions& options) {
  json runs = json::array();
  for (const std::string& folder : options.runs) runs.push_back(record_of(folder));
  if (options.json) {
    std::cout << runs.dump() << "\n";
    return 0;
  }
  fmt::print("{:<22} {:<8} {:>3} {:<9} {:>10} {:>9} {:>8} {:>9} {:>9} {:>10}\n", "run", "fabric",
             "n", "clock", "final test", "final val", "best val", "to target", "total", "sent");
  for (const json& run : runs) {
    const json sent = at(run, "/bytes_sent"), status = at(run, "/status");
    // Without a target, or where only costs were simulated, there was nothing to miss.
    const bool aimed = !at(run, "/quality/target").is_null() && !at(run, "/quality/best").is_null();
    const char* missed = aimed ? "missed" : "-";
    fmt::print("{:<22} {:<8} {:>3} {:<9} {:>10} {:>9} {:>8} {:>9} {:>9} {:>10}{}\n",
               cell(at(run, "/name")).substr(0, 22), cell(at(run, "/fabric")),
               cell(at(run, "/workers"), "{:.0f}"), cell(at(run, "/obtained")),
               cell(at(run, "/quality/final"), "{:.4f}"), cell(at(run, "/quality/last"), "{:.4f}"),
               cell(at(run, "/quality/best"), "{:.4f}"),
               at(run, "/quality/reached") == true ? cell(at(run, "/time/to_target_s"), "{:.2f} s")
                                                   : missed,
               cell(at(run, "/time/total_s"), "{:.2f} s"),
               sent.is_number() ? human_quantity(sent.get<double>(), Unit::kBytes) : "-",
               status == "done" ? "" : "  " + cell(status));
  }
  return 0;
}

}  // namespace tutti
