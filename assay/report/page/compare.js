"use strict";

const TONES = { better: "good", worse: "bad" };
const [A, B] = DATA.models;

find(".size").textContent = `A: ${A.name} · B: ${B.name} · ${count(DATA.n)} samples${DATA.pairing}`;
find("#verdict .command").hidden = !DATA.next;
find("#verdict .command code").textContent = DATA.next;
find(".verdict").textContent = `B against A: ${DATA.verdicts.map(({ axis, word }) => `${axis} ${word}`).join(", ")}.`;
showTiles(find("#verdict .tiles"), DATA.verdicts.map(({ axis, word, reason }) =>
  ({ title: axis, text: word, under: reason, tone: TONES[word] })));
find("#differences .exactness").textContent = DATA.exactness.join(" ");
find("#differences .exactness").hidden = DATA.exactness.length === 0;
showTable(find("#differences .table"), DATA.differences);
find("#coverages").hidden = DATA.coverages.rows.length === 0;
showTable(find("#coverages .table"), DATA.coverages);
find("#flipped .note").textContent = `${count(DATA.flips.better)} samples that A answers wrongly are right in B, `
  + `${count(DATA.flips.worse)} that A answers rightly are wrong in B. The most confident errors first.`;
find("#flipped").hidden = DATA.flipped.rows.length === 0;
showTable(find("#flipped .table"), DATA.flipped);
find(".needs-probability").hidden = !DATA.models.some(({ reliability }) => reliability);
drawBoth();
keepDrawn(drawBoth);

function drawBoth() {
  reliabilityLines(find("#overview .reliability"), DATA.models, null);
  riskLines(find("#overview .risk"), DATA.models, null);
}
