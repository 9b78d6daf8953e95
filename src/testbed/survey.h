// `tutti survey`: the reference tasks against the architectures on one cluster, as the two tables
// that surveys of this field print: model quality and training time. Every cell comes from runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobs/spending.h"
#include "testbed/compare.h"

namespace tutti {

struct SurveyOptions {
  std::vector<std::string> tasks;  // names below recipes/tasks, or job files; empty: all of those
  std::string cluster = "rack-1g";
  CompareOptions compare;  // its `out` is the folder of the survey; empty: a new one below surveys/
};

inline constexpr int64_t kSurveySchema = 1;

// One architecture on one task.
struct SurveyCell {
  std::string status, error, obtained;
  std::optional<double> quality;  // on test samples at the end
  std::string quality_mark;       // +, o or -
  std::optional<double> time_s;   // to target
  std::string time_mark;
  std::optional<int64_t> reached;  // seeds that reached the target
  std::vector<std::string> runs;   // folders, below that of the task
};
void visit(RecordVisitor& visitor, SurveyCell& cell);

struct SurveyedTask {
  std::string name, data, model;
  double target = 0;
  std::string folder;
  std::string learning;  // what kind of learning it stands for; empty: not a reference task
  std::string skipped;   // why it is left out; else it has what follows
  std::optional<std::string> metric;
  std::optional<std::map<std::string, SurveyCell>> cells;     // by architecture
  std::optional<std::map<std::string, std::string>> refused;  // reasons by architecture
};
void visit(RecordVisitor& visitor, SurveyedTask& task);

// What the marks mean, in words.
struct SurveyRules {
  std::string quality, time;
};
void visit(RecordVisitor& visitor, SurveyRules& rules);

// What survey.json holds.
struct Survey {
  int64_t schema = kSurveySchema;
  std::string kind = "survey";
  std::string cluster;
  SurveyRules rules;
  std::vector<SurveyedTask> tasks;
  std::optional<Spent> spent;  // by this machine, on all tasks
};
void visit(RecordVisitor& visitor, Survey& survey);

// Compares each task in a folder of its own and writes survey.json and survey.html; `folder` is
// where. Goes on where it was ended. A task whose data is not here is a row that says so.
Survey survey(const SurveyOptions& options, const std::atomic<bool>& stop, std::string& folder);

// A value against the others of its task: '+', 'o' or '-'. Both rules look at what should be small
// (seconds; the error) in relation to the median of all that have a value; `margin` is how far from
// it a mark needs to be. No value is '-'.
char mark_of(double value, std::vector<double> all, double margin);

// The two tables for a terminal of so many columns.
std::string survey_tables(const Survey& survey, size_t columns = 100);
// The same as a page, each cell linked to its comparison and runs.
std::string survey_html(const Survey& survey);

}  // namespace tutti
