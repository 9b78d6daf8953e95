// Puts the page together: what is seen first at once, the figures after it.

import {startAppendix} from "./appendix.js";
import {startBars} from "./bars.js";
import {startClients} from "./clients.js";
import {startCurves} from "./curves.js";
import {drawHeadline, drawMasthead} from "./headline.js";
import {startNetwork} from "./network.js";
import {onChange} from "./page.js";
import {startPareto} from "./pareto.js";
import {startPerspective} from "./perspective.js";
import {startStaleness} from "./staleness.js";
import {startTable} from "./table.js";
import {startTaxonomy} from "./taxonomy.js";
import {startTheme} from "./theme.js";
import {startTimeline} from "./timeline.js";
import {startToggles} from "./toggles.js";

Chart.defaults.font.family =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
startTheme();
drawMasthead();
drawHeadline();
onChange(drawHeadline);
startToggles();
startTable();
startTaxonomy();
startCurves();
startBars();
startPareto();
startStaleness();
startPerspective();
startTimeline();
startNetwork();
startClients();
startAppendix();
