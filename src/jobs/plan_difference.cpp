#include "jobs/plan_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/units.h"
#include "jobs/setting_difference.h"

namespace tutti {
namespace {

// "4 workers, 1 server", in the order of the ranks.
std::string roles_in_words(const Plan& plan) {
  std::vector<std::pair<std::string, size_t>> counts;
  for (const NodePlan& node : plan.nodes) {
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& each) { return each.first == node.role; });
    if (known == counts.end())
      counts.emplace_back(node.role, 1);
    else
      ++known->second;
  }
  std::vector<std::string> words;
  for (const auto& [role, count] : counts)
    words.push_back(fmt::format("{} {}{}", count, role, count == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string span_in_words(int64_t first, int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
}

// "3 to 4 become 2 to 3, 6 becomes 4": the nodes whose ranks change.
std::string ranks_in_words(const std::vector<std::optional<Rank>>& next) {
  std::vector<std::string> spans;
  for (size_t rank = 0; rank < next.size(); ++rank) {
    if (!next[rank] || *next[rank] == static_cast<Rank>(rank)) continue;
    const size_t first = rank;
    while (rank + 1 < next.size() && next[rank + 1] && *next[rank + 1] == *next[rank] + 1) ++rank;
    const std::string now = span_in_words(static_cast<int64_t>(first), static_cast<int64_t>(rank));
    spans.push_back(fmt::format("{} {} {}", now, first == rank ? "becomes" : "become",
                                span_in_words(*next[first], *next[rank])));
  }
  return fmt::format("{}", fmt::join(spans, ", "));
}

// For each node that stays, the first of them that is in the same group.
std::vector<size_t> groups_of(const ClusterConfig& cluster,
                              int64_t (*group_of)(const ClusterConfig&, int64_t),
                              const std::vector<std::optional<Rank>>& next, bool afterwards) {
  std::map<int64_t, size_t> first;
  std::vector<size_t> groups;
  for (size_t rank = 0; rank < next.size(); ++rank)
    if (next[rank]) {
      const int64_t node = afterwards ? *next[rank] : static_cast<int64_t>(rank);
      groups.push_back(first.try_emplace(group_of(cluster, node), groups.size()).first->second);
    }
  return groups;
}

// "rank 0 and ranks 4 to 7 must stay": the nodes whose loss ends the run.
std::string risk_in_words(const Plan& plan) {
  std::vector<std::string> spans;
  size_t needed = 0;
  for (size_t rank = 0; rank < plan.nodes.size(); ++rank) {
    if (plan.nodes[rank].may_be_lost) continue;
    size_t last = rank;
    while (last + 1 < plan.nodes.size() && !plan.nodes[last + 1].may_be_lost) ++last;
    spans.push_back(span_in_words(static_cast<int64_t>(rank), static_cast<int64_t>(last)));
    needed += last - rank + 1;
    rank = last;
  }
  if (needed == 0) return "no single loss ends the run";
  if (needed == plan.nodes.size()) return "the loss of any node ends the run";
  return fmt::format("the loss of rank {} ends the run, that of others does not",
                     fmt::join(spans, ", "));
}

std::string change_of(double before, double after, const std::string& from, const std::string& to) {
  if (before <= 0 || after <= 0) return fmt::format("{} -> {}", from, to);
  const double factor = after > before ? after / before : before / after;
  if (factor < 1.005) return fmt::format("{} -> {}", from, to);
  return fmt::format("{} -> {} ({:.3g} times {})", from, to, factor,
                     after > before ? "more" : "less");
}

std::string bytes_change(double before, double after) {
  return change_of(before, after, human_quantity(before, Unit::kBytes),
                   human_quantity(after, Unit::kBytes));
}

std::string number_change(double before, double after) {
  return change_of(before, after, fmt::format("{:.6g}", before), fmt::format("{:.6g}", after));
}

double total_bytes(const Plan& plan) {
  double sum = 0;
  for (const NodePlan& node : plan.nodes) sum += node.bytes_sent;
  return sum;
}

bool differ(double a, double b) {
  return std::abs(a - b) > 1e-9 * std::max(std::abs(a), std::abs(b));
}

}  // namespace

std::vector<PlanChange> plan_changes(const Resolved& before, const Resolved& after) {
  const Plan &a = before.plan, &b = after.plan;
  std::vector<PlanChange> changes;
  const auto words = [&](const char* about, std::string_view from, std::string_view to) {
    if (from != to) changes.push_back({about, fmt::format("{} -> {}", from, to)});
  };
  const auto numbers = [&](const char* about, double from, double to, auto* text) {
    if (differ(from, to)) changes.push_back({about, text(from, to)});
  };
  words("strategy", before.job.strategy_kind, after.job.strategy_kind);
  words("roles", roles_in_words(a), roles_in_words(b));
  words("plan", a.in_words.empty() ? "nothing to plan" : a.in_words,
        b.in_words.empty() ? "nothing to plan" : b.in_words);
  words("structure", a.taxonomy.structure, b.taxonomy.structure);
  words("parallelism", a.taxonomy.parallelism, b.taxonomy.parallelism);
  words("timing", word_of(a.taxonomy.timing), word_of(b.taxonomy.timing));
  words("stragglers", a.taxonomy.stragglers, b.taxonomy.stragglers);
  words("data", a.taxonomy.data, b.taxonomy.data);
  numbers("parameters", static_cast<double>(before.architecture.parameter_count),
          static_cast<double>(after.architecture.parameter_count), number_change);
  numbers("steps", static_cast<double>(a.steps), static_cast<double>(b.steps), number_change);
  numbers("batch", static_cast<double>(before.job.task.global_batch),
          static_cast<double>(after.job.task.global_batch), number_change);
  numbers("memory of the fullest worker", a.most_memory_bytes(), b.most_memory_bytes(),
          bytes_change);
  numbers("sent in a step by the busiest node", a.busiest().bytes_sent, b.busiest().bytes_sent,
          bytes_change);
  numbers("messages of that node in a step", a.busiest().messages, b.busiest().messages,
          number_change);
  numbers("sent in a step by all nodes", total_bytes(a), total_bytes(b), bytes_change);
  words("risk", risk_in_words(a), risk_in_words(b));
  const std::vector<SettingChange> settings = changed_settings(before.job, after.job);
  if (!settings.empty()) changes.push_back({"settings", in_words(settings)});
  const bool other_task = std::any_of(settings.begin(), settings.end(),
                                      [](const SettingChange& change) { return change.learning; });
  const bool alike = !a.equivalence.empty() && a.equivalence == b.equivalence;
  changes.push_back({"learning", other_task
                                     ? "the task or its rates differ, so they learn differently"
                                 : alike ? "both compute the same parameters"
                                         : "they need not learn alike: compare both to know"});
  return changes;
}

std::vector<PlanChange> membership_changes(const Plan& before, const MembershipChange& change,
                                           const Plan& after) {
  const auto next = ranks_after(change, before.workers, std::ssize(before.nodes));
  std::vector<PlanChange> changes;
  if (const std::string words = ranks_in_words(next); !words.empty())
    changes.push_back({"ranks", words});
  if (change.come > 0) {
    const int64_t first = after.workers - change.come;
    changes.push_back({"new", fmt::format("{} {}", change.come == 1 ? "rank" : "ranks",
                                          span_in_words(first, after.workers - 1))});
  }
  const auto neighbours_change = [&](int64_t (*group_of)(const ClusterConfig&, int64_t)) {
    return groups_of(before.cluster, group_of, next, false) !=
           groups_of(after.cluster, group_of, next, true);
  };
  if (neighbours_change(host_of))
    changes.push_back({"hosts", "filled anew in the order of the ranks, as hosts are equal"});
  if (neighbours_change(rack_of))
    changes.push_back({"racks", "dealt anew in the order of the ranks, as racks are equal"});
  return changes;
}

}  // namespace tutti
