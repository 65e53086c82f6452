"use strict";

const kinds = [...new Set(DATA.points.map(({ confidence }) => confidence))];
let shown = DATA.points;

find(".size").textContent = DATA.size;
find(".verdict").textContent = DATA.verdict;
find("#board .note").textContent = DATA.note;
showTable(find("#board .table"), DATA.board, (rows) => {
  const there = new Set(rows.map(([model, confidence]) => JSON.stringify([model.text, confidence.text])));
  shown = DATA.points.filter(({ model, confidence }) => there.has(JSON.stringify([model, confidence])));
  drawMap();
});
if (DATA.categories) showTable(find("#categories .table"), DATA.categories);
else find("#categories").hidden = true;
keepDrawn(drawMap);

// One color a confidence; models are named on hover.
function drawMap() {
  const traces = kinds.flatMap((kind, i) => {
    const own = shown.filter(({ confidence }) => confidence === kind), tone = SERIES[i % SERIES.length];
    const moved = own.filter(({ after }) => after);
    return [
      {
        ...line(moved.flatMap(({ ece, after }) => [ece, after.ece, null]),
          moved.flatMap(({ auroc, after }) => [auroc, after.auroc, null]), tone, { width: 1 }),
        opacity: 0.3, hoverinfo: "skip", showlegend: false, legendgroup: kind,
      },
      {
        x: own.map(({ ece }) => ece), y: own.map(({ auroc }) => auroc), mode: "markers", name: quoted(kind),
        legendgroup: kind, marker: { color: color(tone), size: 10, symbol: MARKERS[i % MARKERS.length] },
        customdata: own.map(({ model, ece, auroc }) =>
          `<b>${quoted(model)}</b><br>${quoted(kind)}<br>ECE ${percent(ece)}, AUROC ${percent(auroc)}`),
        hovertemplate: "%{customdata}<extra></extra>",
      },
    ];
  });
  draw(find("#map .chart"), "ECE and AUROC of each line", traces, {
    showlegend: true, legend: { orientation: "h", y: 1.08 }, margin: { l: 55, r: 24, t: 30, b: 45 },
    xaxis: { ...share("ECE"), rangemode: "tozero" }, yaxis: share("AUROC"),
  });
}
