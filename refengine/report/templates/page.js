"use strict";
const findings = [...document.querySelectorAll("details.finding")];

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const finding = target && target.closest("details.finding");
  if (finding) { finding.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", openTarget);
openTarget();

let closed = []; // on paper, what is not as hoped is told in full and the rest stays one line each
addEventListener("beforeprint", () => {
  const telling = ".finding.subject:not(.consistent):not([open]), .finding.alarming:not([open])";
  closed = [...document.querySelectorAll(telling)];
  closed.forEach((d) => { d.open = true; });
});
addEventListener("afterprint", () => closed.forEach((d) => { d.open = false; }));

const filter = document.getElementById("filter");
filter.hidden = false;
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const finding of findings) {
    const heading = finding.closest(".group").querySelector("h3");
    const text = `${heading ? heading.textContent : ""} ${finding.querySelector("summary").textContent}`.toLowerCase();
    finding.hidden = !words.every((word) => text.includes(word));
  }
  for (const group of document.querySelectorAll(".group")) {
    group.hidden = !group.querySelector("details.finding:not([hidden])");
  }
});

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
