#include "strategies/early_exit/exit_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/shallow_json.h"
#include "strategies/early_exit/exit_node.h"

namespace tutti {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& problem) {
  throw DataError(fmt::format(
      "exits.safetensors: {}; it is not that of this run, or it is damaged: train the run again",
      problem));
}

const Parameter& tensor_named(const Attachment& attachment, const std::string& name,
                              const std::vector<int64_t>& shape) {
  for (const Parameter& tensor : attachment.tensors.parameters)
    if (tensor.name == name && tensor.shape == shape) return tensor;
  refuse(fmt::format("it has no tensor '{}' of the right shape", name));
}

std::vector<float> rounded(const ActivationCode& code, std::span<const float> values) {
  std::vector<std::byte> wire(values.size() / code.values() * code.sample_bytes());
  std::vector<float> result(values.size());
  code.encode(values, wire);
  code.decode(wire, result);
  return result;
}

}  // namespace

Attachment attach_exits(const Tiers& tiers, std::span<const float> exits,
                        const std::vector<double>& thresholds) {
  Attachment result;
  std::vector<size_t> cuts;
  const size_t copies = tiers.views ? (tiers.devices - 1) * tiers.layers[0].size() : 0;
  for (size_t tier = 1; tier < tiers.size(); ++tier)
    cuts.push_back(tiers.layers[tier].begin - copies);
  result.about =
      json({{"version", kExitsVersion}, {"cuts", cuts}, {"thresholds", thresholds}}).dump();
  const size_t classes = tiers.classes;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    result.tensors.parameters.push_back(
        {.name = name,
         .shape = std::move(shape),
         .range = {result.tensors.parameter_count, result.values.size()}});
    result.tensors.parameter_count = result.values.size();
  };
  for (const HeadPlace& head : tiers.heads()) {
    const auto width = static_cast<int64_t>(classes);
    for (size_t c = 0; c < classes; ++c)
      for (size_t k = 0; k < head.values; ++k) result.values.push_back(exits[k * classes + c]);
    add(head.name + ".weight", {width, static_cast<int64_t>(head.values)});
    const auto biases = exits.subspan(head.values * classes, classes);
    result.values.insert(result.values.end(), biases.begin(), biases.end());
    add(head.name + ".bias", {width});
    exits = exits.subspan(head.parameters(classes));
  }
  return result;
}

KeptExits read_exits(const Attachment& attachment) {
  const json about = parse_shallow_json(attachment.about);
  if (!about.is_object() || !about.contains("version")) refuse("it does not say what it is");
  if (about["version"] != kExitsVersion)
    refuse(fmt::format("its form is version {}, and this program knows {}", about["version"].dump(),
                       kExitsVersion));
  try {
    return {.cuts = about.at("cuts").get<std::vector<int64_t>>(),
            .thresholds = about.at("thresholds").get<std::vector<double>>()};
  } catch (const json::exception&) {
    refuse("it lacks cuts or thresholds");
  }
}

ExitNetwork::ExitNetwork(Model& model, Tiers tiers, const Attachment& attachment,
                         std::vector<double> thresholds)
    : tiers_(std::move(tiers)), thresholds_(std::move(thresholds)) {
  if (thresholds_.size() + 1 != tiers_.size()) refuse("it has thresholds for other tiers");
  for (const Rank device : tiers_.views ? tiers_.ranks_of(0) : std::vector<Rank>{0})
    devices_.push_back(model.stage(tiers_.layers_of(device)[0]));
  for (size_t tier = 1; tier < tiers_.size(); ++tier)
    tiers_above_.push_back(model.stage(tiers_.layers[tier]));
  for (const HeadPlace& place : tiers_.heads()) heads_.push_back(read_head(place, attachment));
}

ExitHead ExitNetwork::read_head(const HeadPlace& place, const Attachment& attachment) const {
  const size_t classes = tiers_.classes;
  const auto width = static_cast<int64_t>(classes), values = static_cast<int64_t>(place.values);
  const Parameter& weight = tensor_named(attachment, place.name + ".weight", {width, values});
  const Parameter& bias = tensor_named(attachment, place.name + ".bias", {width});
  ExitHead head(place.values, classes, 0, 0, Arithmetic(false));
  for (size_t c = 0; c < classes; ++c)
    for (size_t k = 0; k < place.values; ++k)
      head.parameters()[k * classes + c] =
          attachment.values[weight.range.begin + c * place.values + k];
  std::copy_n(attachment.values.begin() + static_cast<ptrdiff_t>(bias.range.begin), classes,
              head.parameters().begin() + values * width);
  return head;
}

ExitNetwork::Exit ExitNetwork::leave(std::span<const float> output, ExitHead& head, size_t tier) {
  const std::span<const float> scores = head.forward(output);
  return {.scores = {scores.begin(), scores.end()},
          .features = rounded(tiers_.codes[tier], output)};
}

ExitNetwork::Exit ExitNetwork::pass_devices(const Batch& batch) {
  if (!tiers_.views) return leave(devices_[0]->forward(0, batch, {}, {}), heads_[0], 0);
  std::vector<std::vector<float>> scores, features;
  for (size_t device = 0; device < devices_.size(); ++device) {
    Batch view;
    view.features = tiers_.views->cut(device, batch.features);
    view.samples = batch.samples;
    Exit own = leave(devices_[device]->forward(0, view, {}, {}), heads_[device], 0);
    scores.push_back(std::move(own.scores));
    features.push_back(std::move(own.features));
  }
  Exit result;
  Fusion(tiers_.fuse_scores, *tiers_.views, {static_cast<int64_t>(tiers_.classes)})
      .forward(scores, result.scores);
  if (tiers_.fuse_scores == Fuse::kConcat) {
    const auto fused = heads_[devices_.size()].forward(result.scores);
    result.scores.assign(fused.begin(), fused.end());
  }
  Fusion(tiers_.fuse_features, *tiers_.views, tiers_.features).forward(features, result.features);
  return result;
}

ExitNetwork::Exit ExitNetwork::pass_tier(size_t tier, std::span<const float> input,
                                         size_t samples) {
  Batch batch;
  batch.samples.assign(samples, 0);  // only the number of samples matters here
  const auto output = tiers_above_[tier - 1]->forward(0, batch, input, {});
  if (tier + 1 == tiers_.size()) return {.scores = {output.begin(), output.end()}, .features = {}};
  // The heads of the tiers above the devices are the last ones.
  return leave(output, heads_[heads_.size() - (tiers_.size() - 1) + tier], tier);
}

std::vector<std::vector<float>> ExitNetwork::scores(const Batch& batch) {
  std::vector<std::vector<float>> result;
  Exit exit = pass_devices(batch);
  result.push_back(exit.scores);
  for (size_t tier = 1; tier < tiers_.size(); ++tier) {
    exit = pass_tier(tier, exit.features, batch.size());
    result.push_back(exit.scores);
  }
  return result;
}

Answerer::Answers ExitNetwork::answer(const Batch& batch) {
  const size_t classes = tiers_.classes;
  Answers result{.scores = std::vector<float>(batch.size() * classes),
                 .by = std::vector<std::string>(batch.size())};
  std::vector<size_t> open(batch.size());
  for (size_t i = 0; i < open.size(); ++i) open[i] = i;
  Exit exit;
  std::vector<float> going_on;
  for (size_t tier = 0; tier < tiers_.size() && !open.empty(); ++tier) {
    exit = tier == 0 ? pass_devices(batch) : pass_tier(tier, going_on, open.size());
    const bool last = tier + 1 == tiers_.size();
    const size_t values = exit.features.size() / open.size();
    std::vector<size_t> still_open;
    going_on.clear();
    for (size_t i = 0; i < open.size(); ++i) {
      const auto own = std::span<const float>(exit.scores).subspan(i * classes, classes);
      if (!last && answer_of(own, thresholds_[tier]) == kGoesOn) {
        const auto features = std::span<const float>(exit.features).subspan(i * values, values);
        going_on.insert(going_on.end(), features.begin(), features.end());
        still_open.push_back(open[i]);
        continue;
      }
      std::copy(own.begin(), own.end(),
                result.scores.begin() + static_cast<ptrdiff_t>(open[i] * classes));
      result.by[open[i]] = tier_name(tiers_, tier);
    }
    open = std::move(still_open);
  }
  return result;
}

}  // namespace tutti
