"use strict";

// Methods have the same color in all charts of a study.
const placed = (method) => DATA.methods.indexOf(method);
const tone = (method) => SERIES[placed(method) % SERIES.length];
const FORMS = ["", "-open", "-dot", "-open-dot"]; // of a symbol, one for each pass through the colors

// Beside the chart, or below it if it is narrow; with very many methods, names show on hover.
function legendOf(place, names) {
  const narrow = widthOf(place) < 600;
  return {
    showlegend: narrow ? names <= NAMED : true,
    legend: narrow ? { orientation: "h", y: -0.2, yanchor: "top" } : { x: 1.02, y: 1, tracegroupgap: 4 },
  };
}

// Calibration across, refinement up; better is up and to the left.
function mapChart(place, there, across, up) {
  const x = DATA.metrics[across], y = DATA.metrics[up];
  const kinds = calibrators(view.lines), several = calibrators(there).length > 1;
  const methods = [...new Set(there.map(({ method }) => method))];
  const symbol = ({ method, calibrator }) => MARKERS[(several ? kinds.indexOf(calibrator) : placed(method)) % MARKERS.length]
    + FORMS[Math.floor(placed(method) / SERIES.length) % FORMS.length];
  const at = (line, metric) => line.cells[metric].value;
  const traces = methods.flatMap((method) => {
    const own = there.filter((line) => line.method === method), common = { legendgroup: method, name: quoted(method) };
    const pairs = own.flatMap(({ cells }) => cells[across].seeds.map((seed, i) => [seed, cells[up].seeds[i]]));
    const seeds = {
      ...common, x: pairs.map(([seed]) => seed), y: pairs.map(([, seed]) => seed), mode: "markers", hoverinfo: "skip",
      showlegend: false, marker: { color: color(tone(method), 0.4), size: 6 },
    };
    const [from, ...to] = own;
    const ways = {
      ...common, ...line(to.flatMap((line) => [at(from, across), at(line, across), null]),
        to.flatMap((line) => [at(from, up), at(line, up), null]), tone(method), { width: 1 }),
      opacity: 0.35, hoverinfo: "skip", showlegend: false,
    };
    const means = {
      ...common, x: own.map((line) => at(line, across)), y: own.map((line) => at(line, up)), mode: "markers",
      marker: { symbol: own.map(symbol), color: color(tone(method)), size: 12 },
      customdata: own.map((line) => pointInWords(line, [across, up])), hovertemplate: "%{customdata}<extra></extra>",
    };
    return [...(to.length && from.calibrator === kinds[0] ? [ways] : []), seeds, means];
  });
  const signs = several ? calibrators(there).map((calibrator) => ({
    x: [null], y: [null], mode: "markers", name: quoted(calibrator), hoverinfo: "skip", legendgroup: "calibrators",
    marker: { symbol: MARKERS[kinds.indexOf(calibrator) % MARKERS.length], color: color("quiet"), size: 10 },
  })) : [];
  const toward = (better, good) => (better === good ? true : "reversed");
  return draw(place, `${x.title} and ${y.title} of each method`, [...traces, ...signs], {
    ...legendOf(place, methods.length),
    margin: { l: 55, r: 24, t: 30, b: 45 },
    annotations: [{
      text: "↖ better on both", xref: "paper", yref: "paper", x: 0, y: 1, yanchor: "bottom", showarrow: false,
      font: { color: color("quiet") },
    }],
    xaxis: { ...titled(x.title), autorange: toward(x.better, "lower"), zeroline: false },
    yaxis: { ...titled(y.title), autorange: toward(y.better, "higher"), zeroline: false },
  });
}

function pointInWords({ method, calibrator, cells }, metrics) {
  const figures = metrics.map((i) => `${DATA.metrics[i].title}: ${cells[i].text}`);
  return [`<b>${quoted(method)}</b>`, `calibrator ${quoted(calibrator)}`, ...figures].join("<br>");
}

// One line a method, its spread as a band around it.
function epochsChart(place, lines, figure) {
  const there = lines.filter((each) => each[figure]);
  const opacity = there.length > NAMED ? 0.07 : 0.15;
  const bands = there.map((each) => {
    const { mean, spread } = each[figure], known = each.epoch.map((_, i) => i).filter((i) => mean[i] !== null);
    const back = [...known].reverse();
    return {
      x: [...known, ...back].map((i) => each.epoch[i]),
      y: [...known.map((i) => mean[i] + spread[i]), ...back.map((i) => mean[i] - spread[i])],
      mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: color(tone(each.name), opacity),
      hoverinfo: "skip", showlegend: false, legendgroup: each.name,
    };
  });
  const means = there.map((each) => {
    const index = placed(each.name), dash = DASHES[Math.floor(index / SERIES.length) % DASHES.length];
    return {
      ...line(each.epoch, each[figure].mean, tone(each.name), { dash, width: 2 }),
      name: quoted(each.name), legendgroup: each.name,
      customdata: each[figure].spread, hovertemplate: "epoch %{x}: %{y:.4~g} ± %{customdata:.2~g}",
    };
  });
  const { title } = DATA.figures.find(({ key }) => key === figure);
  return draw(place, `${title} of each method by epoch`, [...bands, ...means], {
    ...legendOf(place, there.length), xaxis: titled("epoch"), yaxis: titled(title),
  });
}
