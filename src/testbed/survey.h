// `tutti survey`: the reference tasks against the architectures on one cluster, as the two tables
// that surveys of this field print: model quality and training time. Every cell comes from runs.
#pragma once

#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "testbed/compare.h"

namespace tutti {

struct SurveyOptions {
  std::vector<std::string> tasks;  // names below recipes/tasks, or job files; empty: all of those
  std::string cluster = "rack-1g";
  CompareOptions compare;  // its `out` is the folder of the survey; empty: a new one below surveys/
};

// Compares each task in a folder of its own and writes survey.json and survey.html; `folder` is
// where. Goes on where it was ended. A task whose data is not here is a row that says so.
nlohmann::json survey(const SurveyOptions& options, const std::atomic<bool>& stop,
                      std::string& folder);

// A value against the others of its task: '+', 'o' or '-'. Both rules look at what should be small
// (seconds; the error) in relation to the median of all that have a value; `margin` is how far from
// it a mark needs to be. No value is '-'.
char mark_of(double value, std::vector<double> all, double margin);

// The two tables for a terminal of so many columns.
std::string survey_tables(const nlohmann::json& survey);
// The same as a page, each cell linked to its comparison and runs.
std::string survey_html(const nlohmann::json& survey);

}  // namespace tutti
