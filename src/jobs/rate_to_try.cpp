#include "jobs/rate_to_try.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using nlohmann::json;

// Rates that work differ from task to task by as much; more is most likely a mistake.
constexpr double kLarge = 5, kSmall = 0.1;

// Says that a rate is unusual for what has it; "" when it is not.
std::string unusual(const std::string& key, double rate, double usual, const std::string& kind) {
  if (rate <= kLarge * usual && rate >= kSmall * usual) return "";
  return fmt::format("{} = {:g} is {} for {}: try {:g}", key, rate,
                     rate > usual ? "large" : "small", kind, usual);
}

// The optimizer of a server, where the strategy has one: its kind and its rate.
json server_of(const Job& job) {
  const json settings = json::parse(strategy_settings(job), nullptr, false);
  const auto server = settings.is_object() ? settings.find("server") : settings.end();
  const bool is_one = server != settings.end() && server->is_object() && server->contains("kind") &&
                      server->contains("lr");
  return is_one ? *server : json();
}

std::string unusual_server(const Job& job) {
  const json server = server_of(job);
  if (server.is_null()) return "";
  const auto kind = server["kind"].get<std::string>();
  const Job preset =
      load_job("", {"strategy.kind=" + job.strategy_kind, "strategy.server=" + kind});
  return unusual("strategy.server.lr", server["lr"].get<double>(),
                 server_of(preset)["lr"].get<double>(), kind);
}

}  // namespace

std::string rate_to_try(const Job& job) {
  if (std::string text = unusual_server(job); !text.empty()) return text;
  const OptimizerConfig& optimizer = job.optimizer;
  const double lr = optimizer.lr;
  if (std::string text =
          unusual("optimizer.lr", lr, optimizer.rule.entry().lr, std::string(optimizer.kind()));
      !text.empty())
    return text;
  return fmt::format(
      "try another optimizer.lr than {0:g}, e.g. {1:g} or {2:g} (`tutti compare JOB --tune "
      "optimizer.lr=log:{1:g}:{2:g}` finds the best), or more task.epochs",
      lr, lr / 10, lr * 10);
}

std::string lower_rate_to_try(const Job& job) {
  const std::string text = rate_to_try(job);
  if (text.find(" is large for ") != std::string::npos) return text;
  const double lr = job.optimizer.lr;
  return fmt::format("try a lower optimizer.lr than {:g}, e.g. {:g}", lr, lr / 10);
}

}  // namespace tutti
