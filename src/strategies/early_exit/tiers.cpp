#include "strategies/early_exit/tiers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "models/branches.h"
#include "models/builder.h"
#include "models/stage.h"
#include "strategies/pipeline/stage_costs.h"

namespace tutti {
namespace {

size_t head_parameters(const Tiers& tiers, Rank rank) {
  const auto head = tiers.head_of(rank);
  return head ? head->parameters(tiers.classes) : 0;
}

// What a sample that goes all the way takes: arithmetic on each tier, and the way between them
// (as Kang et al., "Neurosurgeon", 2017).
double seconds_through(const std::vector<Range>& layers, const EarlyExitConfig& config,
                       const PlanInput& input) {
  double seconds = 0;
  for (size_t tier = 0; tier < layers.size(); ++tier) {
    const Architecture own = stage_of(input.architecture, layers[tier]);
    const auto rank =
        static_cast<Rank>(tier == 0 ? 0 : config.devices + static_cast<int64_t>(tier) - 1);
    seconds += own.forward_flops() / speed_of(input.cluster, rank) +
               overhead_of(input.cluster, rank, 1, static_cast<double>(own.layers.size()));
    if (tier + 1 < layers.size())
      seconds += static_cast<double>(output_values(own)) * static_cast<double>(config.bits) / 8 /
                 shared_bandwidth(input.cluster, 1);
  }
  return seconds;
}

std::vector<Range> fastest_layers(const EarlyExitConfig& config, const PlanInput& input,
                                  size_t tiers) {
  const std::vector<size_t> cuts = input.architecture.cuts();
  std::vector<Range> best;
  double best_s = std::numeric_limits<double>::infinity();
  // Every choice of tiers - 1 of the cuts, as a mask.
  std::vector<bool> chosen(cuts.size(), false);
  std::fill(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(tiers - 1), true);
  do {
    std::vector<size_t> trial;
    for (size_t i = 0; i < cuts.size(); ++i)
      if (chosen[i]) trial.push_back(cuts[i]);
    const std::vector<Range> layers = stages_between(input.architecture, trial);
    const double seconds = seconds_through(layers, config, input);
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

Rank Tiers::exit_rank(size_t tier, size_t chunk) const {
  if (tier > 0) return rank_of(tier);
  return static_cast<Rank>(views ? devices : chunk % devices);
}

std::vector<Range> Tiers::layers_of(Rank rank) const {
  if (is_aggregator(rank)) return {};
  const size_t tier = tier_of(rank);
  if (tier > 0 || !views) return {layers[tier]};
  const size_t first = static_cast<size_t>(rank) * layers[0].size();
  return {{first, first + layers[0].size()}};
}

// Tiers above the devices have the same names and numbers as when devices see whole samples.
std::vector<HeadPlace> Tiers::heads() const {
  std::vector<HeadPlace> heads;
  const auto further = static_cast<uint32_t>(size());
  for (size_t device = 0; views && device < devices; ++device)
    heads.push_back({fmt::format("device{}.exit0", device), static_cast<Rank>(device), values[0],
                     device == 0 ? 0 : further + static_cast<uint32_t>(device)});
  if (views && fuse_scores == Fuse::kConcat)
    heads.push_back({"exit0", static_cast<Rank>(devices), devices * classes,
                     further + static_cast<uint32_t>(devices)});
  for (size_t tier = views ? 1 : 0; tier + 1 < size(); ++tier)
    heads.push_back(
        {fmt::format("exit{}", tier), rank_of(tier), values[tier], static_cast<uint32_t>(tier)});
  return heads;
}

std::optional<HeadPlace> Tiers::head_of(Rank rank) const {
  const bool replica = !views && tier_of(rank) == 0;  // of the first device
  for (HeadPlace& head : heads())
    if (head.rank == (replica ? 0 : rank)) return head;
  return std::nullopt;
}

std::vector<Rank> Tiers::devices_and_aggregator() const {
  std::vector<Rank> ranks = ranks_of(0);
  if (views) ranks.push_back(static_cast<Rank>(devices));
  return ranks;
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
  if (views) {  // scores go to the aggregator, which tells the cloud and all devices
    const auto count = static_cast<double>(devices);
    costs.answer_bytes[0] = count * score_bytes() + (count + 1) * costs.answer_bytes[0];
    costs.forward_bytes[0] *= count;
  }
  return costs;
}

namespace {

void require_classes(const PlanInput& input) {
  const Architecture& whole = input.architecture;
  if (whole.classification && whole.positions == 1) return;
  throw ConfigError(
      "task.model",
      fmt::format("strategy.kind = \"early_exit\" asks how certain a class is, but "
                  "task.model = \"{}\" predicts {}; use a classification with one "
                  "answer for each sample",
                  input.task.model.kind(),
                  whole.classification ? "at every position" : "a number"));
}

std::vector<Range> layers_of_tiers(const EarlyExitConfig& config, const PlanInput& input,
                                   size_t count) {
  const Architecture& whole = input.architecture;
  if (!sees_parts(config))
    return config.cuts.empty() ? fastest_layers(config, input, count)
                               : given_stages(whole, whole.cuts(), config.cuts, "strategy.cuts");
  // arrange_tiers() has put the copies of all devices first, then the rest.
  const auto own = static_cast<size_t>(config.cuts[0]);
  TUTTI_CHECK(whole.branches.size() == static_cast<size_t>(config.devices));
  std::vector<Range> layers = {{0, own}};
  const size_t more = (whole.branches.size() - 1) * own;
  for (size_t i = 0; i < config.cuts.size(); ++i)
    layers.push_back({static_cast<size_t>(config.cuts[i]) + more,
                      i + 1 < config.cuts.size() ? static_cast<size_t>(config.cuts[i + 1]) + more
                                                 : whole.layers.size()});
  return layers;
}

}  // namespace

Architecture arrange_tiers(const EarlyExitConfig& config, const PlanInput& input) {
  const Architecture& whole = input.architecture;
  if (!sees_parts(config)) return whole;
  require_classes(input);
  given_stages(whole, whole.cuts(), config.cuts, "strategy.cuts");
  const Views views(whole.input, static_cast<size_t>(config.devices));
  const Fuse how = config.fuse_features;
  BranchPlan branches{
      .cut = static_cast<size_t>(config.cuts[0]),
      .names = {},
      .view = views.shape(),
      .fused = [&](const std::vector<int64_t>& part) { return fused_shape(how, views, part); }};
  for (int64_t device = 0; device < config.devices; ++device)
    branches.names.push_back(fmt::format("device{}", device));
  try {
    return branched(whole, branches);
  } catch (const ConfigError& error) {
    throw ConfigError(
        "strategy.views",
        fmt::format("strategy.views = \"parts\" with strategy.devices = {} and "
                    "strategy.fuse_features = \"{}\": a device sees [{}] of a sample of [{}], and "
                    "the layers of task.model do not fit that, or what is fused ({}); use fewer "
                    "devices, other strategy.cuts, concat, or a model that keeps sizes (resnet20)",
                    config.devices, word_of(config.fuse_features), fmt::join(views.shape(), ", "),
                    fmt::join(whole.input, ", "), error.what()));
  }
}

Tiers place_tiers(const EarlyExitConfig& config, const PlanInput& input) {
  const Architecture& whole = input.architecture;
  require_classes(input);
  const auto count = static_cast<size_t>(tiers_of(config, input.cluster));
  if (whole.cuts().size() + 1 < count)
    throw ConfigError("strategy.kind",
                      fmt::format("strategy.kind = \"early_exit\" needs {} tiers here, but "
                                  "task.model = \"{}\" has at most {}: it can be cut {}; use fewer "
                                  "workers or a deeper model",
                                  count, input.task.model.kind(), whole.cuts().size() + 1,
                                  cuts_in_words(whole, whole.cuts())));
  Tiers tiers;
  tiers.devices = static_cast<size_t>(config.devices);
  tiers.classes = static_cast<size_t>(whole.outputs);
  // Images are stored as a byte for each pixel and colour, everything else as floats.
  tiers.raw_bytes = static_cast<size_t>(elements(whole.input)) *
                    (whole.input.size() == 3 ? sizeof(uint8_t) : sizeof(float));
  tiers.layers = layers_of_tiers(config, input, count);
  if (sees_parts(config)) tiers.views.emplace(whole.input, tiers.devices);
  tiers.fuse_scores = config.fuse_scores;
  tiers.fuse_features = config.fuse_features;
  tiers.weights = config.exit_weights;
  if (tiers.weights.empty()) tiers.weights.assign(count, 1.0);
  for (size_t tier = 0; tier + 1 < count; ++tier) {
    const Architecture own = stage_of(whole, tiers.layers[tier]);
    tiers.values.push_back(output_values(own));
    if (tier == 0) tiers.features = own.layers.back().output;
    tiers.codes.emplace_back(tiers.values.back(), config.bits, may_be_negative(own.layers));
  }
  return tiers;
}

namespace {

std::string explain_views(const EarlyExitConfig& config, const Tiers& tiers) {
  return fmt::format(
      "each of {} devices sees [{}] of every sample and has parameters of its own; the aggregator "
      "on rank {} fuses their scores by {} ({} bytes of each device), the next tier what they pass "
      "on by {}",
      tiers.devices, fmt::join(tiers.views->shape(), ", "), tiers.devices,
      word_of(config.fuse_scores), tiers.score_bytes(), word_of(config.fuse_features));
}

}  // namespace

std::vector<std::string> explain_tiers(const Tiers& tiers, const EarlyExitConfig& config,
                                       const PlanInput& input) {
  std::vector<std::string> lines;
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    const Architecture own = stage_of(input.architecture, tiers.layers[tier]);
    std::string line = fmt::format(
        "{} on rank {}{}: layers {} to {} ({} to {}), {:.3g} % of the arithmetic, {} parameters",
        tier_name(tiers, tier), tiers.rank_of(tier),
        tier == 0 && tiers.devices > 1 ? fmt::format(" to {}", tiers.devices - 1) : "",
        tiers.layers[tier].begin, tiers.layers[tier].end - 1, own.layers.front().name,
        own.layers.back().name, 100 * own.forward_flops() / input.architecture.forward_flops(),
        own.parameter_count);
    if (tier + 1 < tiers.size())
      line += fmt::format("; exit of {} parameters; passes on {} values of {} bits, {} bytes",
                          head_parameters(tiers, tiers.rank_of(tier)), tiers.values[tier],
                          config.bits, tiers.codes[tier].sample_bytes());
    lines.push_back(std::move(line));
    if (tier == 0 && tiers.views) lines.push_back(explain_views(config, tiers));
  }
  const ExitCosts costs = tiers.costs();
  lines.push_back(fmt::format(
      "a sample that nobody answers early sends {} bytes, one sent to the cloud as it is {}",
      std::accumulate(costs.answer_bytes.begin(), costs.answer_bytes.end(), 0.0) +
          std::accumulate(costs.forward_bytes.begin(), costs.forward_bytes.end(), 0.0),
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
                    1e3 * seconds_through(tiers.layers, config, input),
                    cuts_in_words(input.architecture, input.architecture.cuts())));
  return lines;
}

}  // namespace tutti
