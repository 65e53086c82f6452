"use strict";

find(".verdict").textContent = DATA.verdict;
find("#claims .note").textContent = DATA.note;
showTable(find("#claims .table"), DATA.claims);

const regimes = find("#regimes"), figures = find("#figures");
regimes.append(...DATA.regimes.map(({ name }) => element("option", { textContent: name })));
regimes.addEventListener("change", showRegime);
figures.addEventListener("change", drawEpochs);
showRegime();
keepDrawn(drawRegime);

function regime() {
  return DATA.regimes[regimes.selectedIndex];
}

function showRegime() {
  showTable(find("#recipes"), regime().recipes);
  const names = Object.keys(regime().epochs);
  figures.replaceChildren(...names.map((name) => element("option", { textContent: name.replaceAll("_", " "), value: name })));
  find("#epochs").hidden = names.length === 0;
  drawRegime();
}

function drawRegime() {
  drawMap();
  if (!find("#epochs").hidden) drawEpochs();
}

// One color and mark a recipe, the same on both charts.
function drawMap() {
  const traces = regime().points.map(({ recipe, runs }, i) => ({
    x: runs.map(({ ece }) => ece), y: runs.map(({ auroc }) => auroc), mode: "markers", name: quoted(recipe),
    marker: { color: color(SERIES[i % SERIES.length]), size: 10, symbol: MARKERS[i % MARKERS.length] },
    customdata: runs.map(({ ece, auroc }) => `<b>${quoted(recipe)}</b><br>ECE ${percent(ece)}, AUROC ${percent(auroc)}`),
    hovertemplate: "%{customdata}<extra></extra>",
  }));
  draw(find("#map"), "ECE and AUROC of each run", traces, {
    showlegend: true, legend: { orientation: "h", y: -0.2 }, margin: { l: 55, r: 24, t: 20, b: 45 },
    xaxis: { ...share("ECE"), rangemode: "tozero" }, yaxis: share("AUROC"),
  });
}

function drawEpochs() {
  const curves = regime().epochs[figures.value] ?? {};
  const names = regime().points.map(({ recipe }) => recipe);
  const traces = Object.entries(curves).map(([recipe, values]) => ({
    ...line(values.map((_, epoch) => epoch + 1), values, SERIES[names.indexOf(recipe) % SERIES.length], { width: 1.5 }),
    name: quoted(recipe), hovertemplate: `${quoted(recipe)}<br>epoch %{x}: %{y:.4f}<extra></extra>`,
  }));
  draw(find("#curves"), "The figure after each epoch", traces, {
    showlegend: true, legend: { orientation: "h", y: -0.2 }, margin: { l: 55, r: 24, t: 20, b: 45 },
    xaxis: { title: { text: "epoch" } }, yaxis: { title: { text: figures.value.replaceAll("_", " ") } },
  });
}
