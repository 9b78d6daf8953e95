// Advice for people: a table, the reasons, and what to change.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/units.h"
#include "testbed/advise.h"

namespace tutti {
namespace {

using nlohmann::json;

std::string seconds(double value) { return human_quantity(value, Unit::kSeconds); }
std::string rate(double value) {
  const double bits = value * 8;
  return bits >= 1e9 ? fmt::format("{:.3g} Gbit/s", bits / 1e9)
                     : fmt::format("{:.3g} Mbit/s", bits / 1e6);
}

std::string heading(const json& a) {
  const json &task = a["task"], &cluster = a["cluster"], &cost = a["model_cost"];
  return fmt::format(
      "task      {}: {} on {} to {} {}, global batch {}\n"
      "cluster   {} workers of {:.3g} GFLOP/s on {}, {}\n"
      "model     {} parameters, {:.3g} MFLOP a sample; {:.3g} GFLOP/s, {:.2f} of the reference "
      "kernel ({})\n",
      task["name"].get<std::string>(), task["model"].get<std::string>(),
      task["data"].get<std::string>(), task["metric"].get<std::string>(),
      task["target"].get<double>(), task["global_batch"].get<int64_t>(),
      cluster["workers"].get<int64_t>(), cluster["speed"].get<double>() / 1e9,
      rate(cluster["bandwidth"]), seconds(cluster["latency_s"]), task["parameters"].get<int64_t>(),
      task["flops_per_sample"].get<double>() / 1e6, cost["flops"].get<double>() / 1e9,
      cost["efficiency"].get<double>(), cost["obtained"].get<std::string>());
}

std::string passes(const json& cost) {
  std::string text =
      fmt::format("a pass    {} + {} for each of {} layers, forward and backward, + {} a sample",
                  seconds(cost["step_s"]), seconds(cost["layer_s"]), cost["layers"].get<size_t>(),
                  seconds(cost["sample_s"]));
  if (cost["least_sample"])
    text +=
        ", which is too little to measure: the arithmetic at 4 times the speed of the reference "
        "kernel";
  if (const json& timed = cost["timed"]; !timed.empty())
    text += fmt::format(" (fitted to batches of {} to {}, error {:.0f} %)",
                        timed.front()["batch"].get<int64_t>(), timed.back()["batch"].get<int64_t>(),
                        100 * cost["fit_error"].get<double>());
  return text + fmt::format(
                    "\nfixed     {:.0f} % of a step on one node, {:.0f} % where the batch is "
                    "spread over all workers\n",
                    100 * cost["fixed_share"].get<double>(),
                    100 * cost["fixed_share_spread"].get<double>());
}

std::string table(const json& choices) {
  std::string text =
      fmt::format("\n{:<3} {:<20} {:>4} {:>16} {:>10} {:>9} {:>9} {:>11} {:>7}\n", "", "strategy",
                  "n", "time to target", "a step", "energy", "CO2e", "cost", "steps");
  int place = 0;
  for (const json& c : choices) {
    const bool good = c["reached"] && c["fits"];
    text += fmt::format(
        "{:<3} {:<20} {:>4} {:>16} {:>10} {:>9} {:>9} {:>11} {:>7}\n",
        good ? fmt::format("{}.", ++place) : "-", c["name"].get<std::string>().substr(0, 20),
        c["workers"].get<int64_t>(),
        c["reached"]
            ? fmt::format("{} +-{:.0f} %", seconds(c["time_s"]), 100 * c["error"].get<double>())
            : "not reached",
        seconds(c["step_s"]),
        c["reached"] ? fmt::format("{:.3g} kJ", c["joules"].get<double>() / 1000) : "-",
        c["reached"] ? fmt::format("{:.3g} g", c["co2e_g"].get<double>()) : "-",
        c["reached"]
            ? fmt::format("{:.2g} {}", c["cost"].get<double>(), c["currency"].get<std::string>())
            : "-",
        c["reached"] ? fmt::format("{:.0f}", c["steps_to_target"].get<double>()) : "-");
  }
  return text;
}

std::string plans(const json& choices) {
  std::string text;
  for (const json& c : choices)
    if (const std::string plan = c.value("plan", ""); !plan.empty())
      text += fmt::format("  {:<20} {}\n", c["name"].get<std::string>(), plan);
  return text.empty() ? "" : "\nPlans\n" + text;
}

std::string why(const json& a) {
  std::string text = "\nWhy\n";
  for (const json& c : a["choices"])
    for (const json& reason : c["reasons"])
      text += fmt::format("  {:<20} {}\n", c["name"].get<std::string>(), reason.get<std::string>());
  for (const json& r : a["refused"])
    text += fmt::format("  {:<20} not possible here: {}\n", r["name"].get<std::string>(),
                        r["reason"].get<std::string>());
  return text;
}

std::string network_text(const json& bandwidth) {
  if (bandwidth["points"].empty()) return "";
  if (bandwidth["flips"].empty())
    return fmt::format("  network      {} stays first from {} to {}\n",
                       bandwidth["points"][0]["best"].get<std::string>(),
                       rate(bandwidth["points"].front()["bandwidth"]),
                       rate(bandwidth["points"].back()["bandwidth"]));
  std::string text;
  for (const json& flip : bandwidth["flips"])
    text += fmt::format("  network      below about {} {} is fastest, above it {}\n",
                        rate(flip["bandwidth"]), flip["below"].get<std::string>(),
                        flip["above"].get<std::string>());
  return text;
}

std::string workers_text(const json& points) {
  if (points.empty()) return "";
  std::string text = "  workers      ";
  const json* best = nullptr;
  for (const json& point : points) {
    text += fmt::format("{}: {} ({}); ", point["workers"].get<int64_t>(), seconds(point["time_s"]),
                        point["best"].get<std::string>());
    if (!best || point["time_s"] < (*best)["time_s"]) best = &point;
  }
  return text + fmt::format("fastest with {}\n", (*best)["workers"].get<int64_t>());
}

std::string batch_text(const json& batch) {
  std::string text = "  batch        steps to target: ";
  for (const json& point : batch["points"])
    text += fmt::format("{:.0f}: {:.0f}{}; ", point["batch"].get<double>(),
                        point["steps"].get<double>(),
                        point["time_s"].is_number() ? " (" + seconds(point["time_s"]) + ")" : "");
  for (const json& size : batch["missed"])
    text += fmt::format("{}: not reached; ", size.get<int64_t>());
  text += fmt::format("fastest with {}\n", batch["fastest"].get<int64_t>());
  // A curve says nothing of batches far beyond those it was drawn through.
  const double largest = batch["points"].back()["batch"];
  if (batch["critical_batch"].is_number() && batch["critical_batch"] < largest)
    text += fmt::format("               beyond about {:.0f} samples a step more are wasted",
                        batch["critical_batch"].get<double>());
  else
    text += fmt::format("               up to {:.0f} samples a step none is wasted", largest);
  return text + " (" + batch["rate"].get<std::string>() + ")\n";
}

std::string compression_text(const json& c) {
  return fmt::format(
      "  compression  a quarter of the bytes would {} {:.0f} % of the time at most: "
      "{}\n",
      c["saves"].get<double>() >= 0 ? "save" : "cost", std::abs(100 * c["saves"].get<double>()),
      c["pays"] ? "worth trying" : "it does not pay");
}

// Says where the steps of each choice come from: one line for all that learned in the same way.
std::string learning_text(const json& choices) {
  std::vector<std::pair<std::string, std::string>> names_by_method;
  for (const json& choice : choices) {
    const std::string method = choice["learning"], name = choice["name"];
    const auto same = std::find_if(names_by_method.begin(), names_by_method.end(),
                                   [&](const auto& entry) { return entry.first == method; });
    if (same == names_by_method.end())
      names_by_method.emplace_back(method, name);
    else
      same->second += ", " + name;
  }
  std::string text;
  for (const auto& [method, names] : names_by_method)
    text += fmt::format("  {}: {}\n", method, names);
  return text;
}

}  // namespace

std::string advice_text(const json& a) {
  std::string text = heading(a) + passes(a["model_cost"]) + table(a["choices"]) +
                     plans(a["choices"]) + why(a) + "\nWhat to change\n";
  if (a.contains("bandwidth")) text += network_text(a["bandwidth"]);
  if (a.contains("workers")) text += workers_text(a["workers"]);
  if (a.contains("batch")) text += batch_text(a["batch"]);
  if (a.contains("compression")) text += compression_text(a["compression"]);
  text += fmt::format("  memory       {}\n", a["memory"]["text"].get<std::string>());
  text += fmt::format(
      "\nHow this was found\n  Step times are simulated from each strategy's real messages. Errors "
      "combine the spread over\n  seeds, over stragglers, and {:.0f} % for simulated against "
      "measured times ({}).\n  Steps to the target come from\n{}",
      100 * a["simulation_error"]["relative"].get<double>(),
      a["simulation_error"]["source"].get<std::string>(), learning_text(a["choices"]));
  return text;
}

}  // namespace tutti
