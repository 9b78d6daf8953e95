// TensorBoard event files. A record is: u64 length, masked crc32c of the length, data, masked
// crc32c of the data, all little-endian; the data is a protocol buffer of tensorflow.Event, of
// which the few fields that scalars need are written by hand here.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "jobs/run_folder.h"
#include "testbed/exports.h"

namespace tutti {
namespace {

// Castagnoli's polynomial, reflected.
uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      table[i] = i;
      for (int bit = 0; bit < 8; ++bit)
        table[i] = (table[i] >> 1) ^ ((table[i] & 1) ? 0x82f63b78u : 0u);
    }
    return table;
  }();
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 255];
  return ~crc;
}

// Masked, as the format wants it, because checksums of data that holds checksums are weak.
uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return bytes;
}

std::string record(const std::string& data) {
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  return length + little_endian(masked_crc32c(length)) + data + little_endian(masked_crc32c(data));
}

// Fields of protocol buffers. The lowest three bits of a key are its wire type.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}
std::string varint_field(uint32_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}
std::string double_field(uint32_t number, double value) {
  return varint((number << 3) | 1) + little_endian(std::bit_cast<uint64_t>(value));
}
std::string float_field(uint32_t number, float value) {
  return varint((number << 3) | 5) + little_endian(std::bit_cast<uint32_t>(value));
}
std::string bytes_field(uint32_t number, std::string_view value) {
  return varint((number << 3) | 2) + varint(value.size()) + std::string(value);
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5. Summary: value = 1. Value: tag =
// 1, simple_value = 2.
std::string version_event(double wall_time) {
  return double_field(1, wall_time) + bytes_field(3, "brain.Event:2");
}
std::string scalar_event(double wall_time, int64_t step, std::string_view tag, double value) {
  const std::string one = bytes_field(1, tag) + float_field(2, static_cast<float>(value));
  return double_field(1, wall_time) + varint_field(2, static_cast<uint64_t>(step)) +
         bytes_field(5, bytes_field(1, one));
}

// TensorBoard orders by step and shows "relative time", so that the start hardly matters.
double start_of(const Comparison& comparison) {
  std::tm time{};
  if (!strptime(comparison.created.c_str(), "%Y-%m-%dT%H:%M:%S", &time)) return 0;
  return static_cast<double>(timegm(&time));
}

class EventFile {
 public:
  explicit EventFile(double start) : start_(start), bytes_(record(version_event(start))) {}

  // A value that is not known is left out: the format has no word for it.
  void add(std::string_view tag, double step, double time_s, double value) {
    if (std::isnan(step) || std::isnan(value)) return;
    const double when = start_ + (std::isnan(time_s) ? 0 : time_s);
    bytes_ += record(scalar_event(when, static_cast<int64_t>(step), tag, value));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  double start_;
  std::string bytes_;
};

void add_curve(EventFile& file, const ComparedCurve& curve, const std::string& metric) {
  for (const RecordedEvaluation& point : curve.points) {
    const double step = point.step ? static_cast<double>(*point.step) : NAN;
    const double time_s = point.time_s.value_or(NAN);
    file.add("evaluation/loss", step, time_s, point.loss.value_or(NAN));
    file.add("evaluation/" + metric, step, time_s, point.quality.value_or(NAN));
  }
}

void add_series(EventFile& file, const ComparedSeries& series) {
  for (size_t i = 0; i < series.loss.size() && i < series.step.size(); ++i)
    file.add("train/loss", static_cast<double>(series.step[i]),
             i < series.time_s.size() ? series.time_s[i] : NAN, series.loss[i]);
}

// A name that is one folder, whatever it was: `taken` keeps different ones apart.
std::string folder_name(const std::string& name, std::set<std::string>& taken) {
  std::string safe;
  for (const char c : name)
    safe +=
        std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ? c : '_';
  if (safe.empty() || safe[0] == '.') safe = "_" + safe;
  if (safe.size() > 100) safe.resize(100);
  std::string unique = safe;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}-{}", safe, i);
  return unique;
}

}  // namespace

size_t write_tensorboard(const Comparison& comparison, const std::string& folder) {
  const double start = start_of(comparison);
  const std::string metric = comparison.task.metric.empty() ? "quality" : comparison.task.metric;
  std::set<std::string> taken;
  size_t runs = 0;
  for (const ComparedStrategy& strategy : comparison.strategies) {
    std::map<std::optional<uint64_t>, EventFile> files;  // by seed
    const auto file_of = [&](const std::optional<uint64_t>& seed) -> EventFile& {
      return files.try_emplace(seed, start).first->second;
    };
    for (const ComparedCurve& curve : strategy.curves)
      add_curve(file_of(curve.seed), curve, metric);
    for (const ComparedSeries& series : strategy.series) add_series(file_of(series.seed), series);
    for (const auto& [seed, file] : files) {
      const std::string name = strategy.name + (seed ? fmt::format("-seed{}", *seed) : "");
      const std::filesystem::path inside = std::filesystem::path(folder) / folder_name(name, taken);
      std::error_code failed;
      std::filesystem::create_directories(inside, failed);
      if (failed)
        throw DataError(
            fmt::format("{}: cannot be made: {}; choose another folder for "
                        "--tensorboard",
                        inside.string(), failed.message()));
      write_file((inside / fmt::format("events.out.tfevents.{:.0f}.tutti", start)).string(),
                 file.bytes());
      ++runs;
    }
  }
  return runs;
}

}  // namespace tutti
