"use strict";

const SERIES = ["blue", "vermillion", "green", "orange", "purple", "ink", "brown", "olive", "sky"];
const DASHES = ["solid", "dash", "dashdot", "dot", "longdash", "longdashdot"];
const MARKERS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x"];
const NAMED = 8; // models whose names fit into a chart; with more models, names show on hover

const percent = (value, digits = 1) => `${(100 * value).toFixed(digits)}%`;
const count = (value) => value.toLocaleString("en");

const COLORS = new Map(); // a cache of the theme's colors: to find one, the browser lays out the page

// A color of the current theme, with an opacity.
function color(name, opacity = 1) {
  if (!COLORS.has(name)) {
    const probe = document.body.appendChild(element("i", { hidden: true }));
    probe.style.color = `var(--${name})`;
    COLORS.set(name, getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).join(","));
    probe.remove();
  }
  return `rgba(${COLORS.get(name)},${opacity})`;
}

// Paper has about 700 pixels, but a chart for it is drawn while the page still has the layout of the screen.
const PAPER = { width: 680, height: 400 };
let printing = false;
const widthOf = (place) => (printing ? Math.min(place.clientWidth, PAPER.width) : place.clientWidth);

function fitCharts() {
  [...document.querySelectorAll(".js-plotly-plot")].filter((place) => place.offsetParent).forEach(Plotly.Plots.resize);
}

// Plotly interprets a few tags in texts: names from files must not be interpreted.
function quoted(name) {
  return name.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function draw(place, label, traces, { xaxis, yaxis, ...layout }) {
  const axis = { automargin: true, gridcolor: color("line"), zerolinecolor: color("line"), linecolor: color("line"), fixedrange: true };
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  return Plotly.react(place, traces, {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: color("ink"), family: "system-ui, DejaVu Sans, sans-serif", size: 13 },
    hoverlabel: { bgcolor: color("panel"), bordercolor: color("line"), font: { color: color("ink") }, align: "left" },
    margin: { l: 55, r: 24, t: 12, b: 45 },
    legend: { x: 0.02, y: 0.98, bgcolor: color("paper", 0.75) },
    xaxis: { ...axis, ...xaxis },
    yaxis: { ...axis, ...yaxis },
    ...(printing ? { width: widthOf(place), height: PAPER.height } : {}),
    ...layout,
  }, { displayModeBar: false, responsive: true });
}

const titled = (text) => ({ title: { text, standoff: 8 } });
const share = (text, range) => ({ ...titled(text), tickformat: ".2~%", range });

function line(x, y, tone, { dash = "solid", width = 1.5 } = {}) {
  return { x, y, mode: "lines", line: { color: color(tone), width, dash } };
}

function diagonal() {
  return { ...line([0, 1], [0, 1], "quiet", { dash: "dash", width: 1 }), hoverinfo: "skip", showlegend: false };
}

// Accuracy of each bin, how far the confidence is above or below it, and the range of a calibrated model.
function reliabilityChart(place, title, bins, said, came) {
  const width = bins.upper[0] - bins.lower[0];
  const some = filled(bins);
  const bars = (rows, column, more) => ({
    type: "bar", x: rows.map((i) => (bins.lower[i] + bins.upper[i]) / 2), y: rows.map(column), width: 0.9 * width,
    hoverinfo: "skip", ...more,
  });
  const accuracy = (name, few, shape) => {
    const rows = some.filter((i) => bins.few[i] === few);
    return bars(rows, (i) => bins.accuracy[i], {
      name, showlegend: rows.length > 0,
      marker: { color: color("blue", few ? 0.25 : 0.55), pattern: { shape, bgcolor: color("blue", 0.15), fgcolor: color("quiet") } },
      customdata: rows.map((i) => binInWords(bins, i, said, came)), hovertemplate: "%{customdata}<extra></extra>",
    });
  };
  const gap = (name, tone, over) => {
    const rows = some.filter((i) => (bins.confidence[i] > bins.accuracy[i]) === over);
    const base = rows.map((i) => bins.accuracy[i]);
    return bars(rows, (i) => bins.confidence[i] - bins.accuracy[i], { name, base, marker: { color: color(tone, 0.45) } });
  };
  const band = bars(some, (i) => bins.high[i] - bins.low[i], {
    name: "if calibrated", base: some.map((i) => bins.low[i]), width: 0.2 * width, marker: { color: color("band", 0.8) },
  });
  const mass = bars(some, (i) => bins.weight[i], {
    yaxis: "y2", showlegend: false, marker: { color: color("quiet") }, customdata: some.map((i) => count(bins.count[i])),
    hovertemplate: "%{customdata} samples, %{y:.1%}<extra></extra>",
  });
  const gaps = [gap("over-confident by", "vermillion", true), gap("under-confident by", "green", false)];
  const shown = [diagonal(), accuracy(came, false, ""), accuracy("under 20 samples", true, "/"), ...gaps, band, mass];
  return draw(place, title, shown, {
    barmode: "overlay",
    xaxis: { ...share(said, [0, 1]), anchor: "y2" },
    yaxis: { ...share(came, [0, 1.02]), domain: [0.2, 1] },
    yaxis2: { domain: [0, 0.14], autorange: "reversed", visible: false, fixedrange: true },
  });
}

// Bins of equal count as points; in log-odds those near 0 and 1 lie apart.
function reliabilityPoints(place, title, bins, said, came, odds) {
  const some = filled(bins);
  const at = odds ? logOdds : (p) => p;
  const x = some.map((i) => at(bins.confidence[i])), middle = some.map((i) => at(bins.confidence[i]));
  const range = {
    x, y: middle, mode: "markers", name: "if calibrated", hoverinfo: "skip", marker: { size: 1, color: color("band") },
    error_y: {
      type: "data", symmetric: false, width: 0, thickness: 7, color: color("band", 0.7),
      array: some.map((i, j) => at(bins.high[i]) - middle[j]), arrayminus: some.map((i, j) => middle[j] - at(bins.low[i])),
    },
  };
  const points = (name, tone, over) => {
    const rows = some.filter((i) => (bins.confidence[i] > bins.accuracy[i]) === over);
    return {
      x: rows.map((i) => at(bins.confidence[i])), y: rows.map((i) => at(bins.accuracy[i])), mode: "markers", name,
      showlegend: true, marker: { color: color(tone), size: 9, symbol: over ? "circle" : "diamond" },
      customdata: rows.map((i) => binInWords(bins, i, said, came)), hovertemplate: "%{customdata}<extra></extra>",
    };
  };
  const ends = odds ? [Math.min(...x, -1) - 0.5, Math.max(...x, 1) + 0.5] : [0, 1];
  const level = { ...diagonal(), x: ends, y: ends };
  const axis = (text) => (odds ? { ...titled(text), ...oddsTicks(ends), range: ends } : share(text, [0, 1.02]));
  const shown = [level, range, points("over-confident", "vermillion", true), points("under-confident", "green", false)];
  return draw(place, title, shown, { xaxis: axis(said), yaxis: axis(came) });
}

const filled = (bins) => bins.count.map((_, i) => i).filter((i) => bins.count[i] > 0);
const FARTHEST = 12; // log-odds, as in statistics.py
const logOdds = (p) => Math.max(-FARTHEST, Math.min(FARTHEST, Math.log(p / (1 - p))));
const SHARES = [1e-5, 1e-4, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 0.99999];

function oddsTicks([low, high]) {
  const near = high - low < 3 ? SHARES : SHARES.filter((p) => p !== 0.3 && p !== 0.7);
  const inside = near.filter((p) => logOdds(p) >= low && logOdds(p) <= high);
  return { tickvals: inside.map(logOdds), ticktext: inside.map((p) => `${parseFloat((100 * p).toPrecision(7))}%`) };
}

function binInWords(bins, i, said, came) {
  const gap = 100 * (bins.confidence[i] - bins.accuracy[i]);
  return [
    `${said} ${percent(bins.lower[i], 0)} to ${percent(bins.upper[i], 0)}, ${count(bins.count[i])} samples`,
    `mean ${said} ${percent(bins.confidence[i])}`,
    `${came} ${percent(bins.accuracy[i])}`,
    `gap ${gap > 0 ? "+" : ""}${gap.toFixed(1)} points`,
    `if calibrated ${percent(bins.low[i])} to ${percent(bins.high[i])}`,
  ].join("<br>");
}

// Right answers upward, wrong ones downward.
function densitiesChart(place, model, odds) {
  const { edges, right, wrong } = odds ? model.densitiesInOdds : model.densities;
  const bars = (name, shares, sign, tone, shape) => ({
    type: "bar", x: shares.map((_, i) => (edges[i] + edges[i + 1]) / 2), y: shares.map((value) => sign * value),
    width: edges[1] - edges[0], name: `${name}, ${percent(shares.reduce((a, b) => a + b, 0))}`,
    marker: { color: color(tone), pattern: { shape, bgcolor: color(tone), fgcolor: color("paper") } },
    customdata: shares, hovertemplate: `%{customdata:.2%} of all samples, ${name}<extra></extra>`,
  });
  const shown = [bars("right", right, 1, "blue", ""), bars("wrong", wrong, -1, "vermillion", "/")];
  const { tickvals, digits } = roundTicks(-Math.max(...wrong), Math.max(...right));
  const ticktext = tickvals.map((value) => percent(Math.abs(value), digits));
  return draw(place, `Confidence of right and wrong answers of ${model.name}`, shown, {
    barmode: "relative",
    xaxis: odds ? { ...titled("confidence"), ...oddsTicks([edges[0], edges.at(-1)]) }
      : model.reliability ? share("confidence", [0, 1]) : titled("score"),
    yaxis: { ...titled("share of all samples"), tickvals, ticktext },
  });
}

// Round shares, four to ten between the ends and one beyond each, and their digits in per cent.
function roundTicks(low, high) {
  const power = Math.floor(Math.log10(high - low)), lead = (high - low) / 10 ** power;
  const step = (lead < 2 ? 0.2 : lead < 5 ? 0.5 : 1) * 10 ** power;
  const first = Math.floor(low / step), n = Math.ceil(high / step) - first + 1;
  return {
    tickvals: Array.from({ length: n }, (_, i) => (first + i) * step), digits: Math.max(0, (lead < 5 ? -1 : -2) - power),
  };
}

function rocChart(place, model) {
  const { wrong, right, label } = model.rates;
  const hovertemplate = "%{y:.1%} of right answers<br>%{x:.1%} of errors<extra></extra>";
  const curve = { ...line(wrong, right, "blue", { width: 2.5 }), hovertemplate };
  return draw(place, `ROC of right against wrong answers of ${model.name}`, [diagonal(), curve], {
    showlegend: false, annotations: [corner(label)],
    xaxis: share("errors accepted", [0, 1]), yaxis: share("right answers accepted", [0, 1.02]),
  });
}

// Of right answers, and of wrong ones.
function precisionChart(place, model) {
  const traces = model.precision.flatMap(({ positive, recall, precision, label, base }, i) => {
    const tone = SERIES[i];
    const hovertemplate = `%{x:.1%} of ${positive} answers found<br>%{y:.1%} of those taken<extra></extra>`;
    const chance = line([0, 1], [base, base], tone, { dash: "dash", width: 1 });
    const curve = { ...line(recall, precision, tone, { width: 2.5 }), name: label, hovertemplate };
    return [{ ...chance, hoverinfo: "skip", showlegend: false }, curve];
  });
  return draw(place, `Precision against recall of ${model.name}`, traces, {
    legend: { x: 0.02, y: 0.02, yanchor: "bottom", bgcolor: color("paper", 0.75) },
    xaxis: share("recall: share of them found", [0, 1]), yaxis: share("precision: share among those taken", [0, 1.02]),
  });
}

// A remark in the lower right corner of a chart.
function corner(text) {
  return { text, xref: "paper", yref: "paper", x: 0.97, y: 0.04, showarrow: false, font: { size: 15 } };
}

// One model's risk-coverage curve with its bound, the best possible curve, and the chosen step.
function riskChart(place, model, step) {
  const { n, kept, wrong, boundOfCurve } = model.decisions;
  const { coverage, risk, optimal } = model.selective;
  const best = { ...line(coverage, optimal, "quiet", { dash: "dash" }), name: "perfect ranking", hoverinfo: "skip" };
  const seen = { ...line(coverage, risk, "blue", { width: 2.5 }), name: "risk", hovertemplate: RISK };
  const shade = boundOfCurve && {
    ...line(coverage, boundOfCurve, "blue", { width: 0 }), name: "to its 95 % bound", hoverinfo: "skip",
    fill: "tonexty", fillcolor: color("blue", 0.2),
  };
  const x = kept[step] / n;
  const chosen = {
    ...line([x, x], [0, wrong[step] / kept[step]], "vermillion", { dash: "dot", width: 2 }), mode: "lines+markers",
    name: "accepted", hoverinfo: "skip", marker: { size: [0, 12], opacity: 1, symbol: "diamond", color: color("vermillion") },
  };
  return draw(place, `Risk-coverage curve of ${model.name}`, [best, seen, shade, chosen].filter(Boolean), riskAxes([model]));
}

// Several models: accuracy against mean confidence of each bin.
function reliabilityLines(place, models, selected) {
  const traces = models.filter((model) => model.reliability).map((model) => {
    const bins = model.reliability;
    const rows = bins.count.map((_, i) => i).filter((i) => bins.count[i] > 0 && !bins.few[i]);
    const points = [rows.map((i) => bins.confidence[i]), rows.map((i) => bins.accuracy[i])];
    const hovertemplate = "confidence %{x:.1%}<br>accuracy %{y:.1%}";
    return { ...series(...points, models, model, selected), mode: "lines+markers", hovertemplate };
  });
  return draw(place, "Reliability of all models", [diagonal(), ...traces], {
    showlegend: models.length <= NAMED, xaxis: share("confidence", [0, 1.02]), yaxis: share("accuracy", [0, 1.02]),
  });
}

function riskLines(place, models, selected) {
  const traces = models.map((model) => {
    const { coverage, risk } = model.selective;
    return { ...series(coverage, risk, models, model, selected), hovertemplate: RISK };
  });
  const layout = { showlegend: models.length <= NAMED, ...riskAxes(models) };
  return draw(place, "Risk-coverage curves of all models", traces, layout);
}

// A model's line among several; the others are faint behind a selected one.
function series(x, y, models, model, selected) {
  const index = models.indexOf(model);
  const dash = DASHES[(index + Math.floor(index / SERIES.length)) % DASHES.length];
  return {
    ...line(x, y, SERIES[index % SERIES.length], { dash, width: model === selected ? 3 : 1.5 }),
    marker: { symbol: MARKERS[index % MARKERS.length], size: 7 },
    name: quoted(model.name), opacity: selected && model !== selected ? 0.6 : 1,
  };
}

const RISK = "coverage %{x:.1%}<br>risk %{y:.2%}";

// The risk of the first few answers is mostly noise, so they do not set the scale.
function riskAxes(models) {
  const risks = models.flatMap(({ selective }) => selective.risk.filter((_, i) => selective.coverage[i] >= 0.05));
  return {
    xaxis: share("coverage: share of inputs accepted", [0, 1]),
    yaxis: share("risk: errors among them", [0, 1.15 * Math.max(...risks) || 1]),
  };
}

// Groups on both axes, with intervals: to the left calibrated, above well ranked.
function groupsChart(place, groups) {
  const bars = (rows, key) => ({
    type: "data", symmetric: false, thickness: 1, width: 0,
    array: rows.map((group) => group[key][2] - group[key][0]), arrayminus: rows.map((group) => group[key][0] - group[key][1]),
  });
  const points = (name, tone, symbol, rows) => ({
    x: rows.map(({ ece }) => ece[0]), y: rows.map(({ auroc }) => auroc[0]), mode: rows.length <= NAMED ? "markers+text" : "markers",
    name, text: rows.map((group) => quoted(group.name)), textposition: "top center", cliponaxis: false,
    marker: { color: color(tone), symbol, size: 10 },
    error_x: { ...bars(rows, "ece"), color: color(tone, 0.4) }, error_y: { ...bars(rows, "auroc"), color: color(tone, 0.4) },
    customdata: rows.map(({ n }) => count(n)),
    hovertemplate: "%{text}, %{customdata} samples<br>ECE %{x:.1%}<br>error AUROC %{y:.1%}<extra></extra>",
  });
  const known = groups.filter(({ auroc }) => auroc[0] !== null);
  return draw(place, "Groups on both axes", [
    points("worse than the rest", "vermillion", "diamond", known.filter(({ worse }) => worse)),
    points("not shown to be worse", "blue", "circle", known.filter(({ worse }) => !worse)),
  ], {
    xaxis: { ...share("ECE"), rangemode: "tozero" }, yaxis: share("error AUROC"),
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, margin: { l: 55, r: 24, t: 40, b: 45 },
  });
}
