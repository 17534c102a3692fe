"use strict";
const articles = [...document.querySelectorAll("article")];
const search = document.getElementById("search");
const selects = [...document.querySelectorAll(".filters select")];
const scopes = [...document.querySelectorAll("input[name=scope]")];

function currentScope() { return scopes.find((scope) => scope.checked)?.value ?? "0"; }

function filter() {
  const words = search.value.toLowerCase();
  const isFiltered = words !== "" || selects.some((select) => select.value !== "");
  const scope = currentScope();
  let count = 0, all = 0;
  for (const article of articles) {
    const matches = (!words || article.textContent.toLowerCase().includes(words))
      && selects.every((select) => select.value === "" || article.dataset[select.dataset.key] === select.value.slice(1));
    article.hidden = !matches;
    if (article.closest("[data-scope]").dataset.scope === scope) { all += 1; count += matches ? 1 : 0; }
  }
  document.getElementById("shown").textContent = `${count} of ${all} shown`;
  if (isFiltered) for (const more of document.querySelectorAll(".more")) more.open = true;
}

function showOnly(button) {
  const select = selects.find((candidate) => candidate.dataset.column === button.dataset.column);
  for (const other of selects) other.value = "";
  search.value = "";
  select.value = `=${button.dataset.value}`;
  filter();
  document.getElementById("responses").scrollIntoView();
  select.focus({preventScroll: true});
}

function highlightPassage(sentence, on) {
  const passages = sentence.closest("article").querySelectorAll(".passage");
  for (const passage of passages) passage.classList.toggle("near", on && passage.dataset.number === sentence.dataset.passage);
}

function unfoldPassage(sentence) {
  const passage = sentence.closest("article").querySelector(".passage.near");
  const folded = passage && passage.closest("article details");
  if (folded) folded.open = true;
}

if (search) {
  search.addEventListener("input", filter);
  for (const control of [...selects, ...scopes]) control.addEventListener("change", filter);
  for (const sentence of document.querySelectorAll(".sentence")) {
    for (const event of ["mouseenter", "focus"]) sentence.addEventListener(event, () => highlightPassage(sentence, true));
    for (const event of ["mouseleave", "blur"]) sentence.addEventListener(event, () => highlightPassage(sentence, false));
    sentence.addEventListener("click", () => unfoldPassage(sentence));
  }
  for (const button of document.querySelectorAll(".only")) {
    const select = selects.find((candidate) => candidate.dataset.column === button.dataset.column);
    button.hidden = !select || ![...select.options].some((option) => option.value === `=${button.dataset.value}`);
    button.addEventListener("click", () => showOnly(button));
  }
  filter();
}

for (const link of document.querySelectorAll('nav a[href^="#"]')) {
  link.addEventListener("click", () => {
    const target = document.querySelector(link.hash);
    if (target.tagName === "DETAILS") target.open = true;
  });
}
