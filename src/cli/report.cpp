// `tutti report`: the page of a comparison, and its exports for other tools.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/printable.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "testbed/exports.h"
#include "testbed/report.h"
#include "testbed/report_input.h"
#include "testbed/summary.h"

namespace tutti {
namespace {

using nlohmann::json;

// Beside `file`: results.csv -> results-curves.csv.
std::string curves_file(const std::string& file) {
  const std::filesystem::path path(file);
  return (path.parent_path() / (path.stem().string() + "-curves" + path.extension().string()))
      .string();
}

// Beside the comparison it shows, unless told otherwise.
std::string default_page(const std::vector<std::string>& paths) {
  const std::filesystem::path first(paths[0]);
  if (paths.size() > 1) return "report.html";
  std::error_code failed;
  const bool folder = std::filesystem::is_directory(first, failed);
  return ((folder ? first : first.parent_path()) / "report.html").string();
}

}  // namespace

int run_report(const ReportOptions& options) {
  const Comparison comparison = read_comparisons(options.paths, summarise_runs);
  json written = json::object();
  const auto write = [&](const char* what, const std::string& file, const std::string& text) {
    write_file(file, text);
    written[what] = file;
  };
  write("report", options.out.empty() ? default_page(options.paths) : options.out,
        report_html(comparison));
  if (!options.csv.empty()) {
    write("csv", options.csv, csv_of_strategies(comparison));
    write("csv_curves", curves_file(options.csv), csv_of_curves(comparison));
  }
  if (!options.trace.empty()) write("trace", options.trace, chrome_trace(comparison));
  if (!options.tensorboard.empty()) {
    written["tensorboard"] = options.tensorboard;
    written["tensorboard_runs"] = write_tensorboard(comparison, options.tensorboard);
  }
  if (options.json) {
    std::cout << json_text(written) << "\n";
    return 0;
  }
  for (const auto& [what, file] : written.items())
    if (file.is_string()) fmt::print("{:<12} {}\n", what, printable(file.get<std::string>()));
  return 0;
}

}  // namespace tutti
