"use strict";
const findings = [...document.querySelectorAll("details.finding")];

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const finding = target && target.closest("details.finding");
  if (!finding) return;
  finding.open = true;
  for (const part of [finding, finding.closest(".group"), finding.closest(".role")]) part.hidden = false;
  finding.scrollIntoView();
}

let closed = []; // on paper, what is not as hoped is told in full and the rest stays one line each
addEventListener("beforeprint", () => {
  const telling = ".finding.subject:not(.consistent):not([open]), .finding.alarming:not([open])";
  closed = [...document.querySelectorAll(telling)];
  closed.forEach((d) => { d.open = true; });
});
addEventListener("afterprint", () => closed.forEach((d) => { d.open = false; }));

// Which verdicts are shown and what is searched for stand in the address after "#?", so that a link keeps them.
const sieve = document.querySelector(".sieve");
const filter = document.getElementById("filter");
const chips = [...sieve.querySelectorAll(".chip")];
const texts = new Map();

function textOf(finding) {
  if (!texts.has(finding)) {
    const heading = finding.closest(".group").querySelector("h3");
    texts.set(finding, `${heading ? heading.textContent : ""} ${finding.textContent}`.toLowerCase());
  }
  return texts.get(finding);
}

function sift() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdicts = chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.value);
  let shown = 0;
  for (const finding of findings) {
    const wanted = !verdicts.length || verdicts.includes(finding.dataset.verdict);
    finding.hidden = !(wanted && words.every((word) => textOf(finding).includes(word)));
    shown += !finding.hidden;
  }
  for (const part of document.querySelectorAll(".group, .role")) {
    part.hidden = !part.querySelector("details.finding:not([hidden])");
  }
  for (const link of document.querySelectorAll(".causes a")) {
    link.closest("li").hidden = document.getElementById(decodeURIComponent(link.hash.slice(1))).hidden;
  }
  const all = !verdicts.length && !words.length;
  document.getElementById("shown").textContent = all ? "" : shown ? `${shown} of ${findings.length}` : "no match";
  return all ? "" : `?${new URLSearchParams({ verdict: verdicts.join(","), q: filter.value })}`;
}

function remember() { history.replaceState(null, "", `#${sift()}`); }

function recall() {
  if (!location.hash.startsWith("#?")) { openTarget(); return; }
  const asked = new URLSearchParams(location.hash.slice(2));
  const verdicts = (asked.get("verdict") || "").split(",");
  chips.forEach((chip) => chip.setAttribute("aria-pressed", String(verdicts.includes(chip.value))));
  filter.value = asked.get("q") || "";
  sift();
}

const unfold = document.getElementById("unfold");
unfold.addEventListener("click", () => {
  const open = unfold.getAttribute("aria-pressed") !== "true";
  unfold.setAttribute("aria-pressed", String(open));
  for (const finding of findings) if (!finding.hidden) finding.open = open;
});

sieve.hidden = false;
filter.addEventListener("input", remember);
for (const chip of chips) {
  chip.addEventListener("click", () => {
    chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    remember();
  });
}
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== filter) { event.preventDefault(); filter.focus(); }
});
addEventListener("hashchange", recall);
recall();

for (const code of document.querySelectorAll(".command")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  code.after(button);
}
