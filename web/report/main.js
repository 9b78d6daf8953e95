// Puts the page together. What is below the fold is drawn after what is seen first.

import { onChange } from "./model.js";
import { startTheme } from "./theme.js";
import { drawHeadline, drawMasthead } from "./headline.js";
import { startToggles } from "./toggles.js";
import { startTable } from "./table.js";
import { startCurves } from "./curves.js";
import { startBars } from "./bars.js";
import { startPareto } from "./pareto.js";
import { startStaleness } from "./staleness.js";
import { startTimeline } from "./timeline.js";
import { startNetwork } from "./network.js";
import { startAppendix } from "./appendix.js";

Chart.defaults.font.family = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
startTheme();
drawMasthead();
drawHeadline();
onChange(drawHeadline);
startToggles();
startTable();
startCurves();
startBars();
startPareto();
startStaleness();
startTimeline();
startNetwork();
startAppendix();
document.documentElement.dataset.ready = "true";
