#include "testbed/report_data.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/described_json.h"
#include "jobs/perspective.h"
#include "testbed/network_picture.h"
#include "testbed/question.h"
#include "testbed/smooth.h"
#include "testbed/thin.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int64_t kMostDrawn = 1000000;  // a damaged count must not ask for all the memory

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
json curve_columns(const ComparedCurve& curve, Thinning& thinning) {
  std::vector<double> qualities;
  for (const RecordedEvaluation& point : curve.points)
    qualities.push_back(point.quality.value_or(NAN));
  json columns = {{"seed", json_of(curve.seed)}};
  constexpr const char* kColumns[] = {"step", "samples", "time_s", "bytes", "loss", "quality"};
  for (const char* key : kColumns) columns[key] = json::array();
  for (const size_t i : thinning(qualities)) {
    const json point = json_of(curve.points[i]);
    for (const char* key : kColumns) columns[key].push_back(rounded(point[key]));
  }
  return columns;
}

template <class T>
json thinned_column(const std::vector<T>& values, const std::vector<size_t>& kept) {
  json column = json::array();
  for (const size_t i : kept)
    column.push_back(i < values.size() ? rounded(json(values[i])) : json());
  return column;
}

// The same loss as a line that shows where it goes, at places that are evenly far apart.
json smooth_columns(const ComparedSeries& series, size_t most) {
  const std::vector<double> smoothed = smooth(series.loss);
  const std::vector<size_t> kept = evenly(smoothed.size(), most);
  return {{"time_s", thinned_column(series.time_s, kept)},
          {"loss", thinned_column(smoothed, kept)}};
}

json series_columns(const ComparedSeries& series, Thinning& thinning) {
  const std::vector<size_t> kept = thinning(series.loss);
  return {{"seed", json_of(series.seed)},
          {"step", thinned_column(series.step, kept)},
          {"time_s", thinned_column(series.time_s, kept)},
          {"samples", thinned_column(series.samples, kept)},
          {"loss", thinned_column(series.loss, kept)},
          {"smooth", smooth_columns(series, std::min(kMostSmoothPoints, thinning.most))}};
}

// Neighbours are joined until at most `most` are left: those of one kind first, then the stretches
// too short to be seen, which take the kind that has the most time in them.
std::vector<RecordedInterval> joined_intervals(const std::vector<RecordedInterval>& intervals,
                                               size_t most, bool& coarsened) {
  std::vector<RecordedInterval> joined;
  for (const RecordedInterval& each : intervals)
    if (!joined.empty() && joined.back().kind == each.kind && joined.back().to_s == each.from_s)
      joined.back().to_s = each.to_s;
    else
      joined.push_back(each);
  if (joined.size() <= most) return joined;
  coarsened = true;
  std::vector<RecordedInterval> coarse;
  for (size_t i = 0; i < most; ++i) {
    const size_t begin = joined.size() * i / most, end = joined.size() * (i + 1) / most;
    std::map<std::string, double> time_of_kind;
    for (size_t k = begin; k < end; ++k)
      time_of_kind[joined[k].kind] += joined[k].to_s - joined[k].from_s;
    const auto longest = std::max_element(time_of_kind.begin(), time_of_kind.end(),
                                          [](auto& a, auto& b) { return a.second < b.second; });
    coarse.push_back({longest->first, joined[begin].from_s, joined[end - 1].to_s});
  }
  return coarse;
}

json drawn_timeline(const std::vector<RecordedTimeline>& timeline, json& thinned) {
  json rows = json::array();
  bool coarsened = false;
  for (const RecordedTimeline& row : timeline) {
    if (rows.size() == kMostNodesDrawn) break;
    rows.push_back(json_of(
        RecordedTimeline{row.rank, row.role.empty() ? "worker" : row.role,
                         joined_intervals(row.intervals, kMostIntervalsPerNode, coarsened)}));
  }
  if (coarsened) thinned["intervals"] = true;
  if (rows.size() < timeline.size()) thinned["timeline_nodes"] = timeline.size();
  return rows;
}

json drawn_strategy(const ComparedStrategy& strategy, Thinning& thinning) {
  json drawn = json_of(static_cast<const ComparedFigures&>(strategy));
  json& curves = drawn["curves"] = json::array();
  for (const ComparedCurve& curve : strategy.curves)
    curves.push_back(curve_columns(curve, thinning));
  json& series = drawn["series"] = json::array();
  for (const ComparedSeries& each : strategy.series)
    series.push_back(series_columns(each, thinning));
  json& thinned = drawn["thinned"] = json::object();
  drawn["timeline"] = drawn_timeline(strategy.timeline, thinned);
  const auto workers =
      static_cast<int>(std::clamp<int64_t>(strategy.workers.value_or(0), 0, kMostDrawn));
  drawn["network"] = network_picture(strategy.nodes, strategy.links, workers, kMostNodesDrawn);
  return drawn;
}

}  // namespace

json report_data(const Comparison& comparison) {
  json data = json_of(static_cast<const ComparisonHead&>(comparison));
  size_t count = 0;
  for (const ComparedStrategy& strategy : comparison.strategies)
    count += strategy.curves.size() + strategy.series.size();
  const size_t share = kMostPoints / std::max<size_t>(1, count);
  Thinning thinning{std::clamp(share, kFewestThinned, kMostPointsPerSeries)};
  json& strategies = data["strategies"] = json::array();
  for (const ComparedStrategy& strategy : comparison.strategies)
    strategies.push_back(drawn_strategy(strategy, thinning));
  data["question"] = question_of(comparison);
  data["car"] = {{"grams_per_km", car_grams_per_km()}, {"source", car_source()}};
  data["thinned"] = {
      {"points", thinning.had}, {"kept", thinning.kept}, {"per_series", thinning.most}};
  return data;
}

}  // namespace tutti
