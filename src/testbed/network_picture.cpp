#include "testbed/network_picture.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "strategies/plan.h"

namespace tutti {
namespace {

using nlohmann::json;

// Role of every rank that is listed, linked or counted.
std::map<int64_t, std::string> roles_of(const std::vector<RecordedNode>& nodes,
                                        const std::vector<RecordedLink>& links, int workers) {
  std::map<int64_t, std::string> roles;
  for (int rank = 0; nodes.empty() && rank < workers; ++rank) roles[rank] = "worker";
  for (const RecordedLink& link : links)
    for (const int64_t end : {link.from, link.to}) roles.emplace(end, "worker");
  for (const RecordedNode& node : nodes)
    roles[node.rank] = node.role.empty() ? "worker" : node.role;
  return roles;
}

// Places for `ranks`, in groups as equal as they can be when there are more than `most`.
void place(const std::vector<int64_t>& ranks, const std::string& role, size_t most, json& places,
           std::map<int64_t, size_t>& place_of) {
  const size_t count = std::min(ranks.size(), std::max<size_t>(1, most));
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = ranks.size() * i / count, end = ranks.size() * (i + 1) / count;
    for (size_t k = begin; k < end; ++k) place_of[ranks[k]] = places.size();
    places.push_back({{"first", ranks[begin]},
                      {"last", ranks[end - 1]},
                      {"count", end - begin},
                      {"role", role}});
  }
}

// Figures of the nodes of a place: sums for what adds up, the mean or the largest for what does
// not.
void add_figures(const std::vector<RecordedNode>& nodes, const std::map<int64_t, size_t>& place_of,
                 json& places) {
  const auto add = [](json& sum, const auto& value) {
    if (value) sum = (sum.is_number() ? sum.get<double>() : 0) + static_cast<double>(*value);
  };
  for (const RecordedNode& node : nodes) {
    json& at = places[place_of.at(node.rank)];
    add(at["bytes_sent"], node.bytes_sent);
    add(at["messages"], node.messages);
    add(at["utilisation"], node.utilisation);
    const auto& memory = node.peak_memory_bytes;
    json& peak = at["peak_memory_bytes"];
    if (memory && (!peak.is_number() || *memory > peak.get<double>())) peak = *memory;
  }
  for (json& at : places)
    if (at.contains("utilisation") && at["utilisation"].is_number())
      at["utilisation"] = at["utilisation"].get<double>() / at["count"].get<double>();
}

}  // namespace

json network_picture(const std::vector<RecordedNode>& nodes, const std::vector<RecordedLink>& links,
                     int workers, size_t most) {
  const std::map<int64_t, std::string> roles = roles_of(nodes, links, workers);
  std::map<std::string, std::vector<int64_t>> ranks_of;
  for (const auto& [rank, role] : roles) ranks_of[role].push_back(rank);
  const bool grouped = roles.size() > most;
  json places = json::array();
  std::map<int64_t, size_t> place_of;
  for (const auto& [role, ranks] : ranks_of) {
    // Half of the picture at most for each role, so that a grouped one has air between its nodes.
    const size_t share = std::max<size_t>(1, role == NodePlan().role ? most / 2 : most / 8);
    place(ranks, role, grouped ? share : ranks.size(), places, place_of);
  }
  add_figures(nodes, place_of, places);
  std::map<std::pair<size_t, size_t>, double> bytes;
  for (const RecordedLink& link : links)
    bytes[{place_of.at(link.from), place_of.at(link.to)}] += static_cast<double>(link.bytes);
  json drawn = json::array();
  for (const auto& [ends, sum] : bytes) drawn.push_back({ends.first, ends.second, sum});
  return {{"nodes", std::move(places)}, {"links", std::move(drawn)}, {"grouped", grouped}};
}

}  // namespace tutti
