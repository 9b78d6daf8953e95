#include "testbed/claim_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/described_json.h"
#include "jobs/run_status.h"

namespace tutti {
namespace {

const ComparedStrategy* compared_row(const Comparison& comparison, const std::string& name) {
  for (const ComparedStrategy& row : comparison.strategies)
    if (row.name == name) return &row;
  return nullptr;
}

std::string figure_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{:.6g}", value);
}

// "+3.1 %": how far `here` is from `there`.
std::string deviation_text(double here, double there) {
  if (here == there) return "equal";
  if (there == 0) return fmt::format("off by {}", figure_text(here));
  const double share = 100 * (here - there) / std::abs(there);
  return std::abs(share) < 0.01 ? fmt::format("{:+.1e} %", share) : fmt::format("{:+.2f} %", share);
}

const char* meaning_of(const std::string& figure) {
  for (const NamedFigure& each : figures_over_seeds())
    if (figure == each.name) return each.meaning;
  for (const NamedQuality& each : qualities_over_seeds())
    if (figure == fmt::format("quality.{}", each.name)) return each.meaning;
  return figure.c_str();
}

// Which seeds of a claim were run here: pairs of positions, there and here.
using SeedPairs = std::vector<std::pair<size_t, size_t>>;

// A run that was ended from outside or crashed says nothing about the claim.
bool says_something(const ComparedStrategy& row, size_t i) {
  const std::string status = i < row.statuses.size() ? row.statuses[i] : row.status;
  return came_to_an_end(status);
}

SeedPairs seeds_in_both(const Claim& claim, const ComparedStrategy& here) {
  SeedPairs pairs;
  for (size_t there = 0; there < claim.seeds.size(); ++there)
    for (size_t i = 0; i < here.seeds.size(); ++i)
      if (here.seeds[i] == claim.seeds[there] && says_something(here, i))
        pairs.emplace_back(there, i);
  return pairs;
}

std::optional<double> value_at(const OverSeeds& figure, size_t i) {
  return figure && i < figure->values.size() ? figure->values[i] : std::nullopt;
}
std::optional<double> value_at(const SeedValues& values, size_t i) {
  return i < values.size() ? values[i] : std::nullopt;
}

class Check {
 public:
  Check(const Claim& claim, const ClaimContext& context)
      : context_(context),
        tolerance_(context.same_arithmetic ? claim.same : claim.elsewhere),
        here_(compared_row(context.here, claim.strategy)) {
    result_.claim = claim;
    if (here_) seeds_ = seeds_in_both(claim, *here_);
  }

  CheckedClaim result() {
    const ClaimKind kind = claim().kind;
    if (!here_ || seeds_.empty())
      result_.finding = here_ && !here_->error.empty() ? here_->error : "it was not run here";
    else if (kind == ClaimKind::kOrder)
      order();
    else if (kind == ClaimKind::kOutcome)
      outcome();
    else if (kind == ClaimKind::kCurve)
      curve();
    else if (kind != ClaimKind::kPlan)
      values();
    return result_;
  }

 private:
  const Claim& claim() const { return result_.claim; }

  void decide(bool holds) {
    const bool before = result_.verdict != Verdict::kNotConfirmed;
    result_.verdict = holds && before ? Verdict::kConfirmed : Verdict::kNotConfirmed;
  }

  // Compares two numbers, and keeps the largest difference. Where equality is claimed it is that of
  // each seed, elsewhere that of means.
  void compare(const std::string& what, double here, double there) {
    const double most = tolerated(tolerance_, there);
    const double off = std::abs(here - there);
    const bool holds = off <= most;
    const double scale = there == 0 ? 1 : std::abs(there);
    const bool worst = !result_.difference || off / scale > *result_.difference;
    if (worst) {
      result_.difference = off / scale;
      result_.tolerated = most / scale;
      result_.finding = fmt::format("{}: {} here, {} there, {}", what, figure_text(here),
                                    figure_text(there), deviation_text(here, there));
    }
    decide(holds);
  }

  bool exact() const { return tolerance_.share == 0 && tolerance_.absolute == 0; }

  void values() {
    result_.finding = "the seeds that were run have no such figure";
    for (const auto& [name, there] : claim().values) {
      const OverSeeds& here = claimed_figure(*here_, name);
      double sum_here = 0, sum_there = 0;
      size_t both = 0;
      std::optional<size_t> in_one;
      for (const auto& [i, k] : seeds_) {
        const auto was = value_at(there, i), is = value_at(here, k);
        if (was.has_value() != is.has_value()) in_one = i;
        if (!was || !is) continue;
        sum_here += *is;
        sum_there += *was;
        ++both;
        if (exact()) compare(meaning_of(name), *is, *was);
      }
      const auto count = static_cast<double>(both);
      if (!exact() && both > 0) compare(meaning_of(name), sum_here / count, sum_there / count);
      if (in_one && (exact() || both == 0)) missing(name, claim().seeds[*in_one]);
    }
  }

  void missing(const std::string& name, uint64_t seed) {
    decide(false);
    result_.finding =
        fmt::format("{}: seed {} has a value here or there alone", meaning_of(name), seed);
    result_.difference = 1;
  }

  void order() {
    const ComparedStrategy* second = compared_row(context_.here, claim().before);
    const std::string& figure = claim().values.begin()->first;
    double here_first = 0, here_second = 0, there_first = 0, there_second = 0;
    size_t seeds = 0;
    for (const auto& [i, k] : seeds_) {
      if (!second || k >= second->seeds.size() || !says_something(*second, k)) continue;
      const auto a = value_at(claimed_figure(*here_, figure), k),
                 b = value_at(claimed_figure(*second, figure), k),
                 was_a = value_at(claim().values.at(figure), i),
                 was_b = value_at(claim().values_before, i);
      if (!was_a || !was_b) continue;
      if (!a || !b) return missing(figure, claim().seeds[i]);
      here_first += *a;
      here_second += *b;
      there_first += *was_a;
      there_second += *was_b;
      ++seeds;
    }
    if (seeds == 0) {
      result_.finding = fmt::format("{} was not run here", claim().before);
      return;
    }
    const auto ahead = [](double first, double later) { return 100 * (later - first) / later; };
    const double here = ahead(here_first, here_second), there = ahead(there_first, there_second);
    decide(here > 0);
    result_.difference = std::abs(here - there) / 100;
    result_.finding = fmt::format("{} by {:.1f} % here, ahead by {:.1f} % there",
                                  here > 0 ? "ahead" : "behind", std::abs(here), there);
  }

  // How many seeds ended otherwise, or reached the target otherwise.
  void outcome() {
    const auto steps = claim().values.find("steps_to_target");
    size_t others = 0;
    for (const auto& [i, k] : seeds_) {
      const bool as_claimed = k < here_->statuses.size() && i < claim().statuses.size() &&
                              here_->statuses[k] == claim().statuses[i];
      const bool reached_there =
          steps != claim().values.end() && value_at(steps->second, i).has_value();
      const bool reached_here = value_at(here_->steps_to_target, k).has_value();
      others += as_claimed && reached_here == reached_there ? 0 : 1;
    }
    decide(static_cast<double>(others) <= tolerance_.absolute);
    result_.difference = static_cast<double>(others) / static_cast<double>(seeds_.size());
    result_.finding =
        fmt::format("{} of {} seeds that were run end, and reach or miss the target, as there",
                    seeds_.size() - others, seeds_.size());
  }

  void curve() {
    const ComparedStrategy* there = compared_row(context_.there, claim().strategy);
    double apart = 0, scale = 0;
    size_t points = 0;
    for (const auto& [i, k] : seeds_) {
      if (!there || i >= there->curves.size() || k >= here_->curves.size()) continue;
      const std::vector<RecordedEvaluation>&was = there->curves[i].points,
            &is = here_->curves[k].points;
      if (was.size() != is.size()) {
        decide(false);
        result_.finding = fmt::format("{} measurements here, {} there", is.size(), was.size());
        return;
      }
      for (size_t point = 0; point < was.size(); ++point) {
        const auto a = is[point].quality, b = was[point].quality;
        if (a.has_value() != b.has_value() || !near_times(is[point], was[point])) {
          decide(false);
          result_.finding = fmt::format("measurement {} of seed {} is of another time", point + 1,
                                        claim().seeds[i]);
          return;
        }
        if (!a) continue;
        apart += std::abs(*a - *b);
        scale += std::abs(*b);
        ++points;
      }
    }
    // Where learning is fast a rounding moves single points far, so it is their mean that counts.
    const double most = exact() ? 0
                                : std::max(tolerance_.absolute * static_cast<double>(points),
                                           tolerance_.share * scale);
    decide(apart <= most);
    result_.difference = scale > 0 ? apart / scale : 0;
    result_.tolerated = scale > 0 ? most / scale : 0;
    result_.finding = apart == 0
                          ? fmt::format("{} measurements, equal", points)
                          : fmt::format("{} measurements, {:.4g} apart on average", points,
                                        apart / static_cast<double>(std::max<size_t>(1, points)));
  }

  bool near_times(const RecordedEvaluation& here, const RecordedEvaluation& there) const {
    if (here.time_s.has_value() != there.time_s.has_value() || here.step != there.step)
      return false;
    return !here.time_s ||
           std::abs(*here.time_s - *there.time_s) <= tolerance_.share * *there.time_s;
  }

  const ClaimContext& context_;
  Tolerance tolerance_;
  const ComparedStrategy* here_;
  SeedPairs seeds_;
  CheckedClaim result_;
};

}  // namespace

void visit(RecordVisitor& v, CheckedClaim& c) {
  v.field("claim", c.claim, "What is claimed");
  std::string word(word_of(c.verdict));
  v.field("verdict", word, "`confirmed`, `not confirmed` or `not checked`");
  c.verdict = value_of(word, c.verdict);
  v.field("finding", c.finding, "What was found here, in words");
  v.field("difference", c.difference, "The largest that was found, as a share of what is claimed");
  v.field("tolerated", c.tolerated, "The same that is tolerated here");
}

CheckedClaim check_claim(const Claim& claim, const ClaimContext& context) {
  return Check(claim, context).result();
}

bool same_arithmetic(const Comparison& there, const Comparison& here) {
  if (!there.machine || !here.machine || !there.versions || !here.versions) return false;
  return there.machine->cpu == here.machine->cpu &&
         json_of(*there.versions) == json_of(*here.versions);
}

}  // namespace tutti
