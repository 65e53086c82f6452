"use strict";

find(".verdict").textContent = DATA.verdict;
find("#claims .note").textContent = DATA.note;
showTable(find("#claims .table"), DATA.claims);

const regimes = find("#regimes"), figures = find("#figures");
regimes.append(...DATA.regimes.map(({ name }) => element("option", { textContent: name })));
regimes.addEventListener("change", showRegime);
figures.addEventListener("change", drawCourse);
showRegime();
keepDrawn(drawRegime);

function regime() {
  return DATA.regimes[regimes.selectedIndex];
}

function showRegime() {
  showTable(find("#recipes"), regime().recipes);
  find("#source").textContent = regime().source.replaceAll("`", "");
  find("#advice").replaceChildren(...regime().advice.map((textContent) => element("li", { textContent })));
  const labels = regime().curves.map(({ title, axis }) => `${title} by ${axis}`);
  figures.replaceChildren(...labels.map((textContent) => element("option", { textContent })));
  find("#courses").hidden = labels.length === 0;
  drawRegime();
}

function drawRegime() {
  drawMap();
  if (!find("#courses").hidden) drawCourse();
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

function drawCourse() {
  const { title, axis, first, means } = regime().curves[figures.selectedIndex];
  const names = regime().points.map(({ recipe }) => recipe);
  const traces = Object.entries(means).map(([recipe, values]) => {
    const place = names.indexOf(recipe), dash = DASHES[Math.floor(place / SERIES.length) % DASHES.length];
    return {
      ...line(values.map((_, i) => first + i), values, SERIES[place % SERIES.length], { dash, width: 1.5 }),
      name: quoted(recipe), hovertemplate: `${quoted(recipe)}<br>${axis} %{x}: %{y:.4f}<extra></extra>`,
    };
  });
  draw(find("#curves"), `${title} by ${axis}`, traces, {
    showlegend: true, legend: { orientation: "h", y: -0.2 }, margin: { l: 55, r: 24, t: 20, b: 45 },
    xaxis: { title: { text: axis } }, yaxis: { title: { text: title } },
  });
}
