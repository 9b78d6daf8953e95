#include "jobs/plan_json.h"

#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using nlohmann::json;

json ranges_json(const std::vector<Range>& ranges) {
  json list = json::array();
  for (const Range range : ranges) list.push_back({range.begin, range.end});
  return list;
}

json fact_json(const Fact& fact) {
  if (const auto* ranges = std::get_if<std::vector<Range>>(&fact)) return ranges_json(*ranges);
  return std::visit(
      [](const auto& value) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::vector<Range>>)
          return {};
        else
          return value;
      },
      fact);
}

const char* name_of(RowUse rows) {
  switch (rows) {
    case RowUse::kAll:
      return "all";
    case RowUse::kTouched:
      return "touched";
    case RowUse::kSpread:
      return "spread";
  }
  return "";
}

const char* name_of(Sharing sharing) {
  switch (sharing) {
    case Sharing::kNone:
      return "none";
    case Sharing::kGradients:
      return "needed";
    case Sharing::kIfPossible:
      return "if possible";
  }
  return "";
}

json node_json(const NodePlan& node) {
  return {{"role", node.role},
          {"layers", ranges_json(node.layers)},
          {"model", node.has_model},
          {"window_bytes", node.window_bytes},
          {"memory_bytes", node.memory_bytes},
          {"bytes_sent_per_step", node.bytes_sent},
          {"messages_per_step", node.messages},
          {"may_be_lost", node.may_be_lost}};
}

}  // namespace

std::span<const TaxonomyPart> taxonomy_parts() {
  static constexpr TaxonomyPart kParts[] = {
      {"structure", [](const Taxonomy& t) { return t.structure; }},
      {"parallelism", [](const Taxonomy& t) { return t.parallelism; }},
      {"optimisation", [](const Taxonomy& t) { return t.optimisation; }},
      {"timing", [](const Taxonomy& t) { return word_of(t.timing); }},
      {"pattern", [](const Taxonomy& t) { return t.pattern; }},
      {"data", [](const Taxonomy& t) { return t.data; }},
      {"stragglers", [](const Taxonomy& t) { return t.stragglers; }},
      {"communication", [](const Taxonomy& t) { return t.communication; }},
      {"computation", [](const Taxonomy& t) { return t.computation; }}};
  return kParts;
}

json to_json(const Taxonomy& taxonomy) {
  json object = json::object();
  for (const TaxonomyPart& part : taxonomy_parts()) object[part.name] = part.word(taxonomy);
  return object;
}

json to_json(const Plan& plan) {
  json nodes = json::array(), own = json::object(), role_settings = json::object();
  for (const NodePlan& node : plan.nodes) nodes.push_back(node_json(node));
  for (const auto& [role, setting] : plan.role_settings) role_settings[role] = setting;
  for (const auto& [name, fact] : plan.facts) own[name] = fact_json(fact);
  return {{"epoch", plan.epoch},
          {"taxonomy", to_json(plan.taxonomy)},
          {"equivalence", plan.equivalence},
          {"workers", plan.workers},
          {"nodes", nodes},
          {"role_settings", role_settings},
          {"recorder", plan.recorder},
          {"steps", plan.steps},
          {"samples", plan.samples},
          {"settling_steps", plan.settling_steps},
          {"recurs_every", plan.recurs_every},
          {"resumed", {{"steps", plan.resumed.steps}, {"samples", plan.resumed.samples}}},
          {"rows", name_of(plan.rows)},
          {"shared_memory", name_of(plan.sharing)},
          {"gradients_shared", plan.gradients_shared},
          {"keeps", plan.keeps},
          {"in_words", plan.in_words},
          {"reasons", plan.reasons},
          {"decided", plan.decided},
          {"own", own}};
}

}  // namespace tutti
