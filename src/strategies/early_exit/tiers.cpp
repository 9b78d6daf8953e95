#include "strategies/early_exit/tiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "collectives/topology.h"
#include "core/error.h"
#include "models/builder.h"
#include "models/exit_head.h"
#include "models/stage.h"
#include "strategies/parameter_layout.h"
#include "strategies/pipeline/stage_costs.h"

namespace tutti {
namespace {

double bytes_of_floats(size_t count) { return static_cast<double>(count * sizeof(float)); }

double share_of(const Tiers& tiers, const Plan& plan, size_t tier) {
  const int64_t parts = tier == 0 ? static_cast<int64_t>(tiers.devices) : 1;
  const int64_t samples = (plan.task.global_batch + parts - 1) / parts;
  return static_cast<double>(samples);
}

size_t head_parameters(const Tiers& tiers, size_t tier) {
  return tier + 1 < tiers.size() ? (tiers.values[tier] + 1) * tiers.classes : 0;
}

// What a sample that goes all the way takes: arithmetic on each tier, and the way between them
// (as Kang et al., "Neurosurgeon", 2017).
double seconds_through(const std::vector<Range>& layers, const EarlyExitConfig& config,
                       const Plan& plan) {
  double seconds = 0;
  for (size_t tier = 0; tier < layers.size(); ++tier) {
    const Architecture own = stage_of(plan.architecture, layers[tier]);
    const auto rank =
        static_cast<Rank>(tier == 0 ? 0 : config.devices + static_cast<int64_t>(tier) - 1);
    seconds += own.forward_flops() / speed_of(plan.cluster, rank) +
               overhead_of(plan.cluster, rank, 1, static_cast<double>(own.layers.size()));
    if (tier + 1 < layers.size())
      seconds += static_cast<double>(output_values(own)) * static_cast<double>(config.bits) / 8 /
                 shared_bandwidth(plan.cluster, 1);
  }
  return seconds;
}

std::vector<Range> fastest_layers(const EarlyExitConfig& config, const Plan& plan, size_t tiers) {
  const std::vector<size_t> cuts = plan.architecture.cuts();
  std::vector<Range> best;
  double best_s = std::numeric_limits<double>::infinity();
  // Every choice of tiers - 1 of the cuts, as a mask.
  std::vector<bool> chosen(cuts.size(), false);
  std::fill(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(tiers - 1), true);
  do {
    std::vector<size_t> trial;
    for (size_t i = 0; i < cuts.size(); ++i)
      if (chosen[i]) trial.push_back(cuts[i]);
    const std::vector<Range> layers = stages_between(plan.architecture, trial);
    const double seconds = seconds_through(layers, config, plan);
    if (seconds < best_s) {
      best_s = seconds;
      best = layers;
    }
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return best;
}

}  // namespace

std::string tier_name(const Tiers& tiers, size_t tier) {
  if (tier == 0) return "device";
  return tier + 1 == tiers.size() ? "cloud" : "edge";
}

std::vector<Rank> Tiers::ranks_of(size_t tier) const {
  if (tier > 0) return {rank_of(tier)};
  std::vector<Rank> ranks;
  for (size_t device = 0; device < devices; ++device) ranks.push_back(static_cast<Rank>(device));
  return ranks;
}

ExitCosts Tiers::costs() const {
  ExitCosts costs;
  for (const ActivationCode& code : codes) {
    costs.answer_bytes.push_back(static_cast<double>(answer_bytes()));
    costs.forward_bytes.push_back(static_cast<double>(code.sample_bytes()));
  }
  return costs;
}

Tiers place_tiers(const EarlyExitConfig& config, const Plan& plan) {
  const Architecture& whole = plan.architecture;
  if (!whole.classification || whole.positions != 1)
    throw ConfigError(
        "task.model",
        fmt::format("strategy.kind = \"early_exit\" asks how certain a class is, but "
                    "task.model = \"{}\" predicts {}; use a classification with one "
                    "answer for each sample",
                    plan.task.model.kind, whole.classification ? "at every position" : "a number"));
  const auto count = static_cast<size_t>(plan.cluster.workers - config.devices + 1);
  if (whole.cuts().size() + 1 < count)
    throw ConfigError("strategy.kind",
                      fmt::format("strategy.kind = \"early_exit\" needs {} tiers here, but "
                                  "task.model = \"{}\" has at most {}: it can be cut {}; use fewer "
                                  "workers or a deeper model",
                                  count, plan.task.model.kind, whole.cuts().size() + 1,
                                  cuts_in_words(whole, whole.cuts())));
  Tiers tiers;
  tiers.devices = static_cast<size_t>(config.devices);
  tiers.classes = static_cast<size_t>(whole.outputs);
  // Images are stored as a byte for each pixel and colour, everything else as floats.
  tiers.raw_bytes = static_cast<size_t>(elements(whole.input)) *
                    (whole.input.size() == 3 ? sizeof(uint8_t) : sizeof(float));
  tiers.layers = config.cuts.empty()
                     ? fastest_layers(config, plan, count)
                     : given_stages(whole, whole.cuts(), config.cuts, "strategy.cuts");
  tiers.weights = config.exit_weights;
  if (tiers.weights.empty()) tiers.weights.assign(count, 1.0);
  for (size_t tier = 0; tier + 1 < count; ++tier) {
    const Architecture own = stage_of(whole, tiers.layers[tier]);
    tiers.values.push_back(output_values(own));
    tiers.codes.emplace_back(tiers.values.back(), config.bits, may_be_negative(own.layers));
  }
  return tiers;
}

Layout head_layout(const Tiers& tiers, size_t tier) {
  if (tier + 1 >= tiers.size()) return 0;
  const auto values = static_cast<int64_t>(tiers.values[tier]);
  const auto classes = static_cast<int64_t>(tiers.classes);
  const size_t weights = tiers.values[tier] * tiers.classes, all = head_parameters(tiers, tier);
  return {all, {{{values, classes}, {0, weights}}, {{classes}, {weights, all}}}};
}

StepCost tier_traffic(const Tiers& tiers, const Plan& plan, Rank rank) {
  const size_t tier = tiers.tier_of(rank);
  const bool last = tier + 1 == tiers.size();
  const double samples = share_of(tiers, plan, tier);
  StepCost cost;
  if (!last) {  // what goes on, and the loss of this exit
    cost.bytes_sent +=
        samples * static_cast<double>(tiers.codes[tier].sample_bytes()) + sizeof(double);
    cost.messages += 2;
  } else {
    const auto others = static_cast<double>(plan.cluster.workers - 1);
    cost.bytes_sent += others * sizeof(double);
    cost.messages += others;
  }
  if (tier > 0) {  // the gradients back
    cost.bytes_sent += samples * bytes_of_floats(tiers.values[tier - 1]);
    cost.messages += tier == 1 ? static_cast<double>(tiers.devices) : 1;
  } else if (tiers.devices > 1) {
    const size_t count =
        stage_of(plan.architecture, tiers.layers[0]).parameter_count + head_parameters(tiers, 0);
    const Volume volume = volume_sent(
        ring({.ranks = tiers.ranks_of(0), .index = static_cast<size_t>(rank), .racks = {}}, count));
    cost.bytes_sent += bytes_of_floats(volume.elements);
    cost.messages += static_cast<double>(volume.messages);
    cost.extra_memory += bytes_of_floats(count);
  }
  return cost;
}

double tier_memory(const Tiers& tiers, const Plan& plan, Rank rank) {
  const size_t tier = tiers.tier_of(rank);
  const Architecture own = stage_of(plan.architecture, tiers.layers[tier]);
  const size_t head = head_parameters(tiers, tier);
  const double samples = share_of(tiers, plan, tier);
  double bytes = 2 * bytes_of_floats(own.parameter_count + head) +
                 samples * own.activation_bytes() + tier_traffic(tiers, plan, rank).extra_memory;
  bytes += sizeof(float) * (optimizer_cost(plan.optimizer, layout_of(own)).values +
                            optimizer_cost(plan.optimizer, head_layout(tiers, tier)).values);
  // What comes in and goes out, with the gradients that come back.
  if (tier > 0) bytes += 2 * samples * bytes_of_floats(tiers.values[tier - 1]);
  if (head > 0) bytes += 3 * samples * bytes_of_floats(tiers.values[tier]);
  if (rank == 0)  // gathers the parameters of all at the end
    bytes += bytes_of_floats(plan.architecture.parameter_count - own.parameter_count);
  return bytes;
}

std::vector<std::string> explain_tiers(const EarlyExitConfig& config, const Plan& plan) {
  const Tiers tiers = place_tiers(config, plan);
  std::vector<std::string> lines;
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    const Architecture own = stage_of(plan.architecture, tiers.layers[tier]);
    std::string line = fmt::format(
        "{} on rank {}{}: layers {} to {} ({} to {}), {:.3g} % of the arithmetic, {} parameters",
        tier_name(tiers, tier), tiers.rank_of(tier),
        tier == 0 && tiers.devices > 1 ? fmt::format(" to {}", tiers.devices - 1) : "",
        tiers.layers[tier].begin, tiers.layers[tier].end - 1, own.layers.front().name,
        own.layers.back().name, 100 * own.forward_flops() / plan.architecture.forward_flops(),
        own.parameter_count);
    if (tier + 1 < tiers.size())
      line += fmt::format("; exit of {} parameters; passes on {} values of {} bits, {} bytes",
                          head_parameters(tiers, tier), tiers.values[tier], config.bits,
                          tiers.codes[tier].sample_bytes());
    lines.push_back(std::move(line));
  }
  lines.push_back(fmt::format(
      "a sample that nobody answers early sends {} bytes, one sent to the cloud as it is {}",
      [&] {
        size_t bytes = 0;
        for (const ActivationCode& code : tiers.codes)
          bytes += code.sample_bytes() + tiers.answer_bytes();
        return bytes;
      }(),
      tiers.raw_bytes));
  lines.push_back(config.thresholds.empty()
                      ? fmt::format("thresholds are chosen on validation, at a loss of at most {} "
                                    "in accuracy",
                                    config.tolerance)
                      : fmt::format("thresholds {}", fmt::join(config.thresholds, ", ")));
  if (config.cuts.empty())
    lines.push_back(
        fmt::format("cut where a sample that goes all the way takes the least time, {:.3g} ms; it "
                    "can be cut {}",
                    1e3 * seconds_through(tiers.layers, config, plan),
                    cuts_in_words(plan.architecture, plan.architecture.cuts())));
  return lines;
}

}  // namespace tutti
