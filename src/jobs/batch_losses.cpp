#include "jobs/batch_losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "jobs/run_folder.h"

namespace tutti {

std::vector<double> batch_losses(const std::vector<NodeReport>& nodes) {
  std::vector<double> sums;
  std::vector<int64_t> samples;
  for (const NodeReport& node : nodes) {
    if (sums.size() < node.losses.size()) {
      sums.resize(node.losses.size());
      samples.resize(node.losses.size());
    }
    for (size_t i = 0; i < node.losses.size(); ++i) {
      if (node.shares[i] == 0) continue;  // it had no sample in this step
      sums[i] += node.losses[i] * static_cast<double>(node.shares[i]);
      samples[i] += node.shares[i];
    }
  }
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = samples[i] > 0 ? sums[i] / static_cast<double>(samples[i]) : NAN;
  return sums;
}

void write_batch_losses(const std::string& folder, const std::vector<NodeReport>& nodes) {
  const std::string path = folder + "/series.csv";
  const std::vector<double> losses = batch_losses(nodes);
  std::error_code failed;
  if (losses.empty() || !std::filesystem::exists(path, failed)) return;
  const std::string text = read_file(path);
  std::string written;
  size_t row = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end;
    // The columns are step,time_s,loss,rate,samples, below a header.
    const size_t time = line.find(','), loss = line.find(',', time + 1);
    const size_t rate = loss == line.npos ? loss : line.find(',', loss + 1);
    if (row++ == 0 || rate == line.npos || row - 2 >= losses.size() || std::isnan(losses[row - 2]))
      written += line;
    else
      written +=
          fmt::format("{}{}{}", line.substr(0, loss + 1), losses[row - 2], line.substr(rate));
  }
  write_file(path, written);
}

}  // namespace tutti
