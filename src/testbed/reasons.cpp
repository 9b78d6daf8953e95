// What the time of a choice goes into, in sentences that do not contradict each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/units.h"
#include "testbed/choice.h"
#include "testbed/step_simulation.h"

namespace tutti {
namespace {

constexpr double kMost = 0.8;      // of the time: what decides it
constexpr double kMuch = 0.3;      // of the time: worth a word
constexpr double kFullLink = 0.5;  // of the time: the link is what is waited for
constexpr double kSeldom = 0.1;    // of the time: beyond the steps that were looked at

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * std::clamp(share, 0.0, 1.0));
}

// Shares of the time to the target. Those of the steps that were looked at leave out what happens
// only now and then: averages every so many steps, and evaluations.
struct Shares {
  double computes = 0, communicates = 0, waits = 0, seldom = 0, link = 0;
  double passive() const { return communicates + waits; }
};

Shares shares_of(const Choice& choice) {
  const StepFigures& step = choice.step;
  const bool longer = choice.reaches() && choice.step_s() > step.step_s && step.step_s > 0;
  const double part = longer ? step.step_s / choice.step_s() : 1;
  Shares shares;
  shares.computes = part * std::min(1.0, step.compute + step.aggregate);
  shares.communicates = std::min(part - shares.computes, part * step.communicate);
  shares.waits = std::min(part - shares.computes - shares.communicates, part * step.wait);
  shares.seldom = 1 - part;
  shares.link = std::min(1.0, part * step.busiest_link);
  return shares;
}

// Nodes that are not alike end their computations one after the other.
bool is_uneven(const ClusterConfig& cluster) {
  const auto differ = [](const auto& values) {
    return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end();
  };
  return !cluster.stragglers.empty() || differ(cluster.speed_factors) ||
         differ(cluster.thread_counts);
}

std::string waiting(const Choice& choice, const Shares& shares) {
  if (shares.waits < kMuch) return "";
  return fmt::format(
      "; nodes wait {} of the time for {}", percent(shares.waits),
      is_uneven(choice.job.cluster) ? "slower nodes or for messages" : "messages of others");
}

// One machine has no links that its workers use.
std::string links(const Choice& choice, const Shares& shares) {
  if (hosts_of(choice.job.cluster, choice.step.nodes) == 1) return " within its machine";
  return shares.link < 0.005 ? ", although the links are hardly used"
                             : ", although no link is busy more than " + percent(shares.link);
}

std::string where_time_goes(const Choice& choice) {
  const StepFigures& step = choice.step;
  const Shares shares = shares_of(choice);
  if (shares.seldom > kSeldom) {
    const auto computes = std::lround(100 * shares.computes);
    const auto passive = std::lround(100 * shares.passive());
    return fmt::format(
        "computes {} % of the time, communicates or waits {} %; the other {} % are what happens "
        "only every so many steps, such as averages and evaluations",
        computes, passive, 100 - computes - passive);
  }
  if (shares.link > kFullLink)
    return fmt::format(
        "{}the link of node {} is busy {} {} of the time{}",
        shares.computes > kFullLink
            ? fmt::format("computes {} of the time; meanwhile ", percent(shares.computes))
            : "",
        step.busiest_node, step.busiest_receives ? "receiving" : "sending", percent(shares.link),
        shares.waits > kMuch ? ", and the others wait for it" : "");
  if (shares.computes > kMost)
    return fmt::format("computes {} of the time: the network hardly matters",
                       percent(shares.computes));
  if (shares.passive() > kMuch && step.messages > 0)
    return fmt::format("communicates or waits {} of the time, with {:.3g} message{} a step{}{}",
                       percent(shares.passive()), step.messages, step.messages == 1 ? "" : "s",
                       links(choice, shares), waiting(choice, shares));
  return fmt::format("computes {}, communicates {}, waits {}", percent(shares.computes),
                     percent(shares.communicates), percent(shares.waits));
}

std::string what_it_missed(const Choice& choice) {
  const Learning& learning = choice.learning;
  const int64_t epochs = choice.job.task.epochs;
  const std::string within = fmt::format("in {} epoch{}", epochs, epochs == 1 ? "" : "s");
  if (!choice.reaches() && !learning.failure.empty()) return learning.failure;
  if (!choice.reaches() && learning.runs > 0)
    return fmt::format("the target was not reached {} (best {:.4g})", within,
                       learning.best_quality);
  if (!choice.assumed.empty() || choice.always_reaches()) return "";
  return fmt::format("{} of {} seeds missed the target {}{}", learning.runs - learning.reached,
                     learning.runs, within,
                     learning.failure.empty() ? "" : ": " + learning.failure);
}

}  // namespace

std::vector<std::string> reasons(const Choice& choice) {
  std::vector<std::string> text = {where_time_goes(choice)};
  if (const std::string missed = what_it_missed(choice); !missed.empty()) text.push_back(missed);
  if (!choice.fits)
    text.push_back(fmt::format("needs {} on a node of {}",
                               human_quantity(choice.memory_bytes, Unit::kBytes),
                               human_quantity(choice.job.cluster.memory_bytes, Unit::kBytes)));
  if (!choice.left_out.empty()) text.push_back(choice.left_out);
  return text;
}

}  // namespace tutti
