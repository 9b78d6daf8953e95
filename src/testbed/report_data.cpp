#include "testbed/report_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "testbed/json_members.h"
#include "testbed/network_picture.h"
#include "testbed/thin.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double kMostDrawn = 1e6;  // a damaged count must not ask for all the memory

// Seven significant digits are more than a screen shows, and half the size of the page.
json rounded(const json& value) {
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  if (!std::isfinite(number)) return json();
  if (number == 0) return 0;
  const double unit = std::pow(10.0, 6 - std::floor(std::log10(std::fabs(number))));
  const double result = std::round(number * unit) / unit;
  return std::isfinite(result) ? json(result) : value;
}

struct Thinning {
  size_t most;               // per series
  size_t had = 0, kept = 0;  // points of all series

  std::vector<size_t> operator()(const std::vector<double>& values) {
    std::vector<size_t> result = thin(values, most);
    had += values.size();
    kept += result.size();
    return result;
  }
};

// Evaluations of one run as columns. Thinned by quality: that is what is drawn.
json curve_columns(const json& curve, Thinning& thinning) {
  const json& points = list_member(curve, "points");
  std::vector<double> qualities;
  for (const json& point : points) qualities.push_back(number_of(member(point, "quality")));
  json columns = {{"seed", member(curve, "seed")}};
  const std::vector<size_t> kept = thinning(qualities);
  for (const char* key : {"step", "samples", "time_s", "bytes", "loss", "quality"}) {
    json& column = columns[key] = json::array();
    for (const size_t i : kept) column.push_back(rounded(member(points[i], key)));
  }
  return columns;
}

json series_columns(const json& series, Thinning& thinning) {
  std::vector<double> losses;
  for (const json& loss : list_member(series, "loss")) losses.push_back(number_of(loss));
  json columns = {{"seed", member(series, "seed")}};
  const std::vector<size_t> kept = thinning(losses);
  for (const char* key : {"step", "time_s", "samples", "loss"}) {
    json& column = columns[key] = json::array();
    const json& all = list_member(series, key);
    for (const size_t i : kept) column.push_back(i < all.size() ? rounded(all[i]) : json());
  }
  return columns;
}

// Neighbours are joined until at most `most` are left: those of one kind first, then the stretches
// too short to be seen, which take the kind that has the most time in them.
json joined_intervals(const json& intervals, size_t most, bool& coarsened) {
  json joined = json::array();
  for (const json& each : intervals)
    if (!joined.empty() && joined.back()[0] == each[0] && joined.back()[2] == each[1])
      joined.back()[2] = each[2];
    else
      joined.push_back(each);
  if (joined.size() <= most) return joined;
  coarsened = true;
  json coarse = json::array();
  for (size_t i = 0; i < most; ++i) {
    const size_t begin = joined.size() * i / most, end = joined.size() * (i + 1) / most;
    std::map<std::string, double> time_of;
    for (size_t k = begin; k < end; ++k)
      time_of[joined[k][0]] += joined[k][2].get<double>() - joined[k][1].get<double>();
    const auto longest = std::max_element(time_of.begin(), time_of.end(),
                                          [](auto& a, auto& b) { return a.second < b.second; });
    coarse.push_back({longest->first, joined[begin][1], joined[end - 1][2]});
  }
  return coarse;
}

json drawn_timeline(const json& timeline, json& thinned) {
  json rows = json::array();
  bool coarsened = false;
  for (const json& row : timeline) {
    if (rows.size() == kMostNodesDrawn) break;
    const json& intervals = list_member(row, "intervals");
    json drawn = {{"rank", row["rank"]}, {"role", text_of(member(row, "role"), "worker")}};
    drawn["intervals"] = joined_intervals(intervals, kMostIntervalsPerNode, coarsened);
    rows.push_back(std::move(drawn));
  }
  if (coarsened) thinned["intervals"] = true;
  if (rows.size() < timeline.size()) thinned["timeline_nodes"] = timeline.size();
  return rows;
}

json drawn_strategy(const json& strategy, Thinning& thinning) {
  json drawn = json::object();
  for (const auto& [key, value] : strategy.items())
    if (key != "curves" && key != "series" && key != "timeline" && key != "links" && key != "nodes")
      drawn[key] = value;
  json& curves = drawn["curves"] = json::array();
  for (const json& curve : list_member(strategy, "curves"))
    curves.push_back(curve_columns(curve, thinning));
  json& series = drawn["series"] = json::array();
  for (const json& each : list_member(strategy, "series"))
    series.push_back(series_columns(each, thinning));
  json& thinned = drawn["thinned"] = json::object();
  drawn["timeline"] = drawn_timeline(list_member(strategy, "timeline"), thinned);
  const double workers = number_of(member(strategy, "workers"));
  const int count = workers > 0 ? static_cast<int>(std::min(workers, kMostDrawn)) : 0;
  drawn["network"] = network_picture(list_member(strategy, "nodes"), list_member(strategy, "links"),
                                     count, kMostNodesDrawn);
  return drawn;
}

}  // namespace

json report_data(const json& comparison) {
  json data = json::object();
  for (const auto& [key, value] : comparison.items())
    if (key != "strategies") data[key] = value;
  size_t count = 0;
  for (const json& strategy : comparison.at("strategies"))
    count += list_member(strategy, "curves").size() + list_member(strategy, "series").size();
  const size_t share = kMostPoints / std::max<size_t>(1, count);
  Thinning thinning{std::clamp(share, kFewestThinned, kMostPointsPerSeries)};
  json& strategies = data["strategies"] = json::array();
  for (const json& strategy : comparison.at("strategies"))
    strategies.push_back(drawn_strategy(strategy, thinning));
  data["thinned"] = {
      {"points", thinning.had}, {"kept", thinning.kept}, {"per_series", thinning.most}};
  return data;
}

}  // namespace tutti
