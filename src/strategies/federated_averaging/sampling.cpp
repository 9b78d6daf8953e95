#include "strategies/federated_averaging/sampling.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "core/random.h"

namespace tutti::federated_averaging {
namespace {

// Sequences of Stream::kClients: of a round as a whole, and three for each client.
constexpr uint32_t kDraw = 0;
enum PerClient : uint32_t { kOnline = 1, kStamina, kTimeZone };

Random of_client(uint64_t seed, int64_t round, int64_t client, PerClient what) {
  return {seed, Stream::kClients, static_cast<uint32_t>(round),
          static_cast<uint32_t>(client) * 4 + what};
}

}  // namespace

bool Sampling::online(int64_t round, int64_t client) const {
  const AvailabilityConfig& a = config_.availability;
  if (a.kind == AvailabilityKind::kRandom)
    return of_client(seed_, round, client, kOnline).uniform() < a.share;
  if (a.kind == AvailabilityKind::kDiurnal) {
    // A client is awake for a share of each day, from a time of its own on.
    const double day =
        static_cast<double>(round) / a.period + of_client(seed_, 0, client, kTimeZone).uniform();
    return day - std::floor(day) < a.share;
  }
  return true;
}

std::vector<int64_t> Sampling::draw(int64_t round) const {
  std::vector<int64_t> drawn;
  drawn.reserve(static_cast<size_t>(clients_));
  for (int64_t client = 0; client < clients_; ++client)
    if (online(round, client)) drawn.push_back(client);
  const auto asked = static_cast<size_t>(asked_clients(config_, clients_));
  const size_t count = std::min(asked, drawn.size());
  Random random(seed_, Stream::kClients, static_cast<uint32_t>(round), kDraw);
  for (size_t i = 0; i < count; ++i) std::swap(drawn[i], drawn[i + random.below(drawn.size() - i)]);
  drawn.resize(count);
  return drawn;
}

double Sampling::stamina(int64_t round, int64_t client) const {
  if (config_.dropout <= 0) return 1;
  Random random = of_client(seed_, round, client, kStamina);
  if (random.uniform() >= config_.dropout) return 1;
  return random.uniform();
}

}  // namespace tutti::federated_averaging
