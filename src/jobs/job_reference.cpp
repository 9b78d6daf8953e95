// Documents every setting of a job as Markdown, by visiting the fields that the reader reads.
//
// Which fields there are may depend on a choice made before them (`kind`, `fabric`), so a table is
// visited once for each alternative of each of its choices, and within an alternative for those of
// the choices that only it has; a row is printed where it first shows, and again where the same key
// means something else.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

#include "jobs/job.h"

namespace tutti {
namespace {

class ReferenceWriter : public Visitor {
 public:
  std::vector<Setting> settings() const {
    std::vector<Setting> result = settings_;
    for (Setting& setting : result) setting.needs = needs_of(setting.table + "." + setting.key);
    return result;
  }
  const std::map<std::string, std::string>& tables() const { return tables_; }

  void field(const char* key, bool& value, const char* help) override {
    row(key, "true, false", fmt::format("{}", value), help);
  }
  void field(const char* key, int64_t& value, Bounds bounds, const char* help) override {
    row(key, "whole number" + range(bounds), fmt::format("{}", value), help);
  }
  void field(const char* key, double& value, Bounds bounds, const char* help) override {
    row(key, "number" + range(bounds), fmt::format("{}", value), help);
  }
  void field(const char* key, std::string& value, const char* help) override {
    row(key, "text", fmt::format("\"{}\"", value), help);
  }
  void field(const char* key, std::vector<int64_t>& value, Bounds, const char* help) override {
    row(key, "list of whole numbers", fmt::format("{}", value), help);
  }
  void field(const char* key, std::vector<double>& value, Bounds, const char* help) override {
    row(key, "list of numbers", fmt::format("{}", value), help);
  }
  void quantity(const char* key, double& value, Unit unit, const char* help) override {
    row(key, "quantity", fmt::format("\"{}\"", format_quantity(value, unit)), help);
  }
  void division(const char* key, Division& value, const char* help) override {
    row(key, "whole number >= 0, list of whole numbers, `auto`",
        value.automatic ? "\"auto\"" : fmt::format("{}", value.parts), help);
  }
  void choice(const char* key, std::string& value, const std::vector<std::string_view>& allowed,
              const char* help) override {
    row(key, fmt::format("`{}`", fmt::join(allowed, "`, `")), fmt::format("\"{}\"", value), help);
    if (const auto forced = forced_.find(key); forced != forced_.end())
      value = forced->second;
    else if (!known_.contains(key))
      choices_.push_back({key, value, {allowed.begin(), allowed.end()}});
  }
  void table(const char* key, const std::function<void(Visitor&)>& inside,
             const char* help) override {
    table_ = key;
    tables_[key] = help;
    explore("", inside);
  }
  void component(const char* key, std::string& kind, const std::vector<std::string_view>& allowed,
                 const std::function<void(Visitor&)>& inside, const char* help) override {
    row(key, fmt::format("`{}`, or a table", fmt::join(allowed, "`, `")),
        fmt::format("\"{}\"", kind), help);
    explore(std::string(key) + ".", [&](Visitor& visitor) {
      visitor.choice("kind", kind, allowed, help);
      inside(visitor);
    });
  }
  void tables(const char* key, size_t, const std::function<void(Visitor&, size_t)>& inside,
              const char* help) override {
    row(key, "list of tables", "[]", help);
    explore(std::string(key) + ".", [&](Visitor& visitor) { inside(visitor, 0); });
  }

 private:
  struct Choice {
    std::string key, value;
    std::vector<std::string> allowed;
  };

  static std::string range(Bounds bounds) {
    if (bounds.least == kPositive.least) return " > 0";
    std::string text;
    if (bounds.least > -1e300) text += fmt::format(" >= {}", bounds.least);
    if (bounds.most < 1e300) text += fmt::format(" <= {}", bounds.most);
    return text;
  }

  // A choice matters to a setting that some of its alternatives do not have.
  std::string needs_of(const std::string& name) const {
    const auto found = seen_with_.find(name);
    if (found == seen_with_.end()) return "";
    std::string text;
    for (const auto& [choice, alternatives] : found->second) {
      if (alternatives == alternatives_.at(choice)) continue;
      text += fmt::format("{}{} = \"{}\"", text.empty() ? "" : " and ", choice,
                          fmt::join(alternatives, "\" or \""));
    }
    return text;
  }

  void row(const std::string& key, const std::string& values, const std::string& preset,
           const std::string& help) {
    for (const auto& [choice, alternative] : taken_)
      seen_with_[table_ + "." + prefix_ + key][choice].insert(alternative);
    if (!seen_.insert(prefix_ + key + "|" + values + "|" + help).second) return;
    settings_.push_back({table_, prefix_ + key, values, preset, note_ + help, ""});
  }

  void explore(const std::string& prefix, const std::function<void(Visitor&)>& inside) {
    const auto outer_prefix = std::exchange(prefix_, prefix);
    const auto outer_choices = std::exchange(choices_, {});
    const auto outer_known = std::exchange(known_, {});
    const auto outer_forced = std::exchange(forced_, {});
    const auto outer_seen = prefix.empty() ? std::exchange(seen_, {}) : seen_;
    visit_alternatives(inside);
    prefix_ = outer_prefix;
    choices_ = outer_choices;
    known_ = outer_known;
    forced_ = outer_forced;
    if (prefix.empty()) seen_ = outer_seen;
  }

  void visit_alternatives(const std::function<void(Visitor&)>& inside) {
    choices_.clear();
    inside(*this);
    const auto choices = std::exchange(choices_, {});
    const auto outer_known = known_;
    const auto outer_note = note_;
    for (const Choice& choice : choices) known_.insert(choice.key);
    for (const Choice& choice : choices) {
      for (const std::string& alternative : choice.allowed) {
        forced_[choice.key] = alternative;
        note_ = fmt::format(
            "{} `{}{} = \"{}\"`: ",
            outer_note.empty() ? "With" : outer_note.substr(0, outer_note.size() - 2) + ",",
            prefix_, choice.key, alternative);
        taken_.emplace_back(table_ + "." + prefix_ + choice.key, alternative);
        alternatives_[taken_.back().first].insert(alternative);
        visit_alternatives(inside);
        taken_.pop_back();
      }
      forced_[choice.key] = choice.value;
      inside(*this);
      forced_.erase(choice.key);
      note_ = outer_note;
    }
    known_ = outer_known;
  }

  std::vector<Setting> settings_;
  std::map<std::string, std::string> tables_;  // what each is about
  std::string table_, prefix_, note_;
  std::set<std::string> seen_;
  std::vector<Choice> choices_;                // of the table being explored
  std::set<std::string> known_;                // those that are explored already, or will be
  std::map<std::string, std::string> forced_;  // choices and the alternative taken of each
  // The same by whole names, with those of the tables around; and what was seen with which.
  std::vector<std::pair<std::string, std::string>> taken_;
  std::map<std::string, std::map<std::string, std::set<std::string>>> seen_with_;
  // The alternatives of each choice, with any choices around it.
  std::map<std::string, std::set<std::string>> alternatives_;
};

ReferenceWriter visited() {
  ReferenceWriter writer;
  Job job;
  visit(writer, job);
  return writer;
}

}  // namespace

std::vector<Setting> job_settings() { return visited().settings(); }

std::string job_reference() {
  constexpr const char* kHead = "| key | values | default | meaning |\n|---|---|---|---|\n";
  std::string text =
      "# Job reference\n\nEvery setting of a job file, with its default. Written by `tutti list "
      "settings`; a test keeps it current.\nA quantity is a number in its base unit or a text "
      "with a unit (`\"50 us\"`, `\"1 Gbit/s\"`).\n\n";
  text += kHead;
  const ReferenceWriter writer = visited();
  const std::vector<Setting> settings = writer.settings();
  std::string table;
  for (const Setting& setting : settings) {
    if (setting.table != table) {
      table = setting.table;
      text += fmt::format("\n## [{}]\n\n{}.\n\n{}", table, writer.tables().at(table), kHead);
    }
    text += fmt::format("| `{}` | {} | `{}` | {} |\n", setting.key, setting.values, setting.preset,
                        setting.meaning);
  }
  text +=
      "\n## [[compare]]\n\nOne more contender of `tutti compare`, see docs/compare.md: a `name`, "
      "and "
      "any of the settings above (`strategy.topology = \"tree\"`), which replace those of the "
      "job. With the name of a strategy of the catalog it adds nobody: it says how that one "
      "runs.\n";
  return text;
}

}  // namespace tutti
