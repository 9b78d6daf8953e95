// The report of a comparison: one HTML file that needs nothing else, online or beside it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "testbed/comparison.h"

namespace tutti {

// The page of web/report with its style, its scripts and Chart.js inlined when the program was
// built, and kReportDataMark where the data goes.
extern const std::string_view kReportTemplate;
inline constexpr std::string_view kReportDataMark = "@@comparison@@";
// The same of a survey.
extern const std::string_view kSurveyTemplate;
inline constexpr std::string_view kSurveyDataMark = "@@survey@@";

std::string report_html(const Comparison& comparison);
// `page` with `data` in the place of `mark`.
std::string page_with(std::string_view page, std::string_view mark, const nlohmann::json& data);

// JSON that may stand inside a <script> element: nothing in it can end the element, start a comment
// or break a line. Bytes that are not UTF-8 become replacement characters.
std::string json_for_script(const nlohmann::json& value);

}  // namespace tutti
