#include "testbed/what_if_text.h"

#include <fmt/format.h>

#include <cmath>

#include "testbed/advice_wording.h"

namespace tutti {
namespace {

using nlohmann::json;

std::string network_text(const json& bandwidth) {
  if (bandwidth["points"].empty()) return "";
  if (bandwidth["flips"].empty())
    return fmt::format("  network      {} stays first from {} to {}\n",
                       bandwidth["points"][0]["best"].get<std::string>(),
                       in_bits(bandwidth["points"].front()["bandwidth"]),
                       in_bits(bandwidth["points"].back()["bandwidth"]));
  std::string text;
  for (const json& flip : bandwidth["flips"])
    text += fmt::format("  network      below about {} {} is fastest, above it {}\n",
                        in_bits(flip["bandwidth"]), flip["below"].get<std::string>(),
                        flip["above"].get<std::string>());
  return text;
}

std::string workers_text(const json& points) {
  if (points.empty()) return "";
  std::string text = "  workers      ";
  const json* best = nullptr;
  for (const json& point : points) {
    text += fmt::format("{}: {} ({}); ", point["workers"].get<int64_t>(),
                        in_seconds(point["time_s"]), point["best"].get<std::string>());
    if (!best || point["time_s"] < (*best)["time_s"]) best = &point;
  }
  return text + fmt::format("fastest with {}\n", (*best)["workers"].get<int64_t>());
}

std::string batch_text(const json& batch) {
  if (batch["points"].empty()) return "";
  std::string text = "  batch        steps to target: ";
  for (const json& point : batch["points"])
    text += fmt::format(
        "{:.0f}: {:.0f}{}; ", point["batch"].get<double>(), point["steps"].get<double>(),
        point["time_s"].is_number() ? " (" + in_seconds(point["time_s"]) + ")" : "");
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
  const double percent = std::abs(100 * c["saves"].get<double>());
  const std::string effect = percent < 0.5 ? "change nothing"
                             : c["saves"].get<double>() > 0
                                 ? fmt::format("save {:.0f} % of the time at most", percent)
                                 : fmt::format("cost {:.0f} % more time", percent);
  return fmt::format("  compression  a quarter of the bytes would {}: {}\n", effect,
                     c["pays"] ? "worth trying" : "it does not pay");
}

}  // namespace

std::string what_if_text(const Advice& advice) {
  std::string text;
  if (advice.bandwidth) text += network_text(*advice.bandwidth);
  if (advice.workers) text += workers_text(*advice.workers);
  if (advice.batch) text += batch_text(*advice.batch);
  if (advice.compression) text += compression_text(*advice.compression);
  return text;
}

}  // namespace tutti
